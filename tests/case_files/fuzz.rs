//! Random damage to the shipped cases.
