//! Free rotation against closed forms and against an integrator of its own.

mod common;

use breccia::geometry::{Pose, Quat, Vec3};
use breccia::scene::Body;
use breccia::step::Stepper;
use common::{World, angular_momentum, cuboid, law, measured, spin};

/// A body alone in space, with given principal moments.
fn top(time_step: f64, inertia: Vec3, angular_velocity: Vec3) -> Stepper<'static> {
    let mut world = World::new(time_step, law(0.0, 0.0)).with_gravity(Vec3::zeros());
    let pose = Pose::new(Quat::from_euler_angles(0.3, -0.8, 1.1), Vec3::zeros());
    let body = world.free_with(cuboid(Vec3::new(0.3, 0.2, 0.1)), 1.0, inertia, pose);
    let world_frame = body.pose.rotation * angular_velocity;
    spin(body, world_frame);
    world.stepper()
}

fn energy(body: &Body) -> f64 {
    0.5 * body.angular_velocity.dot(&body.angular_momentum)
}

const ASYMMETRIC: Vec3 = Vec3::new(1.0, 2.0, 3.5);
const TUMBLE: Vec3 = Vec3::new(1.0, 2.5, -1.5);

/// Euler's equations in the body frame and q̇ = ½ q ω, by the classical Runge–Kutta method with very small
/// steps.
fn integrated(start: &Body, time: f64, steps: usize) -> Quat {
    type State = (nalgebra::Quaternion<f64>, Vec3);
    let inertia = start.inertia;
    let rate = |(q, w): &State| -> State {
        let torque = -w.cross(&w.component_mul(&inertia));
        (q * nalgebra::Quaternion::from_imag(*w) * 0.5, torque.component_div(&inertia))
    };
    let moved = |a: &State, b: &State, h: f64| -> State { (a.0 + b.0 * h, a.1 + b.1 * h) };
    let rotation = start.pose.rotation;
    let mut state: State =
        (rotation.into_inner(), rotation.inverse_transform_vector(&start.angular_velocity));
    let h = time / steps as f64;
    for _ in 0..steps {
        let k1 = rate(&state);
        let k2 = rate(&moved(&state, &k1, 0.5 * h));
        let k3 = rate(&moved(&state, &k2, 0.5 * h));
        let k4 = rate(&moved(&state, &k3, h));
        let sum = moved(&moved(&k1, &k2, 2.0), &moved(&k4, &k3, 2.0), 1.0);
        state = moved(&state, &sum, h / 6.0);
    }
    Quat::new_normalize(state.0)
}

/// The angular momentum is carried and never computed anew; that orientation and angular velocity still
/// belong to it is the scheme's business: ω = I(q*)⁻¹ L with q* from two rounds of a fixed point, so the two
/// differ by O(h³).
#[test]
fn a_free_top_keeps_its_momentum_and_nearly_its_energy() {
    for (time_step, in_energy, in_belonging) in [(1e-3, 1e-6, 2e-8), (1e-4, 1e-8, 2e-11)] {
        let mut stepper = top(time_step, ASYMMETRIC, TUMBLE);
        let start = stepper.scene().state.grains[0].clone();
        let mut worst = [0.0f64; 3];
        let mut early = 0.0;
        for step in 0..10_000 {
            if step == 5_000 {
                early = worst[1];
            }
            stepper.step().expect("no machine can fail");
            let body = &stepper.scene().state.grains[0];
            let scale = start.angular_momentum.norm();
            worst[0] = worst[0].max((body.angular_momentum - start.angular_momentum).norm() / scale);
            worst[1] = worst[1].max((energy(body) / energy(&start) - 1.0).abs());
            worst[2] = worst[2].max((angular_momentum(body) - start.angular_momentum).norm() / scale);
        }
        // The scheme is nearly symmetric in time: the energy swings by (ω h)²/10 and goes nowhere.
        assert!(time_step < 1e-3 || worst[1] < 1.2 * early, "a drift: {early:e}, then {:e}", worst[1]);
        measured(&format!("top's momentum, 10⁴ steps, h {time_step}, relative"), worst[0], 1e-12);
        measured(&format!("top's energy, 10⁴ steps, h {time_step}, relative"), worst[1], in_energy);
        measured(&format!("top's R I Rᵀ ω against L, h {time_step}, relative"), worst[2], in_belonging);
    }
}

#[test]
fn a_free_top_turns_with_second_order_accuracy() {
    let time = 2.0;
    let error = |time_step: f64| {
        let mut stepper = top(time_step, ASYMMETRIC, TUMBLE);
        let exact = integrated(&stepper.scene().state.grains[0], time, 40_000);
        common::run_until(&mut stepper, time, |_, _| ());
        stepper.scene().state.grains[0].pose.rotation.angle_to(&exact)
    };
    let errors = [4e-3, 2e-3, 1e-3, 5e-4].map(error);
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        println!("measured order of the free top: {order:.3}, error {:.2e} rad", pair[1]);
        assert!((order - 2.0).abs() < 0.1, "order {order}, errors {errors:?}");
    }
    measured("free top after 2 s, h 0.0005, rad", errors[3], 2e-6);
}

/// Spun about the axis of the middle moment it turns over, again and again; about the others it does not.
#[test]
fn only_the_middle_axis_flips() {
    for axis in 0..3 {
        let mut along = Vec3::repeat(1e-3);
        along[axis] = 6.0;
        let mut stepper = top(1e-3, ASYMMETRIC, along);
        let mut flips = 0;
        let mut upright = true;
        common::run_until(&mut stepper, 20.0, |stepper, _| {
            let body = &stepper.scene().state.grains[0];
            let now = body.pose.rotation.inverse_transform_vector(&body.angular_velocity)[axis];
            if (now > 5.0) != upright && now.abs() > 5.0 {
                flips += 1;
                upright = !upright;
            }
        });
        println!("axis {axis}: {flips} flips in 20 s");
        assert_eq!(flips > 2, axis == 1, "axis {axis} flipped {flips} times");
    }
}

/// The time between two flips is 2 K(k)/p, an elliptic integral: for moments I₁ < I₂ < I₃, energy T and
/// momentum L with L² > 2 T I₂,
///
/// ```text
/// p² = (I₃ − I₂)(L² − 2 T I₁)/(I₁ I₂ I₃),  k² = (I₂ − I₁)(2 T I₃ − L²)/((I₃ − I₂)(L² − 2 T I₁))
/// K = π/(2 agm(1, √(1 − k²)))
/// ```
#[test]
fn flips_come_in_the_period_of_the_elliptic_integral() {
    let start = Vec3::new(1e-3, 6.0, 0.05);
    let mut stepper = top(5e-4, ASYMMETRIC, start);
    let momentum = start.component_mul(&ASYMMETRIC);
    let (l2, t2) = (momentum.norm_squared(), start.dot(&momentum));
    let [i1, i2, i3] = [ASYMMETRIC.x, ASYMMETRIC.y, ASYMMETRIC.z];
    assert!(t2 * i2 < l2);
    let p = ((i3 - i2) * (l2 - t2 * i1) / (i1 * i2 * i3)).sqrt();
    let k2 = (i2 - i1) * (t2 * i3 - l2) / ((i3 - i2) * (l2 - t2 * i1));
    let (mut a, mut g) = (1.0, (1.0 - k2).sqrt());
    for _ in 0..20 {
        (a, g) = (0.5 * (a + g), f64::sqrt(a * g));
    }
    let exact = std::f64::consts::PI / a / p;
    let mut zeros: Vec<f64> = Vec::new();
    let mut last = 6.0;
    common::run_until(&mut stepper, 20.0, |stepper, report| {
        let body = &stepper.scene().state.grains[0];
        let now = body.pose.rotation.inverse_transform_vector(&body.angular_velocity).y;
        if now * last < 0.0 {
            zeros.push(report.time - 5e-4 * now / (now - last));
        }
        last = now;
    });
    assert!(zeros.len() > 3);
    let found = (zeros[zeros.len() - 1] - zeros[0]) / (zeros.len() - 1) as f64;
    // Second order: (ω h)² = 1e-5, and near the saddle the period hangs on the logarithm of the smallness of
    // the start.
    measured("period of the flips, relative", (found / exact - 1.0).abs(), 1e-4);
}

/// The axis of a symmetric top goes round L with the rate |L|/I₁, at a constant angle.
#[test]
fn a_symmetric_top_precesses_at_the_rate_of_the_closed_form() {
    for (inertia, time_step) in
        [(Vec3::new(1.0, 1.0, 1.8), 1e-3), (Vec3::new(2.0, 2.0, 0.5), 1e-3), (Vec3::new(1.0, 1.0, 1.8), 1e-4)]
    {
        let mut stepper = top(time_step, inertia, Vec3::new(0.8, 0.0, 3.0));
        let body = &stepper.scene().state.grains[0];
        let (momentum, start) = (body.angular_momentum, body.pose.rotation * Vec3::z());
        let rate = momentum.norm() / inertia.x;
        let mut worst = 0.0f64;
        common::run_until(&mut stepper, 5.0, |stepper, report| {
            let axis = stepper.scene().state.grains[0].pose.rotation * Vec3::z();
            let exact = Quat::from_scaled_axis(momentum.normalize() * (rate * report.time)) * start;
            worst = worst.max((axis - exact).norm());
        });
        // A rotation by ω h about a fixed axis is exact; the first half step starts beside the scheme's own
        // orbit. Second order.
        let bound = (Vec3::new(0.8, 0.0, 3.0).norm() * time_step).powi(2);
        measured(&format!("symmetric top, I {}, h {time_step}, rad after 5 s", inertia.z), worst, bound);
    }
}
