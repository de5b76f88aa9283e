//! Which of the processor's instruction sets the kernels use. Results do not depend on it.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

/// From the narrowest registers to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Instructions {
    /// What every processor has. On x86 it has no fused product, and makes it by software: many times slower,
    /// for comparisons.
    Plain = 1,
    /// x86 with AVX2 and FMA: four numbers at a time.
    Avx2 = 2,
    /// x86 with AVX-512: eight.
    Avx512 = 3,
}

impl fmt::Display for Instructions {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Plain => "plain",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

/// 0 until somebody asks.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

impl Instructions {
    /// The best that this processor has.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            return if wide { Self::Avx512 } else { Self::Avx2 };
        }
        Self::Plain
    }

    /// Those in use.
    #[inline]
    pub fn chosen() -> Self {
        match CHOSEN.load(Ordering::Relaxed) {
            1 => Self::Plain,
            2 => Self::Avx2,
            3 => Self::Avx512,
            _ => {
                let best = Self::best();
                CHOSEN.store(best as u8, Ordering::Relaxed);
                best
            }
        }
    }

    /// Uses these from now on, if the processor has them; false if not.
    #[must_use]
    pub fn choose(self) -> bool {
        let there = self <= Self::best();
        if there {
            CHOSEN.store(self as u8, Ordering::Relaxed);
        }
        there
    }
}
