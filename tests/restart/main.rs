//! A run that was stopped, killed or starved of disk goes on as if nothing had happened, and damage is told, not computed with.

mod support;

mod restart {
    pub mod bits;
    pub mod cases;
    pub mod damage;
    pub mod disk;
    pub mod kills;
    pub mod runs;
}
