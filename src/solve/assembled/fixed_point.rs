//! The law by a fixed point on slip speeds.

use super::bodies::Bodies;
use super::interior::Convex;
use super::{Budget, ContactSystem, Progress};
use crate::geometry::Vec3;
use crate::law::coulomb::project_on_cone;

pub fn interior_point(system: &ContactSystem, progress: &mut Progress, budget: Budget) {
    let Some(bodies) = &system.bodies else { return };
    let trace = std::env::var("BRECCIA_TRACE").is_ok();
    let Ok(pattern) = bodies.pattern() else { return };
    if trace { eprintln!("nodes {} blocks {}", bodies.nodes(), pattern.stored()); }
    let mut slip: Vec<f64> = progress.velocities.iter().map(|u| u.y.hypot(u.z)).collect();
    let count = system.contacts() as f64;
    let speed = (system.free.iter().map(Vec3::norm_squared).sum::<f64>() / count).sqrt();
    let weight = (0..system.contacts()).map(|c| system.delassus.diagonal(c)[(0, 0)]).sum::<f64>() / count;
    let outer: usize = std::env::var("BRECCIA_OUTER").ok().and_then(|x| x.parse().ok()).unwrap_or(5);
    for k in 0..outer {
        let convex = Convex { bodies, pattern: &pattern, friction: &system.friction, slip: &slip };
        let mut best = (f64::INFINITY, 0usize, Vec::new());
        let mut n = 0;
        let begun = std::time::Instant::now();
        let r = convex.solve(convex.start(speed / weight, speed), |convex, point| {
            let r: Vec<[f64; 3]> = convex.impulses(point).iter().map(|r| (*r).into()).collect();
            let error = convex_error(system, bodies, &r, &slip);
            if trace { eprintln!("    convex error {error:.2e}"); }
            if error < best.0 { best = (error, n, r); }
            n += 1;
            error < 1e-13 || n > best.1 + 6
        });
        let Ok(point) = r else { return };
        progress.impulses = best.2;
        progress.newton_steps += point.steps;
        progress.measure(system);
        if trace { eprintln!("outer {k}: steps {} convex {:.2e} error {:.3e} {:.2?}", point.steps, best.0, progress.error, begun.elapsed()); }
        if progress.error < budget.tolerance { return; }
        slip = progress.velocities.iter().map(|u| u.y.hypot(u.z)).collect();
    }
}

fn convex_error(system: &ContactSystem, _bodies: &Bodies, r: &[[f64; 3]], slip: &[f64]) -> f64 {
    let mut u = vec![Vec3::zeros(); r.len()];
    system.delassus.velocities(&system.free, r, &mut u);
    let (mut sum, mut a, mut b, mut c) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..r.len() {
        let rr = Vec3::from(r[i]);
        let mu = system.friction[i];
        let hat = u[i] + Vec3::new(mu * slip[i], 0.0, 0.0);
        sum += (rr - project_on_cone(rr - hat, mu)).norm_squared();
        a += rr.norm_squared(); b += u[i].norm_squared(); c += system.free[i].norm_squared();
    }
    (sum / f64::max(a, f64::max(b, c))).sqrt()
}
