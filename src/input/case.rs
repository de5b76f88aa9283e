//! A case: plain, checked data. Names have become indices into the lists here; lengths are in m, times in s,
//! masses in kg, angles in rad.

use crate::formula::Scope;
use crate::formula::{Motion, VectorFormula};
use crate::geometry::{Aabb, Convex, Overflow, Pose, SizeDistribution, StoneParameters, Vec3};
use crate::input::machine::case::CaseMachine;
use crate::output::{BodyField, ContactDrawing, Precision, Spheres};
use crate::scene::{ContactLaw, Scheme};
use crate::solve::assembled::Method;
use crate::solve::{Acceleration, Fallback, LocalLaw, Measure};
use crate::words::choices;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything that a case file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// As it was named; the paths inside the case have been resolved against its folder.
    pub file: PathBuf,
    /// Files that it includes, resolved against its folder.
    pub included: Vec<PathBuf>,
    pub title: String,
    /// Named numbers and tables, for formulas that are compiled later.
    pub scope: Scope,
    pub simulation: Simulation,
    pub solver: Solver,
    pub materials: Vec<Material>,
    pub contacts: Vec<ContactPair>,
    pub shapes: Vec<NamedShape>,
    pub bodies: Vec<CaseBody>,
    pub grains: Vec<Grains>,
    pub machines: Vec<CaseMachine>,
    pub regions: Vec<Region>,
    pub start: Option<Start>,
    pub output: Output,
    pub checkpoint: Checkpoint,
    pub decomposition: Decomposition,
    /// What is allowed but probably not meant, one sentence each.
    pub warnings: Vec<String>,
    /// File and line of cuts, by key path, for errors that come up later.
    pub places: BTreeMap<String, String>,
    /// What it says, key by key, however it is written: to compare it with the case of a checkpoint.
    pub listing: super::Listing,
}

/// The lists of a machine that name its force elements.
pub const FORCE_LISTS: [&str; 4] = ["spring", "actuator", "force", "torque"];

/// A box that is watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub name: String,
    pub bounds: Aabb,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// > 0.
    pub time_step: f64,
    /// > 0; the run ends at `start_time + duration`.
    pub duration: f64,
    pub start_time: f64,
    pub scheme: Scheme,
    /// Of t, m/s².
    pub gravity: VectorFormula,
    /// Beyond which a run has exploded, m/s; by the scales of the case if none.
    pub maximum_speed: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Solver {
    pub tolerance: f64,
    /// Of forces, by their size; the tolerance above holds all along if none.
    pub force_tolerance: Option<f64>,
    pub measure: Measure,
    pub maximum_sweeps: u64,
    pub check_every: u64,
    pub warm_start: bool,
    pub local_law: LocalLaw,
    pub acceleration: Acceleration,
    /// The coloured sweep if none.
    pub method: Option<Method>,
    pub fallback: Fallback,
    pub fallback_points: u64,
    /// Most steps of a run that it may get.
    pub fallback_steps: u64,
    /// In [0, 1]; 0 is off.
    pub penetration_correction: f64,
    pub correction_slop: f64,
    /// m; 0 is off.
    pub penetration_limit: f64,
    /// By the radius of a stone, in [0, 1e-2].
    pub patch_reuse: f64,
    /// The run chooses if none.
    pub contact_margin: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    pub name: String,
    /// > 0, kg/m³.
    pub density: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ContactPair {
    /// Indices into the materials, the lower one first; no pair comes twice.
    pub materials: [usize; 2],
    pub law: ContactLaw,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NamedShape {
    pub name: String,
    pub kind: ShapeKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ShapeKind {
    /// In the frame in which it is given, which need not stand at the centre of mass. One that reaches to
    /// infinity never is on a free body.
    Convex(Convex),
    /// Parts that are no clusters themselves: nested clusters have been flattened.
    Cluster { parts: Vec<ClusterPart> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClusterPart {
    /// Index into the shapes, never of a cluster.
    pub shape: usize,
    pub pose: Pose,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CaseBody {
    pub name: String,
    pub shape: usize,
    pub material: usize,
    /// Of the frame in which the shape is given (which need not stand at its centre of mass), at
    /// `start_time`.
    pub pose: Pose,
    pub motion: BodyMotion,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BodyMotion {
    Fixed,
    Kinematic(Box<Motion>),
    Free {
        /// Of the centre of mass.
        velocity: Vec3,
        angular_velocity: Vec3,
        /// Instead of density times volume; the inertia scales with it.
        mass: Option<f64>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Grains {
    pub name: String,
    pub material: usize,
    pub generator: Generator,
    /// Of x, y, z of the centre of mass.
    pub velocity: VectorFormula,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    Stones {
        placing: Placing,
        /// Of the sieve sizes.
        sizes: SizeDistribution,
        stone: StoneParameters,
    },
    Spheres {
        placing: Placing,
        /// Of the diameters.
        sizes: SizeDistribution,
    },
    Shape {
        placing: Placing,
        shape: usize,
        orientation: GrainOrientation,
    },
    File {
        file: PathBuf,
        state: FileState,
        offset: Vec3,
        properties: FileProperties,
    },
}

/// Where loosely placed grains go.
#[derive(Clone, Debug, PartialEq)]
pub struct Placing {
    /// In [1, 2^40].
    pub count: u64,
    pub seed: u64,
    pub region: Aabb,
    /// Least distance between grains at the start, ≥ 0.
    pub gap: f64,
    pub overflow: Overflow,
}

choices! {
    /// How grains of one shape are turned.
    pub enum GrainOrientation {
        Random = "random", "every orientation is equally likely";
        Aligned = "aligned", "all along the world axes";
    }
}

choices! {
    /// Which state of a scene file is taken.
    pub enum FileState {
        Initial = "initial", "the loose start (`pos0`, `quat0`), at rest";
        Settled = "settled", "the state after settling (`settled`), with its velocities";
    }
}

choices! {
    /// Where mass and moments of the bodies of a scene file come from.
    pub enum FileProperties {
        Compared = "compared", "from `verts` and the density; those of the file, where it has them, have to agree within 1 %";
        Shape = "shape", "from `verts` and the density; those of the file may differ, for instance with another density";
        File = "file", "`mass` and `inertia` of the file, in the frame of `verts`; without `inertia` the moments follow from `verts` and `mass`";
    }
}

choices! {
    /// Gradings known by name.
    pub enum StandardGrading {
        En13450A = "EN 13450 A 31.5/50", "railway ballast, category A of EN 13450, 31.5 mm to 50 mm";
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Not checked here: the other run may still have to be done.
    pub from: PathBuf,
    /// All free bodies if none.
    pub groups: Option<Vec<String>>,
    /// Given to the bodies that are taken; if none, they keep the material of the same name.
    pub material: Option<usize>,
    pub keep_velocities: bool,
    /// Along x and y.
    pub copies: [u64; 2],
    /// From copy to copy, m.
    pub spacing: [f64; 2],
}

#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Between pictures; none are written if none.
    pub interval: Option<f64>,
    /// Between rows of the time series; every step if none.
    pub series_interval: Option<f64>,
    /// Between estimates of the errors of forces; none are made if none.
    pub force_check: Option<f64>,
    /// Over which they are averaged there, s.
    pub force_window: f64,
    /// Of accurate solves there: their tolerance by that of the run.
    pub force_accuracy: f64,
    pub fields: Vec<BodyField>,
    /// Not written if none.
    pub contacts: Option<ContactDrawing>,
    pub spheres: Spheres,
    /// 0 (icosahedron) to 4.
    pub sphere_refinement: u64,
    pub precision: Precision,
    /// 0 to 9.
    pub compression: u64,
    pub on_write_error: OnWriteError,
}

choices! {
    /// What happens when results cannot be written.
    pub enum OnWriteError {
        Stop = "stop", "the run ends with exit code 4; a restart goes on from the last checkpoint, and nothing is missing from the files";
        Continue = "continue", "the run goes on and says what is missing: pictures are left out, rows of the series wait";
    }
}

/// When the state is saved, beside the end of the run and the signals that ask for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub steps: Option<u64>,
    /// Of wall time; 0 is never.
    pub minutes: f64,
    /// ≥ 1.
    pub keep: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decomposition {
    /// Largest by mean work of a rank above which space is cut anew; ≥ 1.
    pub imbalance_threshold: f64,
    /// Edge of the cells; the run chooses if none.
    pub cell_size: Option<f64>,
}

impl Case {
    /// File, line and key of a cut of a machine.
    pub fn place_of_cut(&self, machine: &str, cut: &str) -> Option<String> {
        let key = format!("machine.{machine}.cut.{cut}");
        self.places.get(&key).map(|place| format!("{place}: {key}"))
    }

    /// File, line and key of the joint of a machine that has a coordinate.
    pub fn place_of_coordinate(&self, machine: &str, coordinate: &str) -> Option<String> {
        // Those of joints with several are named after the joint and an axis.
        let joint = coordinate.rsplit_once('.').map_or(coordinate, |(joint, _)| joint);
        let key = format!("machine.{machine}.joint.{joint}");
        self.places.get(&key).map(|place| format!("{place}: {key}"))
    }

    /// File, line and key of a force element of a machine.
    pub fn place_of_force(&self, machine: &str, force: &str) -> Option<String> {
        let keys = FORCE_LISTS.map(|list| format!("machine.{machine}.{list}.{force}"));
        keys.iter().find_map(|key| self.places.get(key).map(|place| format!("{place}: {key}")))
    }

    /// What holds between two materials, in either order.
    pub fn contact(&self, first: usize, second: usize) -> Option<&ContactPair> {
        let pair = [first.min(second), first.max(second)];
        self.contacts.iter().find(|contact| contact.materials == pair)
    }

    /// The number of time steps: `duration` over `time_step`, rounded to the nearest, at least 1.
    pub fn step_count(&self) -> u64 {
        (self.simulation.duration / self.simulation.time_step).round().max(1.0) as u64
    }

    /// Whether a shape reaches to infinity.
    pub fn is_unbounded(&self, shape: usize) -> bool {
        match &self.shapes[shape].kind {
            ShapeKind::Convex(convex) => convex.bounding_radius().is_infinite(),
            ShapeKind::Cluster { parts } => parts.iter().any(|part| self.is_unbounded(part.shape)),
        }
    }
}
