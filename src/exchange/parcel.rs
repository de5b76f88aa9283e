//! A contact on its way to the rank that solves it, and what that rank makes of many.

use crate::geometry::Vec3;
use crate::multibody::ReducedOperators;
use crate::scene::{BodyId, ManifoldKey};
use crate::solve::{End, Hub, HubMachine, HubManifold, HubPoint, Inertia, Stretch, Twist};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A contact with all that its solution depends on, save the operators of machines: their owner has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parcel {
    pub key: ManifoldKey,
    pub ends: [End<Grain>; 2],
    /// (n, t, s), world.
    pub frame: [Vec3; 3],
    pub friction: f64,
    pub compliance: f64,
    pub points: Vec<ParcelPoint>,
}

/// A free body at the end of a contact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grain {
    pub id: BodyId,
    pub owner: u32,
    pub inertia: Inertia,
    pub free: Twist,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParcelPoint {
    /// World, in the middle between the two surfaces.
    pub position: Vec3,
    /// From the centre of mass of each body to the point, world.
    pub arms: [Vec3; 2],
    /// Velocity of the point on each end that is [given](End::Given), world; zero for the others.
    pub given: [Vec3; 2],
    /// Added to the normal velocity in the contact law, m/s.
    pub bias: f64,
    pub stretch: Stretch,
    /// Where the iteration starts, contact frame, N s.
    pub impulse: [f64; 3],
    pub gap: f64,
    /// How long before the contact positions the impulse acted, s: see [`crate::step::correct`].
    pub since_impact: f64,
}

/// Machines as the contact problem sees them.
pub fn hub_machines(operators: &[ReducedOperators]) -> Vec<HubMachine> {
    let machine = |operators: &ReducedOperators| HubMachine {
        inverse_mass: operators.mass_inverse.clone(),
        free_velocity: operators.free_velocity.clone(),
    };
    operators.iter().map(machine).collect()
}

/// The contact problem of some parcels, in their order, and the ids of its bodies, ascending.
pub fn collect<'a>(
    parcels: impl Iterator<Item = &'a Parcel> + Clone,
    operators: &[ReducedOperators],
) -> (Hub, Vec<BodyId>) {
    let mut bodies = BTreeMap::new();
    for grain in parcels.clone().flat_map(|parcel| &parcel.ends).filter_map(End::body) {
        bodies.insert(grain.id, (grain.inertia, grain.free));
    }
    let ids: Vec<BodyId> = bodies.keys().copied().collect();
    let place = |grain: &Grain| ids.binary_search(&grain.id).expect("collected above") as u32;
    let manifold = |parcel: &Parcel| HubManifold {
        key: parcel.key,
        ends: [parcel.ends[0].map(place), parcel.ends[1].map(place)],
        frame: parcel.frame,
        friction: parcel.friction,
        compliance: parcel.compliance,
        points: parcel.points.iter().map(|point| hub_point(&parcel.ends, point, operators)).collect(),
    };
    let manifolds = parcels.map(manifold).collect();
    (Hub { machines: hub_machines(operators), bodies: bodies.into_values().collect(), manifolds }, ids)
}

/// With the Jacobians `H_redᵀ` (27) of its machine ends.
fn hub_point(ends: &[End<Grain>; 2], point: &ParcelPoint, operators: &[ReducedOperators]) -> HubPoint {
    let jacobian = |side: usize| match ends[side] {
        End::Machine(place) => {
            let operators = &operators[place.machine as usize];
            let mut jacobian = vec![0.0; 3 * operators.nu];
            operators.point_jacobian(place.slot as usize, &point.position, &mut jacobian);
            jacobian
        }
        _ => Vec::new(),
    };
    let given = |side: usize| match ends[side] {
        End::Machine(place) => {
            operators[place.machine as usize].point_offset(place.slot as usize, &point.position)
        }
        _ => point.given[side],
    };
    HubPoint {
        arms: point.arms,
        jacobians: [jacobian(0), jacobian(1)],
        given: given(1) - given(0),
        bias: point.bias,
        stretch: point.stretch,
        impulse: point.impulse,
    }
}
