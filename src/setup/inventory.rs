//! What a setup has built, counted over all ranks: for the log, the summary and `breccia check`.

use crate::geometry::Passing;
use crate::input::{BodyMotion, Case, Generator};
use crate::scene::{BodyId, Scene};
use decomposition::{Comm, ExactSum};
use serde::{Deserialize, Serialize};

/// Where the bodies of a group come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    Fixed,
    Kinematic,
    Free,
    Stones,
    Spheres,
    Shape,
    File,
    /// Taken from another run.
    Start,
    /// A body of a machine.
    Machine,
}

/// The bodies of one `[[body]]` or `[[grains]]`, or of one group of the run that a case starts from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    pub kind: GroupKind,
    pub bodies: u64,
    /// kg; none for bodies that nothing can push.
    pub mass: Option<f64>,
    /// Of the lightest and of the heaviest body that can be pushed, kg; none without any.
    #[serde(skip)]
    pub extreme_masses: Option<[f64; 2]>,
    /// Smallest and largest distance of a surface point from the body's origin, m; none if infinite or
    /// without bodies.
    pub bounding_radius: Option<[f64; 2]>,
    /// Lowest id.
    #[serde(skip)]
    pub first_id: u64,
}

/// The grading curve that generated stones have come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AchievedGrading {
    pub grains: String,
    /// Sieve (m) and percent by mass that passes.
    pub passing: Vec<Passing>,
    /// What the case wants, at the same sieves.
    pub wanted: Vec<Passing>,
}

/// Numbers of a group whose largest value is looked for.
const EXTREMES: usize = 5;
/// A ratio of masses that is worth a word: up to a million contact problems were solved.
const UNEQUAL: f64 = 1e9;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// By `Body::group`.
    pub groups: Vec<Group>,
    pub gradings: Vec<AchievedGrading>,
}

impl Inventory {
    pub(super) fn new(case: &Case) -> Self {
        let body = |body: &crate::input::CaseBody| {
            let kind = match body.motion {
                BodyMotion::Fixed => GroupKind::Fixed,
                BodyMotion::Kinematic(_) => GroupKind::Kinematic,
                BodyMotion::Free { .. } => GroupKind::Free,
            };
            (body.name.clone(), kind)
        };
        let grains = |grains: &crate::input::Grains| {
            let kind = match grains.generator {
                Generator::Stones { .. } => GroupKind::Stones,
                Generator::Spheres { .. } => GroupKind::Spheres,
                Generator::Shape { .. } => GroupKind::Shape,
                Generator::File { .. } => GroupKind::File,
            };
            (grains.name.clone(), kind)
        };
        let all = case.bodies.iter().map(body).chain(case.grains.iter().map(grains));
        Self { groups: all.map(|(name, kind)| empty(name, kind)).collect(), ..Self::default() }
    }

    /// Collective: fills in numbers, masses and sizes. Groups that only the scene knows were taken from
    /// another run.
    pub(super) fn count(&mut self, scene: &Scene, comm: &dyn Comm) {
        let machine: Vec<usize> = scene.state.machine_bodies.iter().map(|body| body.group as usize).collect();
        for (group, name) in scene.model.groups.iter().enumerate().skip(self.groups.len()) {
            let kind = if machine.contains(&group) { GroupKind::Machine } else { GroupKind::Start };
            self.groups.push(empty(name.clone(), kind));
        }
        let common = scene.state.statics.iter().chain(&scene.state.machine_bodies);
        let common = common.take(if comm.rank() == 0 { usize::MAX } else { 0 });
        let groups = self.groups.len();
        let mut counts = vec![0i64; groups];
        let mut masses = vec![ExactSum::default(); groups];
        // Largest of: radius, −radius, −id, mass, −mass.
        let mut extremes = vec![f64::NEG_INFINITY; EXTREMES * groups];
        for body in common.chain(&scene.state.grains) {
            let group = body.group as usize;
            counts[group] += 1;
            if body.mass.is_finite() {
                masses[group].add(body.mass);
            }
            let radius = body.shape.bounding_radius();
            // Bodies of machines that only carry others have none.
            let has_mass = body.mass.is_finite() && body.mass > 0.0;
            let [heavy, light] = if has_mass { [body.mass, -body.mass] } else { [f64::NEG_INFINITY; 2] };
            let values = [radius, -radius, -(body.id.0 as f64), heavy, light];
            let known = &mut extremes[EXTREMES * group..][..EXTREMES];
            known.iter_mut().zip(values).for_each(|(known, value)| *known = known.max(value));
        }
        comm.sum_i64(&mut counts);
        comm.max_f64(&mut extremes);
        ExactSum::reduce(&mut masses, comm);
        for (k, group) in self.groups.iter_mut().enumerate() {
            group.bodies = counts[k] as u64;
            let pushed = !matches!(group.kind, GroupKind::Fixed | GroupKind::Kinematic);
            group.mass = pushed.then(|| masses[k].value());
            let [most, least, id, heaviest, lightest] = std::array::from_fn(|j| extremes[EXTREMES * k + j]);
            group.extreme_masses = (pushed && heaviest > 0.0).then_some([-lightest, heaviest]);
            let radii = [-least, most];
            group.bounding_radius = radii.iter().all(|radius| radius.is_finite()).then_some(radii);
            group.first_id = (-id).max(0.0) as u64;
        }
    }

    /// A warning if bodies that can be pushed differ very much in mass.
    pub fn unequal(&self) -> Option<String> {
        let known = || self.groups.iter().filter_map(|group| Some((group, group.extreme_masses?)));
        let (light, [least, _]) = known().min_by(|a, b| a.1[0].total_cmp(&b.1[0]))?;
        let (heavy, [_, most]) = known().max_by(|a, b| a.1[1].total_cmp(&b.1[1]))?;
        (most > UNEQUAL * least).then(|| {
            format!(
                "{:?} has a body of {least:.1e} kg, {:?} one of {most:.1e} kg: where the heavy one rests on the light one, contact problems \
                 converge very slowly; is a mass or a density in another unit?",
                light.name, heavy.name
            )
        })
    }

    /// Counts and masses of a case of which only a part was built, see [`super::memory::thinned`].
    pub fn extrapolate(&mut self, case: &Case) {
        let grains = self.groups.iter_mut().skip(case.bodies.len());
        for (group, grains) in grains.zip(&case.grains) {
            let Some(placing) = grains.generator.placing().filter(|_| group.bodies > 0) else { continue };
            let factor = placing.count as f64 / group.bodies as f64;
            group.bodies = placing.count;
            group.mass = group.mass.map(|mass| mass * factor);
        }
    }

    /// Number of bodies.
    pub fn bodies(&self) -> u64 {
        self.groups.iter().map(|group| group.bodies).sum()
    }

    /// Number of bodies that contacts can move.
    pub fn free_bodies(&self) -> u64 {
        self.groups.iter().filter(|group| group.mass.is_some()).map(|group| group.bodies).sum()
    }

    /// A body as a person knows it.
    pub fn describe(&self, id: BodyId, group: u32) -> String {
        match self.groups.get(group as usize) {
            Some(group) if group.bodies > 1 => {
                format!("{:?} number {} (body {})", group.name, id.0.saturating_sub(group.first_id), id.0)
            }
            Some(group) => format!("{:?} (body {})", group.name, id.0),
            None => format!("body {}", id.0),
        }
    }
}

fn empty(name: String, kind: GroupKind) -> Group {
    Group { name, kind, bodies: 0, mass: None, extreme_masses: None, bounding_radius: None, first_id: 0 }
}
