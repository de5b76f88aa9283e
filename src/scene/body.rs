//! A rigid body.

use crate::geometry::{Pose, Shape, Vec3};
use serde::{Deserialize, Serialize};

/// Global, the same on every rank and in every file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BodyId(pub u64);

/// What decides a body's velocity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Motion {
    /// Never moves. Every rank holds a copy.
    Fixed,
    /// Moves as prescribed, whatever pushes it; the index names the motion in the scene. Every rank holds a
    /// copy.
    Kinematic(u32),
    /// Moves by the laws of mechanics. Owned by one rank.
    Free,
    /// Belongs to a machine; the index names the part in the scene. Every rank holds a copy.
    Machine(u32),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    pub id: BodyId,
    /// Index into the scene's group names: the `[[body]]` or `[[grains]]` of the case it came from.
    pub group: u32,
    /// Index into the scene's materials.
    pub material: u32,
    pub motion: Motion,
    pub shape: Shape,
    /// kg; infinite for fixed and kinematic bodies.
    pub mass: f64,
    /// Principal moments, kg m²: the frame of a free body stands at the centre of mass along the principal
    /// axes. Not used for others.
    pub inertia: Vec3,
    pub pose: Pose,
    /// Of the body frame's origin, world frame, m/s.
    pub velocity: Vec3,
    /// World frame, rad/s.
    pub angular_velocity: Vec3,
    /// About the centre of mass, world frame, kg m²/s. Carried beside the angular velocity so that free
    /// rotation keeps it to the last bit, however the inertia turns.
    pub angular_momentum: Vec3,
    /// None for bodies whose contacts are looked for anew in every step.
    pub anchor: Option<Anchor>,
    /// What the time integrator remembers of this body from step to step; only it knows what the numbers
    /// mean.
    /// Empty for schemes that remember nothing.
    pub memory: Box<[f64]>,
}

impl Body {
    /// The edge of the cube that is as hard to turn, m; none for bodies that are not free.
    pub fn size(&self) -> Option<f64> {
        (self.motion == Motion::Free).then(|| (2.0 * self.inertia.sum() / self.mass).sqrt())
    }
}

/// Where a body stood, and how far it looked, when its contacts were last looked for: see
/// [`crate::contact::anchor`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    pub pose: Pose,
    /// m, ≥ 0.
    pub reach: f64,
}
