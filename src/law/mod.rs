//! The laws of a contact, one folder each: what its impulse consists of, how a visit changes it, what
//! satisfies it exactly, and how far a state is from it. Nothing of time, bodies or files.
//!
//! A [`Kind`] says how many numbers the impulse of a point has. Blocks of a sweep hold contacts of one kind,
//! and each kind has its own visit: one more kind does not touch those of the others. Compliance along the
//! normal is not a kind: it is a number of a point that adds to `W_nn`, and its product with `r_n` to the
//! velocity, in the visit of three components. Compliance in the tangent plane wants more numbers a point.

pub mod coulomb;

/// Which law the impulse of a contact follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Unilateral, with dry friction: [`coulomb`].
    #[default]
    Coulomb,
    /// The same law, where points give way in the tangent plane before they slip.
    Stretched,
}

impl Kind {
    /// Numbers of an impulse: the force (n, t, s) first, then moments.
    pub const fn components(self) -> usize {
        match self {
            Kind::Coulomb | Kind::Stretched => coulomb::COMPONENTS,
        }
    }
}
