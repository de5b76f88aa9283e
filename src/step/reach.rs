//! How far bodies look for contacts.

use crate::contact::anchor;
use crate::contact::detect::Candidate;
use crate::geometry::{Aabb, Vec3};
use crate::scene::{Body, Physics};
use crate::solve::{Inertia, Twist};
use rayon::prelude::*;

/// How far from its surface a body looks for contacts: a little, and what it may travel in a step.
pub fn reach(body: &Body, velocity: &Twist, physics: &Physics) -> f64 {
    let radius = body.shape.bounding_radius();
    if !radius.is_finite() {
        return physics.contact_margin.unwrap_or(0.0);
    }
    let rest = physics.contact_margin.unwrap_or(0.01 * radius);
    let speed = Vec3::from(velocity.linear).norm() + Vec3::from(velocity.angular).norm() * radius;
    rest + speed * physics.time_step
}

/// `reuse`: how far stones may have moved from their anchors, by their radius; 0 to find contacts of all
/// where they stand.
pub fn candidate<'a>(
    body: &'a Body,
    free: &(Inertia, Twist),
    physics: &Physics,
    reuse: f64,
) -> Candidate<'a> {
    let (inertia, twist) = free;
    let reach = reach(body, twist, physics);
    Candidate { body, reach, movable: inertia.is_movable(), slack: anchor::slack(body, reuse) }
}

/// The boxes within which bodies look for contacts.
pub fn boxes(bodies: &[Body], free: &[(Inertia, Twist)], physics: &Physics, reuse: f64) -> Vec<Aabb> {
    bodies.iter().zip(free).map(|(body, free)| candidate(body, free, physics, reuse).bounds()).collect()
}

/// Stones that have moved far from their anchors get new ones: their contacts are found anew in this step.
pub fn renew_anchors(grains: &mut [Body], free: &[(Inertia, Twist)], physics: &Physics) {
    grains.par_iter_mut().zip(free).with_min_len(256).for_each(|(body, (_, twist))| {
        let (reach, slack) = (reach(body, twist, physics), anchor::slack(body, physics.patch_reuse));
        anchor::renew(body, reach, slack);
    });
}
