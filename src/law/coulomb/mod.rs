//! Signorini's condition with Coulomb's friction, exact: impulses (n, t, s) in the frame of the contact.
//!
//! ```text
//! 0 ≤ V_n + bias ⊥ r_n ≥ 0,   ‖r_t‖ ≤ μ r_n,   V_t ≠ 0 ⇒ r_t = −μ r_n V_t/‖V_t‖   (32)
//! ```
//!
//! | what | where |
//! | --- | --- |
//! | projection onto the cone, natural map | `cone` |
//! | visit and natural map of several points side by side | `lanes` |
//! | the solution of one contact alone | `exact` |
//! | the same again and again, with all that does not change kept | `repeated` |
//! | function and derivative for Newton's method | `slope` |

/// n, t, s.
pub const COMPONENTS: usize = 3;

mod cone;
mod exact;
mod lanes;
mod repeated;
mod slope;

pub use cone::{natural_map, project_on_cone};
pub use exact::solve;
pub use lanes::{Steps, frictionless, is_strongly_coupled, natural_map_lanes, projected};
pub use repeated::Repeated;
pub use slope::{Slope, alart_curnier};
