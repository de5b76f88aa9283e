//! What the protocol of [`table`](super::table) is made of: atomics, a cell and waiting.
//!
//! The model checker of the tests puts its own module of the same names in the place of this one.

pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::hint::spin_loop;
use std::time::Duration;

/// Checks before a waiting thread yields its core, and yields before it begins to sleep between checks.
const SPINS: u32 = 2000;
const YIELDS: u32 = 200;
const SLEEP: Duration = Duration::from_micros(20);

/// `std::cell::UnsafeCell` with the interface of the model checker's.
#[derive(Default)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

pub fn wait(ready: impl Fn() -> bool) {
    let mut checks = 0;
    while !ready() {
        checks += 1;
        match checks {
            ..SPINS => spin_loop(),
            SPINS.. if checks < SPINS + YIELDS => std::thread::yield_now(),
            _ => {
                checks = SPINS + YIELDS;
                std::thread::sleep(SLEEP);
            }
        }
    }
}
