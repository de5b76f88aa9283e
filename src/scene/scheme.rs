//! Which time integrator moves bodies and machines: the choice of a case, with its parameters. What it does
//! is in [`crate::step::integrate`].

use std::fmt;

/// A time integrator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheme {
    /// Moreau and Jean's θ-scheme [Docquier2020, eqs. 28–30], θ in [0.5, 1].
    MoreauJean { theta: f64 },
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::MoreauJean { theta } => write!(formatter, "theta {theta}"),
        }
    }
}

impl Default for Scheme {
    fn default() -> Self {
        Self::MoreauJean { theta: 0.5 }
    }
}
