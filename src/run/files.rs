//! The files of a run: which there are, when something is written to them, and what.

use super::error::{RunError, agree};
use super::machine_series;
use crate::geometry::{Aabb, Vec3};
use crate::input::{self, Case, ContactOutput, OutputField, SphereOutput};
use crate::output::{
    BodyField, BodyFile, BodyOptions, Column, ContactDrawing, ContactFile, ContactOptions, ContactRow,
    Digest, ImpulseRow, OutputError, Precision, Series, Spheres, StateHeader, write_state,
};
use crate::scene::{Body, Scene};
use crate::step::{ContactView, Machines, Observation, StepReport, Stepper, machines};
use decomposition::Comm;
use std::path::{Path, PathBuf};

/// Rows of the series that wait in memory at most.
const SERIES_BATCH: usize = 256;

/// All files that a run may write, in the order in which people look at them.
pub const NAMES: [&str; 8] = [
    "bodies.vtkhdf",
    "contacts.vtkhdf",
    "series.csv",
    "series.h5",
    "machines.csv",
    "machines.h5",
    "final.h5",
    "summary.json",
];

/// Something is due whenever a multiple of an interval of simulated time has been reached or passed.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// Steps per interval; not an integer if the interval is no multiple of the time step.
    steps: f64,
}

impl Schedule {
    /// Every step if there is no interval.
    fn new(interval: Option<f64>, time_step: f64) -> Self {
        Self { steps: interval.map_or(1.0, |interval| (interval / time_step).max(1.0)) }
    }

    fn is_due(&self, step: u64) -> bool {
        // Rounding must not shift a picture by a step: hence 1e-9 of an interval.
        let reached = |step: u64| (step as f64 / self.steps + 1e-9).floor();
        step == 0 || reached(step) > reached(step - 1)
    }
}

pub(super) struct Files<'c> {
    directory: PathBuf,
    comm: &'c dyn Comm,
    bodies: Option<BodyFile>,
    contacts: Option<ContactFile>,
    series: Series,
    /// None without machines.
    machines: Option<Series>,
    pictures: Schedule,
    rows: Schedule,
    /// The step that the last picture shows.
    pictured: Option<u64>,
    compression: u8,
}

impl<'c> Files<'c> {
    /// Collective: creates the files.
    pub fn create(
        directory: &Path,
        case: &Case,
        scene: &Scene,
        machines: &Machines,
        comm: &'c dyn Comm,
    ) -> Result<Self, OutputError> {
        let output = &case.output;
        let precision = match output.precision {
            input::Precision::Single => Precision::Single,
            input::Precision::Double => Precision::Double,
        };
        let compression = output.compression.min(9) as u8;
        let bodies = output.interval.map(|_| {
            let options = body_options(output, precision, domain(scene, comm));
            BodyFile::create(&directory.join("bodies.vtkhdf"), comm, options)
        });
        let drawing = match output.contacts {
            ContactOutput::None => None,
            ContactOutput::Points => Some(ContactDrawing::Points),
            ContactOutput::Chains => Some(ContactDrawing::Chains),
        };
        let contacts = drawing.filter(|_| output.interval.is_some()).map(|drawing| {
            let options = ContactOptions { drawing, precision, compression };
            ContactFile::create(&directory.join("contacts.vtkhdf"), comm, options)
        });
        let machines = (!machines.is_empty()).then(|| {
            let columns = machine_series::columns(machines);
            Series::create(&directory.join("machines.h5"), comm, columns, SERIES_BATCH)
        });
        let time_step = case.simulation.time_step;
        Ok(Self {
            directory: directory.to_path_buf(),
            comm,
            bodies: bodies.transpose()?,
            contacts: contacts.transpose()?,
            series: Series::create(&directory.join("series.h5"), comm, columns(scene), SERIES_BATCH)?,
            machines: machines.transpose()?,
            pictures: Schedule::new(output.interval, time_step),
            rows: Schedule::new(output.series_interval, time_step),
            pictured: None,
            compression,
        })
    }

    /// Whether a step adds a row to the series.
    pub fn row_is_due(&self, step: u64) -> bool {
        self.rows.is_due(step)
    }

    /// Adds a row. Not collective: an error on rank 0 is on rank 0 alone.
    pub fn add_row(
        &mut self,
        report: &StepReport,
        observed: &Observation,
        machines: &Machines,
    ) -> Result<(), OutputError> {
        let mut row = vec![
            report.step as f64,
            report.time,
            report.manifolds as f64,
            report.contact_points as f64,
            report.sweeps as f64,
            f64::from(u8::from(report.converged)),
            report.residual.natural_map,
            report.residual.worst_velocity,
            report.worst_penetration,
            observed.kinetic_energy,
            observed.potential_energy,
        ];
        let vectors = [observed.momentum, observed.angular_momentum];
        row.extend(vectors.iter().chain(&observed.forces).flat_map(|vector| vector.iter().copied()));
        self.series.append(&row)?;
        self.machines.as_mut().map_or(Ok(()), |series| series.append(&machine_series::row(report, machines)))
    }

    /// Not collective, as `add_row`: brings waiting rows to the files, so that a person who looks finds them.
    pub fn flush_rows(&mut self) -> Result<(), OutputError> {
        self.series.flush()?;
        self.machines.as_mut().map_or(Ok(()), Series::flush)
    }

    pub fn picture_is_due(&self, step: u64) -> bool {
        self.bodies.is_some() && self.pictures.is_due(step)
    }

    /// Collective: a picture of the bodies and the contacts of the last step, unless it is there already.
    pub fn add_picture(&mut self, stepper: &Stepper) -> Result<(), OutputError> {
        let (scene, physics) = (stepper.scene(), stepper.physics());
        if self.pictured == Some(scene.step) {
            return Ok(());
        }
        self.pictured = Some(scene.step);
        let time = physics.time(scene.step);
        if let Some(file) = &mut self.bodies {
            file.write(self.comm, time, own_bodies(scene, self.comm))?;
        }
        if let Some(file) = &mut self.contacts {
            let rows: Vec<ContactRow> = stepper.contacts().map(|view| contact_row(scene, view)).collect();
            file.write(self.comm, time, physics.time_step, &rows)?;
        }
        Ok(())
    }

    /// Collective: writes `final.h5` and returns its digest.
    pub fn write_final(&self, stepper: &Stepper, case_text: &str) -> Result<String, OutputError> {
        let (scene, physics) = (stepper.scene(), stepper.physics());
        let header = StateHeader {
            time: physics.time(scene.step),
            step: scene.step,
            code_version: env!("CARGO_PKG_VERSION").into(),
            case: case_text.into(),
            groups: scene.groups.clone(),
            materials: scene.materials.clone(),
            extra: Vec::new(),
        };
        let impulses = impulse_rows(scene);
        let path = self.directory.join("final.h5");
        let bodies = || own_bodies(scene, self.comm);
        write_state(&path, self.comm, &header, bodies(), &impulses, self.compression)?;
        let mut digest = Digest::new();
        bodies().for_each(|body| digest.add_body(body));
        impulses.iter().for_each(|row| digest.add_impulse(row));
        Ok(merged(digest, self.comm).finish(header.time, header.step))
    }

    /// Collective: closes all files, whatever happens to one of them, and returns the first error.
    pub fn close(self) -> Result<(), OutputError> {
        let bodies = self.bodies.map_or(Ok(()), BodyFile::close);
        let contacts = self.contacts.map_or(Ok(()), ContactFile::close);
        let machines = self.machines.map_or(Ok(()), Series::close);
        bodies.and(contacts).and(self.series.close()).and(machines)
    }
}

/// Collective: removes what an earlier run left, so that old and new files never stand side by side.
pub(super) fn remove_old(directory: &Path, comm: &dyn Comm) -> Result<(), RunError> {
    let remove = |name: &str| {
        let path = directory.join(name);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(RunError::Io { path, action: "remove the file of an earlier run", source })
            }
            _ => Ok(()),
        }
    };
    let removed = if comm.rank() == 0 { NAMES.iter().try_for_each(|name| remove(name)) } else { Ok(()) };
    agree(comm, removed)
}

/// The bodies that this rank writes: its own, and on rank 0, which owns the machines, those that all ranks hold.
fn own_bodies<'a>(scene: &'a Scene, comm: &dyn Comm) -> impl Iterator<Item = &'a Body> + use<'a> {
    let common = [&scene.statics[..], &scene.machine_bodies[..]].map(|bodies| match comm.rank() {
        machines::OWNER => bodies,
        _ => &[],
    });
    common.into_iter().flatten().chain(&scene.grains)
}

fn merged(own: Digest, comm: &dyn Comm) -> Digest {
    let bytes: Vec<u8> = own.parts().iter().flat_map(|part| part.to_le_bytes()).collect();
    let mut all = Digest::new();
    for bytes in comm.all_gather(&bytes) {
        let mut parts = [0u64; 4];
        for (part, eight) in parts.iter_mut().zip(bytes.chunks_exact(8)) {
            *part = u64::from_le_bytes(eight.try_into().unwrap_or([0; 8]));
        }
        all.merge(parts);
    }
    all
}

fn impulse_rows(scene: &Scene) -> Vec<ImpulseRow> {
    let rows = scene.impulses.iter().flat_map(|(_, key, points)| {
        points.iter().map(move |point| ImpulseRow {
            ids: key.bodies.map(|id| id.0),
            parts: key.parts.map(u32::from),
            feature: point.feature,
            impulse: point.impulse,
        })
    });
    rows.collect()
}

/// A wall or a tool has no centre that a line of force could go to.
fn contact_row(scene: &Scene, view: ContactView) -> ContactRow {
    let among = |bodies: &[Body], id| bodies.binary_search_by_key(&id, |body: &Body| body.id).is_ok();
    let is_static = |id| among(&scene.statics, id) || among(&scene.machine_bodies, id);
    let end = |side: usize| if is_static(view.bodies[side]) { view.point } else { view.centres[side] };
    ContactRow {
        ids: view.bodies.map(|id| id.0),
        point: view.point,
        normal: view.normal,
        impulse: view.impulse,
        gap: view.gap,
        centres: [end(0), end(1)],
    }
}

fn body_options(output: &input::Output, precision: Precision, domain: Option<Aabb>) -> BodyOptions {
    let field = |field: &OutputField| match field {
        OutputField::Id => BodyField::Id,
        OutputField::Group => BodyField::Group,
        OutputField::Velocity => BodyField::Velocity,
        OutputField::AngularVelocity => BodyField::AngularVelocity,
        OutputField::Speed => BodyField::Speed,
    };
    BodyOptions {
        spheres: match output.spheres {
            SphereOutput::Surface => Spheres::Surface { refinement: output.sphere_refinement as u32 },
            SphereOutput::Points => Spheres::Points,
        },
        fields: output.fields.iter().map(field).collect(),
        precision,
        compression: output.compression.min(9) as u8,
        domain,
    }
}

/// Collective: the box around all finite bodies at the start.
fn domain(scene: &Scene, comm: &dyn Comm) -> Option<Aabb> {
    let all = scene.statics.iter().chain(&scene.machine_bodies).chain(&scene.grains);
    let boxes = all.map(|body| body.shape.aabb(&body.pose));
    let finite = boxes.filter(|bounds| bounds.min.iter().chain(&bounds.max).all(|bound| bound.is_finite()));
    let own = finite.fold(Aabb::empty(), |all, one| all.union(&one));
    let mut bounds = [-own.min, own.max].map(<[f64; 3]>::from).concat();
    comm.max_f64(&mut bounds);
    let [low, high] = [0, 3].map(|first| Vec3::from_column_slice(&bounds[first..first + 3]));
    bounds.iter().all(|bound| bound.is_finite()).then_some(Aabb { min: -low, max: high })
}

fn columns(scene: &Scene) -> Vec<Column> {
    let mut columns = vec![
        Column::integer("step"),
        Column::real("time"),
        Column::integer("manifolds"),
        Column::integer("contact_points"),
        Column::integer("sweeps"),
        Column::integer("converged"),
        Column::real("residual"),
        Column::real("worst_velocity_error"),
        Column::real("worst_penetration"),
        Column::real("kinetic_energy"),
        Column::real("potential_energy"),
        Column::vector("momentum"),
        Column::vector("angular_momentum"),
    ];
    let force = |body: &Body| Column::vector(format!("force/{}", scene.groups[body.group as usize]));
    columns.extend(scene.statics.iter().map(force));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_come_at_multiples_of_their_interval() {
        let due = |interval: f64, time_step: f64, steps: u64| -> Vec<u64> {
            let schedule = Schedule::new(Some(interval), time_step);
            (0..=steps).filter(|step| schedule.is_due(*step)).collect()
        };
        assert_eq!(due(0.02, 5e-4, 120), [0, 40, 80, 120]);
        assert_eq!(due(0.3, 0.1, 12), [0, 3, 6, 9, 12]);
        assert_eq!(due(0.25, 0.1, 10), [0, 3, 5, 8, 10]);
        assert_eq!(due(0.1, 0.1, 3), [0, 1, 2, 3]);
        // After a million intervals still on time.
        let schedule = Schedule::new(Some(0.02), 5e-4);
        assert!(schedule.is_due(40_000_000) && !schedule.is_due(40_000_001) && !schedule.is_due(39_999_999));
    }
}
