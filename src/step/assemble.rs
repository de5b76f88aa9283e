//! From contacts to the contact problem: frames, arms, bias, starting impulses (31)–(32).

use crate::contact::detect::{Candidate, Contact};
use crate::geometry::Vec3;
use crate::scene::{
    Activation, Body, BodyId, ContactLaw, Impulses, LawTable, ManifoldKey, Motion, StoredImpulse,
};
use crate::solve::problem::contact_frame;
use crate::solve::{Inertia, Manifold, Point, Problem, Twist};

/// What the contact problem leaves out of a point and later steps ask for again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointInfo {
    pub feature: u32,
    pub gap: f64,
    /// World, in the middle between the two surfaces.
    pub position: Vec3,
}

/// The home of a contact: its first free body.
pub fn home(bodies: [&Body; 2]) -> BodyId {
    if bodies[0].motion == Motion::Free { bodies[0].id } else { bodies[1].id }
}

pub struct Assembled {
    pub problem: Problem,
    /// One for each point of the problem.
    pub points: Vec<PointInfo>,
}

pub fn assemble<'a>(
    candidates: &[Candidate],
    contacts: &[Contact],
    inertia: Vec<Inertia>,
    free_velocity: Vec<Twist>,
    laws: &LawTable,
    stored: [Option<&'a Impulses>; 2],
    time_step: f64,
) -> Assembled {
    let mut problem = Problem { inertia, free_velocity, ..Default::default() };
    problem.manifolds.reserve(contacts.len());
    let mut points = Vec::with_capacity(contacts.len() * 4);
    for contact in contacts {
        let bodies = contact.slots.map(|slot| candidates[slot as usize].body);
        let Some(law) = laws.between(bodies[0].material, bodies[1].material) else { continue };
        let frame = contact_frame(contact.patch.normal);
        let first_point = problem.points.len() as u32;
        // Its home is an own body or a ghost: in one of the two lists.
        let find = |stored: &&'a Impulses| stored.find(home(bodies), &contact.key);
        let old = stored.iter().flatten().map(find).find(|old| !old.is_empty()).unwrap_or(&[]);
        for point in &contact.patch.points {
            if law.activation == Activation::GapActivated && point.gap > 0.0 {
                continue;
            }
            let position = (point.on_a + point.on_b) * 0.5;
            let arms = bodies.map(|body| position - body.pose.position);
            problem.points.push(Point {
                arms,
                bias: bias(law, point.gap, &frame[0], bodies, &arms, time_step),
                impulse: carried(old, point.feature, &frame, law.friction),
            });
            points.push(PointInfo { feature: point.feature, gap: point.gap, position });
        }
        if problem.points.len() as u32 > first_point {
            let manifold = Manifold {
                key: contact.key,
                slots: contact.slots,
                frame,
                friction: law.friction,
                first_point,
            };
            problem.manifolds.push(manifold);
        }
    }
    Assembled { problem, points }
}

/// `e V_n⁻`, with the velocities at the start of the step, or `g/h`.
fn bias(
    law: &ContactLaw,
    gap: f64,
    normal: &Vec3,
    bodies: [&Body; 2],
    arms: &[Vec3; 2],
    time_step: f64,
) -> f64 {
    match law.activation {
        Activation::Predictive => gap.max(0.0) / time_step,
        Activation::GapActivated if law.restitution == 0.0 => 0.0,
        Activation::GapActivated => {
            let at = |side: usize| bodies[side].velocity + bodies[side].angular_velocity.cross(&arms[side]);
            law.restitution * normal.dot(&(at(1) - at(0)))
        }
    }
}

/// The last step's impulse at the same features, turned into the new frame and back into the friction cone.
fn carried(old: &[StoredImpulse], feature: u32, frame: &[Vec3; 3], friction: f64) -> [f64; 3] {
    let Some(stored) = old.iter().find(|stored| stored.feature == feature) else { return [0.0; 3] };
    let local = Vec3::from_fn(|axis, _| frame[axis].dot(&stored.impulse));
    crate::solve::residual::project_on_cone(local, friction).into()
}

/// The impulses of a solution, to be kept for the next step: (home, key, points), in the order of the manifolds.
pub fn impulses_of<'a>(
    candidates: &'a [Candidate],
    assembled: &'a Assembled,
    solved: &'a [[f64; 3]],
) -> impl Iterator<Item = (BodyId, ManifoldKey, Vec<StoredImpulse>)> + 'a {
    let problem = &assembled.problem;
    problem.manifolds.iter().enumerate().map(move |(index, manifold)| {
        let bodies = manifold.slots.map(|slot| candidates[slot as usize].body);
        let stored = |place: usize| StoredImpulse {
            feature: assembled.points[place].feature,
            impulse: (0..3).map(|axis| manifold.frame[axis] * solved[place][axis]).sum(),
        };
        (home(bodies), manifold.key, problem.points_of(index).map(stored).collect())
    })
}
