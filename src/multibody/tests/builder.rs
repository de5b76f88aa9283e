//! Descriptions that are wrong get an error that says what, and right ones can be read back.

use super::super::builder::MultibodyBuilder;
use super::super::law::{Law, LawInput, MotionSample, PrescribedMotion};
use super::super::spec::{BodySpec, CutKind, Direction, ForceSpec, JointSpec, LinkLaw};
use super::super::{BodyIndex, JointKind, ModelError, Multibody, MultibodyError, Partitioning, PointMap};
use super::closed_forms::{hinge_z, rod, step};
use crate::geometry::{Mat3, Vec3};

/// Two links, to which a test adds a mistake.
fn arm() -> MultibodyBuilder {
    let mut builder = MultibodyBuilder::new("arm");
    builder.body(rod("upper", 1.0, 0.5)).body(rod("lower", 1.0, 0.4));
    builder.joint(JointSpec::new("shoulder", hinge_z(), "ground", "upper"));
    builder.joint(
        JointSpec::new("elbow", JointKind::Spherical, "upper", "lower").parent_at(Vec3::new(0.5, 0.0, 0.0)),
    );
    builder
}

fn refusal(change: impl FnOnce(&mut MultibodyBuilder) -> &mut MultibodyBuilder) -> ModelError {
    let mut builder = arm();
    change(&mut builder);
    builder.build().expect_err("the description is wrong")
}

#[test]
fn wrong_descriptions_are_refused_with_their_reason() {
    let joint = |name: &str, parent: &str, child: &str| JointSpec::new(name, hinge_z(), parent, child);
    let text = |error: ModelError| error.to_string();
    assert_eq!(MultibodyBuilder::new("nothing").build().expect_err("empty"), ModelError::Empty);
    for name in ["", "a.b", "ground"] {
        let error = refusal(|b| b.body(rod(name, 1.0, 1.0)));
        assert_eq!(error, ModelError::BadName(name.into()));
    }
    let error = refusal(|b| b.body(rod("upper", 1.0, 1.0)));
    assert!(matches!(error, ModelError::Duplicate { what: "bodies", .. }), "{error}");
    let error = refusal(|b| b.body(rod("hand", 1.0, 0.1).point("tip", Vec3::zeros())));
    assert!(matches!(error, ModelError::Duplicate { what: "points of a body", .. }), "{error}");
    let error = refusal(|b| b.body(rod("hand", 1.0, 0.1)));
    assert_eq!(error, ModelError::NotAttached { body: "hand".into() });
    let error = refusal(|b| b.joint(joint("extra", "ground", "lower")));
    assert!(matches!(error, ModelError::CarriedTwice { .. }), "{error}");
    let error = refusal(|b| b.joint(joint("extra", "upper", "hand")));
    assert!(text(error).contains("body `hand`, which does not exist (there are: upper, lower)"));
    let error = refusal(|b| {
        b.body(rod("x", 1.0, 0.1)).body(rod("y", 1.0, 0.1));
        b.joint(joint("xy", "x", "y")).joint(joint("yx", "y", "x"))
    });
    assert_eq!(error, ModelError::Ring { bodies: vec!["x".into(), "y".into()] });
    let error = refusal(|b| {
        b.body(rod("hand", 1.0, 0.1));
        b.joint(JointSpec::new("wrist", JointKind::Revolute { axis: Vec3::zeros() }, "lower", "hand"))
    });
    assert!(matches!(error, ModelError::BadJoint { .. }), "{error}");
    let error = refusal(|b| {
        b.body(rod("hand", 1.0, 0.1));
        b.joint(joint("wrist", "lower", "hand").start(&[0.0, 1.0], &[]))
    });
    assert!(text(error).contains("its position has 2 entries, not 1"));
    let error = refusal(|b| b.cut("c", CutKind::Points { a: "upper.top".into(), b: "lower.tip".into() }));
    assert!(text(error).contains("point `upper.top`"));
    let error = refusal(|b| b.cut("c", CutKind::Points { a: "upper.tip".into(), b: "upper.origin".into() }));
    assert!(matches!(error, ModelError::BadCut { .. }), "{error}");
    let rod_of = |length| CutKind::Rod { a: "ground.origin".into(), b: "lower.tip".into(), length };
    assert!(matches!(refusal(|b| b.cut("c", rod_of(0.0))), ModelError::BadCut { .. }));
    let error = refusal(|b| b.partitioning(Partitioning::Fixed(vec!["wrist".into()])));
    assert!(text(error).contains("the partition refers to coordinate `wrist`"));
}

#[test]
fn wrong_bodies_forces_and_motions_are_refused() {
    let body = |mass: f64, inertia: Mat3| {
        refusal(|b| {
            b.body(BodySpec::new("hand", mass, Vec3::zeros(), inertia)).joint(JointSpec::new(
                "wrist",
                hinge_z(),
                "lower",
                "hand",
            ))
        })
    };
    let moments = |a: f64, b: f64, c: f64| Mat3::from_diagonal(&Vec3::new(a, b, c));
    let mut skew = moments(1.0, 1.0, 1.0);
    skew[(0, 1)] = 0.1;
    for (mass, inertia) in [
        (-1.0, moments(1.0, 1.0, 1.0)),
        (f64::NAN, moments(1.0, 1.0, 1.0)),
        (1.0, moments(1.0, 1.0, 2.5)),
        (1.0, moments(1.0, -1.0, 1.0)),
        (1.0, moments(1.0, f64::INFINITY, 1.0)),
        (1.0, skew),
    ] {
        assert!(matches!(body(mass, inertia), ModelError::BadBody { .. }), "{mass} {inertia}");
    }
    let spring = |coordinate: &str, stiffness: f64| ForceSpec::JointSpring {
        coordinate: coordinate.into(),
        stiffness,
        damping: 1.0,
        rest: 0.0,
    };
    assert!(matches!(refusal(|b| b.force("f", spring("wrist", 1.0))), ModelError::Unknown { .. }));
    assert!(matches!(refusal(|b| b.force("f", spring("elbow.wx", 1.0))), ModelError::BadForce { .. }));
    assert!(matches!(refusal(|b| b.force("f", spring("shoulder", f64::NAN))), ModelError::BadForce { .. }));
    let mut damped = arm();
    damped.force("f", spring("elbow.wx", 0.0));
    assert!(damped.build().is_ok(), "a ball joint can be damped");
    let link = |a: &str, b: &str| ForceSpec::Link {
        a: a.into(),
        b: b.into(),
        law: LinkLaw::Law(Law::Constant(1.0)),
    };
    assert!(matches!(refusal(|b| b.force("f", link("upper.tip", "upper"))), ModelError::BadForce { .. }));
    let direction = Direction::World(Vec3::x());
    let push = ForceSpec::Force { point: "ground.origin".into(), direction, law: Law::Constant(1.0) };
    assert!(matches!(refusal(|b| b.force("f", push)), ModelError::BadForce { .. }));
    let still =
        || PrescribedMotion::new(|_| MotionSample { position: 0.0, velocity: 0.0, acceleration: 0.0 });
    let error = refusal(|b| b.prescribe("elbow.wx", still()));
    assert!(matches!(error, ModelError::BadPrescription { .. }), "{error}");
    let error = refusal(|b| b.prescribe("shoulder", still()).prescribe("shoulder", still()));
    assert!(matches!(error, ModelError::BadPrescription { .. }), "{error}");
}

#[test]
fn names_lead_back_to_indices() {
    let mut builder = MultibodyBuilder::new("names");
    // Declared child first: the model orders them.
    builder.body(rod("lower", 1.0, 0.4)).body(rod("upper", 1.0, 0.5));
    builder.joint(JointSpec::new("elbow", JointKind::Spherical, "upper", "lower"));
    builder.joint(JointSpec::new("shoulder", hinge_z(), "ground", "upper"));
    builder.quantity("target", 2.5);
    let model = builder.build().expect("valid");
    assert_eq!(model.body("upper"), Some(BodyIndex(0)));
    assert_eq!(model.parent(BodyIndex(1)), Some(BodyIndex(0)));
    assert_eq!(model.coordinate("shoulder"), Some(0));
    assert_eq!(model.coordinate("shoulder.angle"), Some(0));
    assert_eq!(model.coordinate("elbow.wz"), Some(3));
    assert_eq!(model.coordinate("elbow"), None);
    assert_eq!(model.position_index(3), None);
    assert_eq!((model.nq(), model.nv()), (5, 4));
    assert_eq!(model.quantity("target"), Some(0));
    assert_eq!(model.point("lower.tip").expect("named").position.x, 0.4);
    let text = model.describe();
    assert!(
        text.contains("upper (1 kg): shoulder\n    lower (1 kg): elbow.wx, elbow.wy, elbow.wz"),
        "{text}"
    );
}

#[test]
fn laws_see_quantities_and_their_values_are_reported() {
    let mut builder = arm();
    builder.quantity("phase", 0.0);
    let law = Law::function(
        |input: &LawInput| if input.quantities[0] > 0.5 { 7.0 - input.velocities[0] } else { input.time },
    );
    builder.force("motor", ForceSpec::Actuator { coordinate: "shoulder".into(), law });
    let mut machine = Multibody::new(builder.build().expect("valid"), 3.0).expect("tree");
    machine.accelerations().expect("regular");
    assert_eq!(machine.force_values(), [3.0]);
    machine.set_quantity(0, 1.0);
    machine.accelerations().expect("regular");
    assert_eq!(machine.force_values(), [7.0]);
}

#[test]
fn a_law_that_is_not_a_number_stops_the_machine() {
    let mut builder = arm();
    let law = Law::function(|_| f64::NAN);
    builder.force("motor", ForceSpec::Actuator { coordinate: "shoulder".into(), law });
    let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
    assert!(matches!(machine.reduce(0.0, 1e-3), Err(MultibodyError::NotANumber { .. })));
    assert!(matches!(machine.finish(&[0.0]), Err(MultibodyError::WrongLength { given: 1, needed: 4, .. })));
    assert!(matches!(machine.finish(&[f64::NAN; 4]), Err(MultibodyError::NotANumber { .. })));
}

#[test]
fn a_coordinate_that_moves_no_mass_is_named() {
    let mut builder = MultibodyBuilder::new("ghost");
    builder.body(BodySpec::new("ghost", 0.0, Vec3::zeros(), Mat3::zeros()));
    builder.joint(JointSpec::new("rail", JointKind::Prismatic { axis: Vec3::x() }, "ground", "ghost"));
    let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
    assert_eq!(machine.reduce(0.0, 1e-3), Err(MultibodyError::Massless { coordinate: "rail".into() }));
}

#[test]
fn operators_have_the_bodies_with_contacts() {
    let mut builder = arm();
    builder.body(rod("hand", 0.3, 0.1).with_contacts());
    builder.joint(JointSpec::new("wrist", hinge_z(), "lower", "hand").start(&[0.4], &[1.0]));
    builder.body(rod("cart", 0.3, 0.1).with_contacts());
    builder.joint(JointSpec::new("rail", JointKind::Prismatic { axis: Vec3::x() }, "ground", "cart"));
    builder.prescribe(
        "rail",
        PrescribedMotion::new(|t| MotionSample { position: t * t, velocity: 2.0 * t, acceleration: 2.0 }),
    );
    let mut machine = Multibody::new(builder.build().expect("valid"), 0.0).expect("tree");
    step(&mut machine, 1e-2);
    let operators = machine.operators().clone();
    assert_eq!(operators.bodies.iter().map(|body| body.body).collect::<Vec<_>>(), [2, 3]);
    let PointMap::Rigid(cart) = &operators.bodies[1].points;
    assert_eq!(cart.drift[0], 0.02, "the prescribed cart moves whatever v_u is");
    assert_eq!(cart.drift_before[0], 0.0);
}
