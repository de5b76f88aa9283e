//! A step that would leave energy that nobody has put in is taken back; the work of gravity that changes.

use super::*;

fn stepper(comm: &dyn Comm, physics: Physics) -> Stepper<'_> {
    let scene = scene(comm.rank(), comm.size(), Activation::Predictive);
    Stepper::new(scene, physics, solve::Options::default(), DecompositionOptions::default(), comm)
}

/// A step that is over but for its last check leaves nothing behind, and the run can go on.
#[test]
fn a_step_with_too_much_energy_is_taken_back() {
    for penetration_limit in [0.0, 1e-4] {
        let tried = |comm: &dyn Comm| {
            let physics = || Physics { penetration_limit, ..physics() };
            let mut straight = stepper(comm, physics());
            straight.let_stop();
            straight.open_account();
            for _ in 0..80 {
                straight.step().expect("no limit");
            }
            let mut other = stepper(comm, physics());
            other.let_stop();
            other.open_account();
            for _ in 0..60 {
                other.step().expect("no limit");
            }
            let before = other.snapshot();
            assert!(!before.state.impulses.is_empty() || comm.size() > 1);
            other.set_energy_limit(EnergyLimit { margin: f64::NEG_INFINITY, share: 0.0 });
            let broken = other.step().expect_err("always too much");
            assert!(other.is_put_back());
            assert_eq!(other.snapshot(), before);
            other.set_energy_limit(EnergyLimit { margin: 1.0, share: 1.0 });
            for _ in 0..20 {
                other.step().expect("contacts only take energy");
            }
            assert_eq!(other.snapshot(), straight.snapshot());
            (broken, other.scene().state.grains.clone())
        };
        let (broken, alone) = tried(&Solo);
        let StepError::TooMuchEnergy(found) = &broken else { panic!("{broken:?}") };
        let Excess { fastest: Some((body, speed)), fastest_of_machines: None, .. } = &**found else {
            panic!("{found:?}")
        };
        assert!(alone.iter().any(|other| other.id == *body) && speed.ends_with("m/s"), "{broken:?}");
        let parts = threads::run(3, |comm| tried(comm));
        assert!(parts.iter().all(|(other, _)| *other == broken), "all ranks say the same");
        let mut together: Vec<Body> = parts.into_iter().flat_map(|(_, grains)| grains).collect();
        together.sort_by_key(|body| body.id);
        assert_eq!(together, alone);
    }
}

/// Nothing touches, so the work of gravity is all there is: θ = ½ makes it exact.
#[test]
fn gravity_that_changes_does_work() {
    let turning = |time: f64| Vec3::new(5.0 * (40.0 * time).sin(), 0.0, -9.81 + 3.0 * (90.0 * time).cos());
    let physics = Physics { gravity: Arc::new(turning), ..physics() };
    let grains = vec![sphere(1, 0.1, Vec3::new(3.0, 0.0, 70.0), Vec3::zeros())];
    let scene = Scene {
        model: Model { laws: LawTable::new(1), ..Default::default() },
        state: State { grains, ..Default::default() },
    };
    let (options, decomposition) = (solve::Options::default(), DecompositionOptions::default());
    let mut stepper = Stepper::new(scene, physics, options, decomposition, &Solo);
    stepper.open_account();
    let mut most = 0.0f64;
    for _ in 0..200 {
        stepper.step().expect("a flight");
        let observed = stepper.observe();
        most = most.max(observed.work[0].abs());
        assert!(observed.balance.abs() < 1e-9, "{}", observed.balance);
    }
    assert!(most > 100.0, "{most}");
}
