//! What is left to solve: how the error of the velocities is spread over the bodies.

use breccia::geometry::{Mat3, Vec3};
use breccia::solve::{Problem, Twist};
use nalgebra::{Matrix6, Vector6};

/// An error, by its kinetic energy.
pub struct Spread {
    /// Of it, that of clusters which move as if they were rigid: what a correction of clusters could remove
    /// at most.
    pub clusters: Vec<Share>,
    /// Of it, rotation.
    pub rotation: f64,
    /// Of it, that of the tenth of the bodies that have most.
    pub hottest_tenth: f64,
}

pub struct Share {
    pub share: f64,
    /// That of an error without any order: the clusters' degrees of freedom by those of the bodies.
    pub by_chance: f64,
}

struct Erring {
    place: Vec3,
    mass: f64,
    inertia: Mat3,
    linear: Vec3,
    angular: Vec3,
}

impl Erring {
    fn turning(&self) -> f64 {
        self.angular.dot(&(self.inertia * self.angular))
    }

    fn energy(&self) -> f64 {
        self.mass * self.linear.norm_squared() + self.turning()
    }
}

/// Of `found` against `exact`, with the places of the bodies by slot; clusters of at most so many bodies.
pub fn spread(
    problem: &Problem,
    places: &[Vec3],
    found: &[Twist],
    exact: &[Twist],
    sizes: &[usize],
) -> Spread {
    let difference = |a: [f64; 3], b: [f64; 3]| Vec3::from(a) - Vec3::from(b);
    let movable = (0..problem.inertia.len()).filter(|&slot| problem.inertia[slot].is_movable());
    let mut bodies: Vec<Erring> = movable
        .map(|slot| Erring {
            place: places[slot],
            mass: 1.0 / problem.inertia[slot].inverse_mass,
            inertia: problem.inertia[slot].inverse_tensor().try_inverse().expect("a body that turns"),
            linear: difference(found[slot].linear, exact[slot].linear),
            angular: difference(found[slot].angular, exact[slot].angular),
        })
        .collect();
    let mut energies: Vec<f64> = bodies.iter().map(Erring::energy).collect();
    energies.sort_by(|a, b| b.total_cmp(a));
    let total: f64 = energies.iter().sum();
    let rotation: f64 = bodies.iter().map(Erring::turning).sum();
    let clusters = sizes
        .iter()
        .map(|&size| {
            let (energy, count) = in_clusters(&mut bodies, size);
            Share { share: energy / total, by_chance: count as f64 / energies.len() as f64 }
        })
        .collect();
    Spread {
        clusters,
        rotation: rotation / total,
        hottest_tenth: energies[..energies.len() / 10].iter().sum::<f64>() / total,
    }
}

/// The energy of clusters, halved along their longest side until they are small enough, and how many there
/// are.
fn in_clusters(bodies: &mut [Erring], size: usize) -> (f64, usize) {
    if bodies.len() <= size {
        return (rigid_energy(bodies), 1);
    }
    let (mut low, mut high) = (bodies[0].place, bodies[0].place);
    for body in &*bodies {
        (low, high) = (low.inf(&body.place), high.sup(&body.place));
    }
    let axis = (high - low).imax();
    bodies.sort_by(|a, b| a.place[axis].total_cmp(&b.place[axis]));
    let (one, other) = bodies.split_at_mut(bodies.len() / 2);
    let ((a, m), (b, n)) = (in_clusters(one, size), in_clusters(other, size));
    (a + b, m + n)
}

/// The energy of the rigid motion that is nearest to the error of these bodies.
fn rigid_energy(bodies: &[Erring]) -> f64 {
    let centre = bodies.iter().map(|body| body.place).sum::<Vec3>() / bodies.len() as f64;
    let (mut masses, mut momentum) = (Matrix6::zeros(), Vector6::zeros());
    for body in bodies {
        let arm = body.place - centre;
        let cross = arm.cross_matrix() * body.mass;
        let mut add = |row: usize, column: usize, part: Mat3| {
            let mut view = masses.fixed_view_mut::<3, 3>(row, column);
            view += part;
        };
        add(0, 0, Mat3::identity() * body.mass);
        add(0, 3, -cross);
        add(3, 0, cross);
        add(3, 3, body.inertia - cross * arm.cross_matrix());
        let turning = arm.cross(&body.linear) * body.mass + body.inertia * body.angular;
        let mut linear = momentum.fixed_rows_mut::<3>(0);
        linear += body.linear * body.mass;
        let mut angular = momentum.fixed_rows_mut::<3>(3);
        angular += turning;
    }
    momentum.dot(&(masses.try_inverse().expect("masses are positive") * momentum))
}
