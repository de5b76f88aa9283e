//! The law by a fixed point on slip speeds.

use super::bodies::Bodies;
use super::interior::Convex;
use super::proximal::{Law, Proximal};
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
    let mut last: Vec<f64> = Vec::new();
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
        let next: Vec<f64> = progress.velocities.iter().map(|u| u.y.hypot(u.z)).collect();
        let step: Vec<f64> = next.iter().zip(&slip).map(|(a, b)| a - b).collect();
        let norm = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
        let cos = if last.is_empty() { 0.0 } else { step.iter().zip(&last).map(|(a, b)| a * b).sum::<f64>() / norm(&step) / norm(&last) };
        let biggest = (0..step.len()).max_by(|a, b| step[*a].abs().total_cmp(&step[*b].abs())).unwrap_or(0);
        if trace { eprintln!("   step {:.2e} of {:.2e} cos {cos:.4} ratio {:.3} biggest {biggest} {:.2e} of {:.2e}", norm(&step), norm(&next), norm(&step) / norm(&last), step[biggest], next[biggest]); }
        let ratio = norm(&step) / norm(&last);
        if env("BRECCIA_AITKEN", 1.0) < cos && ratio < 1.0 {
            let factor = 1.0 / (1.0 - ratio * cos);
            eprintln!("   aitken {factor}");
            slip = slip.iter().zip(&step).map(|(a, b)| (a + b * factor).max(0.0)).collect();
            last.clear();
        } else {
            slip = next;
            last = step;
        }
    }
    newton(system, bodies, &pattern, progress, budget);
}

fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|x| x.parse().ok()).unwrap_or(default)
}

fn newton(system: &ContactSystem, bodies: &Bodies, pattern: &super::factor::Pattern, progress: &mut Progress, budget: Budget) {
    let Ok(mass_pattern) = bodies.mass_pattern() else { return };
    let Ok(mass) = bodies.factorise_mass(&mass_pattern) else { return };
    let scale: Vec<f64> = (0..system.contacts()).map(|c| system.delassus.diagonal(c).trace() / 3.0).collect();
    let mut sigma = env("BRECCIA_SIGMA", 1e-4);
    let least = env("BRECCIA_LEAST", 1e-8);
    for round in 0..env("BRECCIA_ROUNDS", 30.0) as usize {
        let begun = std::time::Instant::now();
        let centre: Vec<Vec3> = progress.impulses.iter().map(|r| Vec3::from(*r)).collect();
        let proximal = Proximal { bodies, pattern, friction: &system.friction, law: Law::Coulomb,
            sigma: scale.iter().map(|x| x * sigma).collect(), centre: &centre };
        let velocities = bodies.velocities(&mass, &centre);
        let mut point = proximal.at(&mass, velocities);
        let first = point.merit;
        let before = progress.error;
        let mut merits = vec![];
        for _ in 0..15 {
            match proximal.step(&mass, &point, 8) {
                Ok(Some((next, length))) => { point = next; merits.push((point.merit, length)); }
                _ => break,
            }
            progress.newton_steps += 1;
            if point.merit < 1e-6 * first || point.merit < 1e-13 { break; }
        }
        let r: Vec<[f64; 3]> = point.impulses.iter().map(|r| (*r).into()).collect();
        let old = std::mem::replace(&mut progress.impulses, r);
        progress.measure(system);
        eprintln!("round {round} sigma {sigma:.0e} merit {first:.2e}: {} error {before:.2e} -> {:.2e} {:.2?}",
            merits.iter().map(|(m, l)| format!("{m:.1e}({l:.3})")).collect::<Vec<_>>().join(" "), progress.error, begun.elapsed());
        if progress.error < budget.tolerance { return; }
        if progress.error < before { if merits.len() < 8 { sigma = (sigma * 0.1).max(least); } }
        else { progress.impulses = old; progress.measure(system); sigma = (sigma * 10.0).min(1e2); }
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
