//! A run that was stopped, killed or starved of disk goes on as if nothing had happened; damaged files are
//! refused.

mod bits;
mod cases;
mod damage;
mod disk;
mod kills;
mod pairs;
mod runs;
mod signals;
#[path = "../support/mod.rs"]
mod support;
