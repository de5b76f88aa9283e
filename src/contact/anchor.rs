//! Stones that hardly move keep their contact patches.
//!
//! A stone stays *anchored* at the pose where contacts were last searched in full as long as none of its
//! points has moved by more than its *slack* D, a small share of its bounding radius ρ
//! (`solver.patch_reuse`), and as long as its reach is about the same:
//!
//! ```text
//! |Δx| + φ ρ ≤ D,        reach − 8 D ≤ reach now ≤ reach + D        φ the angle turned        (1)
//! ```
//!
//! The patch of two stones is that of their anchors, searched further by 2 (D_a + D_b) so that nothing is
//! missed, and carried along to first order: with δ the displacement of a body's material point since its
//! anchor,
//!
//! ```text
//! x_a' = x_a + δ_a(x_a),    x_b' = x_b + δ_b(x_b),    gap' = gap + n · (δ_b − δ_a),    n' = n            (2)
//! ```
//!
//! Points that are then further apart than the margin of the pair are left out. What (2) neglects turns the
//! normal by D/ρ, with the usual 1e-4 a ten-thousandth of a radian, and changes the gap of a point by D²/ρ.
//! Points stay where they are on the bodies: the corner where one face is cut by another's side moves on by
//! up to D (a micrometre for a stone of a centimetre), and with it its gap by D times the angle between the
//! faces. Nothing is lost for stones that move: they are anchored anew in every step.
//!
//! Anchors are part of a body, of its digest and of checkpoints. So contacts are a function of the bodies
//! alone, whichever rank searches for them, and whether or not the run was stopped in between.

use super::carry::Carry;
use super::odometer;
use crate::geometry::{Aabb, Convex, Mat3, Pose, Shape, Vec3};
use crate::scene::{Anchor, Body, Motion};

/// How far the reach may fall, in slacks, before a stone is anchored anew: a reach too long costs time.
const WIDE: f64 = 8.0;

/// By which boxes are wider than need be, by the reach: pairs of boxes are then found anew when a stone has
/// moved so far, and not whenever one is anchored anew. Of 9000 stones on the move some leave such a box in
/// every step if this is 0.25, in three steps of eight if it is 8: finding pairs in eight steps took 353 and
/// 155 million instructions.
const WIDENED: f64 = 8.0;

/// D of (1), m; zero for bodies that have no anchor.
pub fn slack(body: &Body, patch_reuse: f64) -> f64 {
    match (&body.shape, body.motion) {
        (Shape::Convex(Convex::Polyhedron(stone)), Motion::Free) => patch_reuse * stone.bounding_radius,
        _ => 0.0,
    }
}

/// Anchors a body anew unless (1) holds.
pub fn renew(body: &mut Body, reach: f64, slack: f64) {
    let holds = |anchor: &Anchor| {
        let displacement = odometer::step(&anchor.pose, &body.pose);
        displacement.length + displacement.turn * body.shape.bounding_radius() <= slack
            && reach <= anchor.reach + slack
            && reach >= anchor.reach - WIDE * slack
    };
    if slack == 0.0 {
        body.anchor = None;
    } else if !body.anchor.as_ref().is_some_and(holds) {
        body.anchor = Some(Anchor { pose: body.pose, reach });
    }
}

/// One body as detection sees it.
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    pub body: &'a Body,
    /// How far from its surface contacts are searched, m, ≥ 0.
    pub reach: f64,
    pub movable: bool,
    /// D of (1), m; zero to query the body where it stands.
    pub slack: f64,
}

impl<'a> Candidate<'a> {
    fn anchor(&self) -> Option<&'a Anchor> {
        self.body.anchor.as_ref().filter(|_| self.slack > 0.0)
    }

    /// Pose at which the body is queried.
    pub fn pose(&self) -> &'a Pose {
        self.anchor().map_or(&self.body.pose, |anchor| &anchor.pose)
    }

    /// How far from there contacts are searched.
    pub fn reach_there(&self) -> f64 {
        self.anchor().map_or(self.reach, |anchor| anchor.reach + 2.0 * self.slack)
    }

    /// The box in which contacts are searched.
    pub fn bounds(&self) -> Aabb {
        bounds(&self.body.shape, self.pose()).inflated(self.reach_there())
    }

    /// A box that this one will not leave soon; the same for bodies without an anchor, which are likely to
    /// move.
    pub fn widened(&self, bounds: &Aabb) -> Aabb {
        self.anchor().map_or(*bounds, |anchor| bounds.inflated(WIDENED * anchor.reach))
    }

    /// Margins of two bodies where they are queried, and where they stand; `factor` of
    /// [`super::detect::Detector::detect`].
    pub fn margins(pair: [&Self; 2], factor: f64) -> [f64; 2] {
        let [there, here, slack] = pair.iter().fold([0.0; 3], |[there, here, slack], one| {
            let own = one.anchor().map_or([one.reach, 0.0], |anchor| [anchor.reach, one.slack]);
            [there + own[0], here + one.reach, slack + own[1]]
        });
        [factor * there + 2.0 * slack, factor * here]
    }

    /// From where the body is queried to where it stands, unless that is there.
    pub fn carry(&self) -> Option<Carry> {
        let to = &self.body.pose;
        let Anchor { pose: from, .. } = self.anchor().filter(|anchor| anchor.pose != *to)?;
        let turn = (to.rotation * from.rotation.inverse()).to_rotation_matrix().into_inner();
        Some(Carry::new(&from.position, &(to.position - from.position), &(turn - Mat3::identity())))
    }
}

/// The box of a body. A half-space whose normal is along an axis fills only one side of it, so that a wall is
/// not paired with every body.
fn bounds(shape: &Shape, pose: &Pose) -> Aabb {
    let mut bounds = shape.aabb(pose);
    if let Shape::Convex(Convex::HalfSpace) = shape {
        let normal = pose.direction(&Vec3::z());
        let axis = normal.iamax();
        // What is left of the other two leans by a nanometre in a thousand kilometres, which the micrometre
        // covers.
        if (0..3).all(|k| k == axis || normal[k].abs() <= 1e-15) {
            let face = pose.position[axis];
            if normal[axis] > 0.0 {
                bounds.max[axis] = face + 1e-6;
            } else {
                bounds.min[axis] = face - 1e-6;
            }
        }
    }
    bounds
}
