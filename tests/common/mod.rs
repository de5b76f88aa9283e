//! Builders of small scenes for the physics tests, and what they all measure.
//!
//! Defaults: θ = ½, no correction of penetration, warm start, a solver tolerance of 1e-12, one material. With
//! these a test sees the method itself, not a safeguard around it.

// Every test binary compiles this file for itself and uses a part of it.
#![allow(dead_code)]

pub mod machine;
pub mod reference;

use breccia::geometry::{Convex, Polyhedron, Pose, Quat, Shape, Vec3, mass_properties};
use breccia::scene::{
    Activation, Body, BodyId, ContactLaw, LawTable, Model, Motion, Physics, Prescribed, Scene, Scheme,
};
use breccia::solve::{Options, Twist};
use breccia::step::integrate::{Clock, integrator};
use breccia::step::{DecompositionOptions, StepReport, Stepper};
use decomposition::Solo;
use std::sync::Arc;

pub const GRAVITY: f64 = 9.81;
/// Overlap with which bodies at rest start, m: a gap-activated contact must not depend on the last bit of a
/// position.
pub const SEATED: f64 = 1e-9;
/// Materials that a world knows; all pairs follow its law until another one is set.
const MATERIALS: usize = 3;

pub fn law(friction: f64, restitution: f64) -> ContactLaw {
    ContactLaw { friction, restitution, activation: Activation::GapActivated, stiffness: None }
}

pub fn predictive(friction: f64) -> ContactLaw {
    ContactLaw { friction, restitution: 0.0, activation: Activation::Predictive, stiffness: None }
}

/// A scene in the making.
pub struct World {
    pub scene: Scene,
    pub physics: Physics,
    pub options: Options,
    next_id: u64,
}

impl World {
    pub fn new(time_step: f64, law: ContactLaw) -> Self {
        let mut laws = LawTable::new(MATERIALS);
        for first in 0..MATERIALS {
            for second in first..MATERIALS {
                laws.set(first, second, law);
            }
        }
        let scene = Scene {
            model: Model {
                groups: vec!["all".into()],
                materials: (0..MATERIALS).map(|index| format!("material {index}")).collect(),
                laws,
                ..Default::default()
            },
            ..Default::default()
        };
        let physics = Physics {
            start_time: 0.0,
            time_step,
            scheme: Scheme::default(),
            gravity: Arc::new(|_| Vec3::new(0.0, 0.0, -GRAVITY)),
            contact_margin: None,
            warm_start: true,
            penetration_correction: 0.0,
            correction_slop: 0.0,
            penetration_limit: 0.0,
            patch_reuse: 1e-4,
        };
        let options =
            Options { tolerance: 1e-12, maximum_sweeps: 50_000, check_every: 5, ..Options::default() };
        Self { scene, physics, options, next_id: 0 }
    }

    pub fn with_gravity(mut self, gravity: Vec3) -> Self {
        self.physics.gravity = Arc::new(move |_| gravity);
        self
    }

    fn body(&mut self, shape: Shape, motion: Motion, pose: Pose) -> Body {
        self.next_id += 1;
        Body {
            id: BodyId(self.next_id - 1),
            group: 0,
            material: 0,
            motion,
            shape,
            mass: f64::INFINITY,
            inertia: Vec3::repeat(f64::INFINITY),
            pose,
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
            angular_momentum: Vec3::zeros(),
            anchor: None,
            memory: Box::default(),
        }
    }

    pub fn fixed(&mut self, shape: Shape, pose: Pose) -> &mut Body {
        let body = self.body(shape, Motion::Fixed, pose);
        push(&mut self.scene.state.statics, body)
    }

    /// A half-space through `point` with this outward normal.
    pub fn wall(&mut self, normal: Vec3, point: Vec3) -> &mut Body {
        let pose = Pose::new(turning_z_to(&normal), point);
        self.fixed(Shape::Convex(Convex::HalfSpace), pose)
    }

    pub fn driven(&mut self, shape: Shape, motion: Prescribed) -> &mut Body {
        let index = self.scene.model.motions.len() as u32;
        let body = self.body(shape, Motion::Kinematic(index), motion(0.0));
        self.scene.model.motions.push(motion);
        push(&mut self.scene.state.statics, body)
    }

    /// A free body filled with `density`. `pose` places the frame in which the shape is given.
    pub fn free(&mut self, shape: &Shape, density: f64, pose: Pose) -> &mut Body {
        let properties = mass_properties(shape, density).expect("a shape with a volume");
        let body = self.body(shape.recentred(&properties), Motion::Free, pose.compose(&properties.frame()));
        let body = Body { mass: properties.mass, inertia: properties.principal_inertia, ..body };
        push(&mut self.scene.state.grains, body)
    }

    /// A free body whose mass and principal moments are given, whatever its shape.
    pub fn free_with(&mut self, shape: Shape, mass: f64, inertia: Vec3, pose: Pose) -> &mut Body {
        let body = self.body(shape, Motion::Free, pose);
        push(&mut self.scene.state.grains, Body { mass, inertia, ..body })
    }

    pub fn stepper(self) -> Stepper<'static> {
        Stepper::new(self.scene, self.physics, self.options, DecompositionOptions::default(), &Solo)
    }
}

fn push(bodies: &mut Vec<Body>, body: Body) -> &mut Body {
    bodies.push(body);
    bodies.last_mut().expect("just pushed")
}

/// The shortest turn from +z to a direction.
pub fn turning_z_to(direction: &Vec3) -> Quat {
    Quat::rotation_between(&Vec3::z(), direction)
        .unwrap_or(Quat::from_scaled_axis(Vec3::x() * std::f64::consts::PI))
}

pub fn cuboid(half_extents: Vec3) -> Shape {
    polyhedron(Polyhedron::from_box(half_extents))
}

pub fn polyhedron(polyhedron: Polyhedron) -> Shape {
    Shape::Convex(Convex::Polyhedron(Arc::new(polyhedron)))
}

/// Gives a body an angular velocity, and the angular momentum that belongs to it.
pub fn spin(body: &mut Body, angular_velocity: Vec3) {
    body.angular_velocity = angular_velocity;
    body.angular_momentum = angular_momentum(body);
}

/// `R I Rᵀ ω`, from orientation and angular velocity.
pub fn angular_momentum(body: &Body) -> Vec3 {
    let rotation = body.pose.rotation;
    rotation * rotation.inverse_transform_vector(&body.angular_velocity).component_mul(&body.inertia)
}

/// Steps until the time; every step has to converge.
pub fn run_until(stepper: &mut Stepper, time: f64, mut each: impl FnMut(&Stepper, &StepReport)) {
    let steps = (time / stepper.physics().time_step).round() as u64;
    while stepper.scene().state.step < steps {
        let report = stepper.step().expect("no machine can fail");
        assert!(report.converged, "{report:?}");
        each(stepper, &report);
    }
}

/// The kinetic energy that the free bodies would have after the coming step if nothing touched: that of
/// `v_free` (28).
pub fn free_kinetic_energy(stepper: &Stepper) -> f64 {
    let (mut scene, physics) = (stepper.scene().clone(), stepper.physics());
    let gravity = (physics.gravity)(physics.time(scene.state.step));
    let clock = Clock { start: physics.time(scene.state.step), time_step: physics.time_step };
    let integrator = integrator(physics.scheme);
    integrator.predict(&mut scene.state.grains, &clock);
    let free = integrator.free_motions(&scene.state.grains, &gravity, &clock);
    let energy = |(body, (_, free)): (&Body, &(_, Twist))| {
        let (linear, angular) = (Vec3::from(free.linear), Vec3::from(free.angular));
        0.5 * (body.mass * linear.norm_squared() + angular.dot(&body.angular_momentum))
    };
    scene.state.grains.iter().zip(&free).map(energy).sum()
}

/// Worst value of a kind, for the table in `docs/verification.md`: printed with `--nocapture`.
pub fn measured(what: &str, error: f64, tolerance: f64) {
    println!("measured {what}: {error:.2e} (tolerance {tolerance:.1e})");
    assert!(error <= tolerance, "{what}: {error:e} above {tolerance:e}");
}
