//! Closed forms, oracles and random mechanisms.

mod builder;
mod closed_forms;
mod loops;
mod multipliers;
mod oracle;
mod slider_crank;
