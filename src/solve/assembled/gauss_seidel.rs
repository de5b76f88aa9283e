//! The nonsmooth Gauss–Seidel iteration on an assembled problem: contact after contact in the order of the
//! file, each solved exactly, alone (`nsgs`) or accelerated by a nonlinear conjugate gradient (`nncg`) as in
//! [`crate::solve`].

use super::{Budget, ContactSystem, Progress};
use crate::geometry::Vec3;
use crate::law::coulomb::Repeated;

/// All that sweeps need, prepared once.
pub struct GaussSeidel<'a> {
    system: &'a ContactSystem,
    locals: Vec<Repeated>,
    /// The skew part of each diagonal block as a vector: `½ (W − Wᵀ) r = skew × r`. Zero if W is symmetric.
    skew: Vec<Vec3>,
}

impl<'a> GaussSeidel<'a> {
    pub fn new(system: &'a ContactSystem) -> Self {
        let contacts = 0..system.contacts();
        let locals = contacts
            .clone()
            .map(|contact| Repeated::new(system.delassus.diagonal(contact), system.friction[contact]))
            .collect();
        let skew = contacts.map(|contact| {
            let w = system.delassus.diagonal(contact);
            Vec3::new(w[(2, 1)] - w[(1, 2)], w[(0, 2)] - w[(2, 0)], w[(1, 0)] - w[(0, 1)]) * 0.5
        });
        Self { locals, skew: skew.collect(), system }
    }

    /// One visit to every contact.
    pub fn sweep(&mut self, impulses: &mut [[f64; 3]]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature is there.
            return unsafe { self.sweep_avx2(impulses) };
        }
        self.sweep_any(impulses);
    }

    /// As [`Self::sweep_any`], bit by bit.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn sweep_avx2(&mut self, impulses: &mut [[f64; 3]]) {
        let system = self.system;
        for (contact, local) in self.locals.iter_mut().enumerate() {
            let others = system.delassus.gather_avx2(contact, &system.free[contact], impulses);
            let velocity = others + self.skew[contact].cross(&Vec3::from(impulses[contact]));
            impulses[contact] = local.solve(&velocity);
        }
    }

    fn sweep_any(&mut self, impulses: &mut [[f64; 3]]) {
        let system = self.system;
        for (contact, local) in self.locals.iter_mut().enumerate() {
            let others = system.delassus.gather(contact, &system.free[contact], impulses);
            let velocity = others + self.skew[contact].cross(&Vec3::from(impulses[contact]));
            impulses[contact] = local.solve(&velocity);
        }
    }
}

/// Sweeps until the tolerance is met, the budget is spent, or `give_up` says so at a measurement.
pub fn nsgs(
    system: &ContactSystem,
    progress: &mut Progress,
    budget: Budget,
    give_up: impl Fn(&Progress) -> bool,
) {
    let mut iteration = GaussSeidel::new(system);
    while progress.sweeps < budget.sweeps {
        iteration.sweep(&mut progress.impulses);
        progress.sweeps += 1;
        if progress.is_due(budget) && (progress.measure(system) <= budget.tolerance || give_up(progress)) {
            return;
        }
    }
}

/// The accelerated iteration; equations as in `crate::solve::accelerate`, the norm weighted with the diagonal
/// of `W`.
pub fn nncg(system: &ContactSystem, progress: &mut Progress, budget: Budget) {
    let mut iteration = GaussSeidel::new(system);
    let weight = |contact: usize| system.delassus.diagonal(contact).diagonal();
    let mut direction = vec![[0.0; 3]; system.contacts()];
    let mut before = progress.impulses.clone();
    let mut last = f64::INFINITY;
    while progress.sweeps < budget.sweeps {
        before.copy_from_slice(&progress.impulses);
        iteration.sweep(&mut progress.impulses);
        progress.sweeps += 1;
        if progress.is_due(budget) && progress.measure(system) <= budget.tolerance {
            return;
        }
        // The last sweep is left as it is: an extrapolated impulse may lie outside its cone.
        if progress.sweeps >= budget.sweeps {
            return;
        }
        let mut square = 0.0;
        for (contact, (now, before)) in progress.impulses.iter().zip(&before).enumerate() {
            let weight = weight(contact);
            square += (0..3).map(|axis| weight[axis] * (now[axis] - before[axis]).powi(2)).sum::<f64>();
        }
        let beta = if square < last { square / last } else { 0.0 };
        last = square;
        for ((now, before), direction) in progress.impulses.iter_mut().zip(&before).zip(&mut direction) {
            for axis in 0..3 {
                let step = now[axis] - before[axis];
                let carried = beta * direction[axis];
                now[axis] += carried;
                direction[axis] = carried + step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::heap;
    use super::*;

    /// The wide code gives the bits of the plain one.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn registers_do_not_change_a_bit() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let system = heap(40, 3, 7);
        let (mut one, mut other) = (GaussSeidel::new(&system), GaussSeidel::new(&system));
        let (mut a, mut b) = (vec![[0.0; 3]; system.contacts()], vec![[0.0; 3]; system.contacts()]);
        for _ in 0..20 {
            // SAFETY: the feature is there.
            unsafe { one.sweep_avx2(&mut a) };
            other.sweep_any(&mut b);
        }
        assert!(a.iter().flatten().any(|&value| value != 0.0));
        assert_eq!(a, b);
    }
}
