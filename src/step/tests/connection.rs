//! Colours and exchanges that the next step takes over, or not.

use super::{physics, sphere, wall};
use crate::geometry::Vec3;
use crate::scene::{Activation, ContactLaw, LawTable, Model, Scene, State};
use crate::solve::Options;
use crate::solve::colour::{Colour, colour};
use crate::step::{DecompositionOptions, Stepper};
use decomposition::{Comm, Solo, threads};

/// Five spheres on top of each other.
fn column(comm: &dyn Comm) -> Stepper<'_> {
    let mut laws = LawTable::new(1);
    laws.set(
        0,
        0,
        ContactLaw { friction: 0.5, restitution: 0.0, activation: Activation::Predictive, stiffness: None },
    );
    let ball = |k: u64| sphere(1 + k, 0.05, Vec3::new(0.0, 0.0, 0.05 + 0.1 * k as f64), Vec3::zeros());
    let grains = (0..5).filter(|k| *k as usize % comm.size() == comm.rank()).map(ball).collect();
    let scene = Scene {
        model: Model {
            groups: vec!["all".into()],
            materials: vec!["stone".into()],
            laws,
            ..Default::default()
        },
        state: State { statics: vec![wall(0, Vec3::z(), Vec3::zeros())], grains, ..Default::default() },
    };
    Stepper::new(scene, physics(), Options::default(), DecompositionOptions::default(), comm)
}

fn step(stepper: &mut Stepper) {
    stepper.step().expect("no machine can fail");
}

/// Other colours, good ones too, tell whether they were found anew.
#[test]
fn colours_stay_while_contacts_do() {
    let mut stepper = column(&Solo);
    (0..3).for_each(|_| step(&mut stepper));
    let found = stepper.pipeline.connection.colours_mut().clone();
    assert_eq!(found.of.len(), 5);
    let last = found.count as Colour - 1;
    stepper.pipeline.connection.colours_mut().of.iter_mut().for_each(|colour| *colour = last - *colour);
    step(&mut stepper);
    assert_ne!(*stepper.pipeline.connection.colours_mut(), found, "taken over");
    stepper.world.scene.state.grains[4].velocity = Vec3::new(0.0, 0.0, 3.0);
    (0..3).for_each(|_| step(&mut stepper));
    let connection = &mut stepper.pipeline.connection;
    assert_eq!(connection.links().len(), 4, "the uppermost flies");
    let anew = colour(connection.links(), 5);
    assert_eq!(*connection.colours_mut(), anew, "found anew");
}

/// Each rank sees its own part stay or change: they agree.
#[test]
fn one_rank_with_a_change_is_enough() {
    let moved = |comm: &dyn Comm| {
        let mut stepper = column(comm);
        stepper.verify_copies();
        (0..3).for_each(|_| step(&mut stepper));
        for grain in stepper.world.scene.state.grains.iter_mut().filter(|grain| grain.id.0 == 5) {
            grain.velocity = Vec3::new(0.0, 0.0, 0.2);
        }
        // Up, down again, and at rest.
        (0..80).for_each(|_| step(&mut stepper));
        stepper.world.scene.state.grains.clone()
    };
    let alone = moved(&Solo);
    assert!(alone[4].velocity.norm() < 1e-3, "{:?}", alone[4].velocity);
    for size in [2, 3] {
        let mut together: Vec<_> = threads::run(size, |comm| moved(comm)).into_iter().flatten().collect();
        together.sort_by_key(|body| body.id);
        assert_eq!(together, alone, "{size} ranks");
    }
}
