//! Contact detection: which bodies may touch (`broad`), and where and how deep (`narrow`).
//!
//! Once per step, for contacts up to a distance `margin` apart:
//!
//! 1. Box of each body: `shape.aabb(&pose).inflated(0.5 * margin)`. Two bodies within the margin then have
//!    boxes that overlap.
//! 2. `BroadPhase::pairs(&boxes, &movable, &mut pairs)`: candidate pairs (i, j), i < j, sorted. Keep one
//!    `BroadPhase` for the run: it reuses its memory, nothing else. The box of a half-space is infinite, so
//!    it is paired with every body; `collide` rejects those after one dot product.
//! 3. `collide` for each pair of convex parts of the two bodies, each part at
//!    `body.pose.compose(&part.pose)`. A `Hint` kept from the last step for the same two parts makes a pair
//!    that is still apart some five times cheaper; it never changes a result. A point of the last step's
//!    patch is the one with the same `feature`.
//!
//! 4. Stones that hardly move are queried where they were (`anchor`), and their patches carried along.
//!
//! All are pure functions of their arguments: the same bits for any number of threads, any history, and,
//! mirrored, for the bodies in either order.

pub mod anchor;
pub mod broad;
mod carry;
pub mod detect;
pub mod narrow;
mod odometer;
mod pairs;
mod patches;

pub use broad::BroadPhase;
pub use narrow::{Hint, MAX_POINTS, Patch, PatchPoint, collide};
