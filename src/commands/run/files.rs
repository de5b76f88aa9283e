//! The files of a run: which there are, when something is written to them, and what.

use super::checkpoints;
use super::contents::{
    body_options, compression, contact_options, contact_row, domain, impulse_rows, own_bodies, sections,
};
use super::error::{RunError, agree};
use super::force_control::Control;
use super::progress::Log;
use super::restart::LISTING;
use super::series::{ForceTable, Layout, Moment, SeriesTable};
use super::statistics::Statistics;
use crate::geometry::{Aabb, Vec3};
use crate::input::{Case, Listing};
use crate::output::{
    BodyFile, Column, ContactFile, ContactRow, Image, OutputError, Series, SeriesPosition, StateFile,
    StateHeader, write_checkpoint,
};
use crate::scene::Scene;
use crate::setup::{AchievedGrading, GRADINGS};
use crate::step::{Account as EnergyAccount, Machines, Observation, StepReport, Stepper};
use decomposition::Comm;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Rows of the series that wait in memory at most.
const SERIES_BATCH: usize = 256;

/// All files that a run may write, beside `checkpoints/`, in the order of interest.
pub const NAMES: [&str; 10] = [
    "bodies.vtkhdf",
    "contacts.vtkhdf",
    "series.csv",
    "series.h5",
    "machines.csv",
    "machines.h5",
    "force_errors.csv",
    "force_errors.h5",
    "final.h5",
    "summary.json",
];

/// Something is due whenever a multiple of an interval of simulated time has been reached or passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Steps per interval; not an integer if the interval is no multiple of the time step.
    steps: f64,
}

impl Schedule {
    /// Every step if there is no interval.
    pub fn new(interval: Option<f64>, time_step: f64) -> Self {
        Self { steps: interval.map_or(1.0, |interval| (interval / time_step).max(1.0)) }
    }

    pub fn is_due(&self, step: u64) -> bool {
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
    series: Recorded,
    /// None without machines.
    machines: Option<Recorded>,
    /// None unless forces are checked.
    forces: Option<Forces>,
    pictures: Schedule,
    rows: Schedule,
    /// The step that the last picture shows.
    pictured: Option<u64>,
    /// Half-spaces are drawn around it.
    domain: Option<Aabb>,
    compression: u8,
}

/// How far the files have come, as a checkpoint holds it; the frame files have attachments of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Position {
    pictured: Option<u64>,
    domain: Option<[Vec3; 2]>,
    series: Option<SeriesPosition>,
    machines: Option<SeriesPosition>,
}

/// The frame files at some moment.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    pictured: Option<u64>,
    /// By the names of the files; on rank 0 only.
    images: Vec<(String, Vec<u8>)>,
}

/// Name of the attachment with a frame file after the last picture.
fn at_the_end(name: &str) -> String {
    format!("{name} at the end")
}

/// What a run writes to.
struct Written {
    bodies: Option<BodyFile>,
    contacts: Option<ContactFile>,
    series: Recorded,
    machines: Option<Recorded>,
    forces: Option<Forces>,
}

/// The errors of forces, and which forces there are.
struct Forces {
    table: ForceTable,
    file: Series,
}

/// A time series with its columns.
struct Recorded {
    table: SeriesTable,
    file: Series,
}

impl Recorded {
    fn add_row(&mut self, moment: &Moment) -> Result<(), OutputError> {
        self.file.append(&self.table.row(moment))
    }
}

/// Names of attachments.
const POSITION: &str = "position";
const STATISTICS: &str = "statistics";
const ENERGY: &str = "energy";
/// Where the errors of forces stood.
const FORCE_ERRORS: &str = "force errors";
pub(super) const FORCE_ERRORS_FILE: &str = "force_errors.csv";
/// How exactly problems are solved, as the checks of forces have it.
const CONTROL: &str = "force control";
const LIMITS: &str = "limits";
const BODIES: &str = "bodies.vtkhdf";
const CONTACTS: &str = "contacts.vtkhdf";

/// What a checkpoint holds of a run beside its scene.
pub(super) struct Account<'a> {
    pub case_text: &'a str,
    pub listing: &'a Listing,
    pub statistics: &'a Statistics,
    pub gradings: &'a [AchievedGrading],
    /// If forces are checked.
    pub control: Option<Control>,
}

/// What the checks of forces had come to at a checkpoint; none if it does not say.
pub(super) fn control_at(state: &StateFile) -> Result<Option<Control>, OutputError> {
    Ok(state.attachment(CONTROL)?.and_then(|bytes| Control::decode(&bytes)))
}

/// The statistics of a run at a checkpoint; none if it does not say.
pub(super) fn statistics_at(state: &StateFile) -> Result<Option<Statistics>, OutputError> {
    Ok(state.attachment(STATISTICS)?.and_then(|bytes| Statistics::decode(&bytes)))
}

/// The work done in a run up to a checkpoint; none if it does not say.
pub(super) fn account_at(state: &StateFile) -> Result<Option<EnergyAccount>, OutputError> {
    Ok(state.attachment(ENERGY)?.and_then(|bytes| EnergyAccount::decode(&bytes)))
}

/// The speed and the energy that a run was not to exceed at a checkpoint; none if it does not say.
pub(super) fn limits_at(state: &StateFile) -> Result<Option<[f64; 2]>, OutputError> {
    let decode = |bytes: Vec<u8>| postcard::from_bytes(&bytes).ok();
    Ok(state.attachment(LIMITS)?.and_then(decode))
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
        let domain = domain(scene, comm);
        let bodies = body_options(case, domain)
            .map(|options| BodyFile::create(&directory.join(BODIES), comm, options))
            .transpose()?;
        let contacts = contact_options(case)
            .map(|options| ContactFile::create(&directory.join(CONTACTS), comm, options))
            .transpose()?;
        let layout = Layout { case, scene, machines };
        let create = |name: &str, table: SeriesTable| {
            let file = Series::create(&directory.join(name), comm, table.columns(), SERIES_BATCH)?;
            Ok::<_, OutputError>(Recorded { table, file })
        };
        let series = create("series.h5", SeriesTable::scene(&layout))?;
        let machines =
            SeriesTable::machines(&layout).map(|table| create("machines.h5", table)).transpose()?;
        let forces = case.output.force_check.map(|_| {
            let table = ForceTable::new(&layout);
            let path = directory.join(FORCE_ERRORS_FILE).with_extension("h5");
            let file = Series::create(&path, comm, table.columns(), SERIES_BATCH)?;
            Ok::<_, OutputError>(Forces { table, file })
        });
        let written = Written { bodies, contacts, series, machines, forces: forces.transpose()? };
        Ok(Self::with(directory, case, comm, written, domain))
    }

    fn with(
        directory: &Path,
        case: &Case,
        comm: &'c dyn Comm,
        written: Written,
        domain: Option<Aabb>,
    ) -> Self {
        let (output, time_step) = (&case.output, case.simulation.time_step);
        let Written { bodies, contacts, series, machines, forces } = written;
        Self {
            directory: directory.to_path_buf(),
            comm,
            bodies,
            contacts,
            series,
            machines,
            forces,
            pictures: Schedule::new(output.interval, time_step),
            rows: Schedule::new(output.series_interval, time_step),
            pictured: None,
            domain,
            compression: compression(case),
        }
    }

    /// Collective: continues the files of the run that a checkpoint is of, as they were then. A file that
    /// cannot be continued is given another name and begun anew; the log says so.
    pub fn resume(
        case: &Case,
        scene: &Scene,
        machines: &Machines,
        mut old: OldFiles<'_, 'c>,
    ) -> Result<Self, RunError> {
        let OldFiles { directory, comm, state, at_end, .. } = old;
        let position = state.attachment(POSITION)?.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let known = position.is_some();
        let position: Position =
            position.unwrap_or(Position { pictured: None, domain: None, series: None, machines: None });
        let domain = match position.domain {
            Some([min, max]) => Some(Aabb { min, max }),
            None if known => None,
            None => domain(scene, comm),
        };
        let whole = [BODIES, CONTACTS].map(|name| old.put_back(name));
        let [bodies_whole, contacts_whole] = whole.map(|whole| whole.transpose());
        let bodies = match body_options(case, domain) {
            None => None,
            Some(options) => Some(old.continued(BODIES, bodies_whole, |path, is_old| match is_old {
                true => BodyFile::open(path, comm, options.clone()),
                false => BodyFile::create(path, comm, options.clone()),
            })?),
        };
        let contacts = match contact_options(case) {
            None => None,
            Some(options) => Some(old.continued(CONTACTS, contacts_whole, |path, is_old| match is_old {
                true => ContactFile::open(path, comm, options),
                false => ContactFile::create(path, comm, options),
            })?),
        };
        let layout = Layout { case, scene, machines };
        let mut continued = |name: &str, columns: Vec<Column>, position: Option<SeriesPosition>| {
            old.continued(name, Ok(Some(())), |path, is_old| {
                let (path, columns) = (path.with_extension("h5"), columns.clone());
                match is_old {
                    true => Series::resume(&path, comm, columns, SERIES_BATCH, position),
                    false => Series::create(&path, comm, columns, SERIES_BATCH),
                }
            })
        };
        let forces = case.output.force_check.map(|_| {
            let position =
                state.attachment(FORCE_ERRORS)?.and_then(|bytes| postcard::from_bytes(&bytes).ok());
            let table = ForceTable::new(&layout);
            let file = continued(FORCE_ERRORS_FILE, table.columns(), position)?;
            Ok::<_, RunError>(Forces { table, file })
        });
        let forces = forces.transpose()?;
        let mut series = |name: &str, table: SeriesTable, position: Option<SeriesPosition>| {
            let file = continued(name, table.columns(), position)?;
            Ok::<_, RunError>(Recorded { table, file })
        };
        let machines = SeriesTable::machines(&layout)
            .map(|table| series("machines.csv", table, position.machines))
            .transpose()?;
        let series = series("series.csv", SeriesTable::scene(&layout), position.series)?;
        let written = Written { bodies, contacts, series, machines, forces };
        let files = Self::with(directory, case, comm, written, domain);
        let pictured = if at_end { Some(state.header().step) } else { position.pictured };
        Ok(Self { pictured, ..files })
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
        let moment = Moment { report, observed, machines };
        self.series.add_row(&moment)?;
        self.machines.as_mut().map_or(Ok(()), |series| series.add_row(&moment))
    }

    /// The forces that are checked; none if none are.
    pub fn force_table(&self) -> Option<&ForceTable> {
        self.forces.as_ref().map(|forces| &forces.table)
    }

    /// Not collective, as `add_row`.
    pub fn add_force_row(&mut self, row: &[f64]) -> Result<(), OutputError> {
        self.forces.as_mut().map_or(Ok(()), |forces| forces.file.append(row))
    }

    /// Not collective, as `add_row`: brings waiting rows to the files, where readers find them.
    pub fn flush_rows(&mut self) -> Result<(), OutputError> {
        self.series.file.flush()?;
        self.forces.as_mut().map_or(Ok(()), |forces| forces.file.flush())?;
        self.machines.as_mut().map_or(Ok(()), |series| series.file.flush())
    }

    pub fn picture_is_due(&self, step: u64) -> bool {
        self.bodies.is_some() && self.pictures.is_due(step)
    }

    /// Collective: a picture of the bodies and the contacts of the last step, unless it is there already.
    /// After a restart, contacts are known from the first step on.
    pub fn add_picture(&mut self, stepper: &Stepper, contacts_known: bool) -> Result<(), OutputError> {
        let (scene, physics) = (stepper.scene(), stepper.physics());
        if self.pictured == Some(scene.state.step) {
            return Ok(());
        }
        self.pictured = Some(scene.state.step);
        let time = physics.time(scene.state.step);
        if let Some(file) = &mut self.bodies {
            file.write(self.comm, time, own_bodies(scene, self.comm))?;
        }
        if let Some(file) = self.contacts.as_mut().filter(|_| contacts_known) {
            let rows: Vec<ContactRow> = stepper.contacts().map(|view| contact_row(scene, view)).collect();
            file.write(self.comm, time, physics.time_step, &rows)?;
        }
        Ok(())
    }

    /// Collective: writes a checkpoint and returns its digest. What the files hold by now is on the disk
    /// before, so that it never claims more than there is.
    ///
    /// At the end of a run, `before` are the frames before a last picture outside the interval: a run that is
    /// made longer continues from those, one that is only ended properly from the present ones.
    pub fn write_checkpoint(
        &mut self,
        stepper: &Stepper,
        account: &Account,
        before: Option<Frames>,
    ) -> Result<String, RunError> {
        let (scene, physics) = (stepper.scene(), stepper.physics());
        let series = agree(self.comm, self.series.file.position().map_err(RunError::from))?;
        let machines = self.machines.as_mut().map_or(Ok(None), |series| series.file.position());
        let machines = agree(self.comm, machines.map_err(RunError::from))?;
        let forces = self.forces.as_mut().map_or(Ok(None), |forces| forces.file.position());
        let forces = agree(self.comm, forces.map_err(RunError::from))?;
        let now = self.frames()?;
        let frames = match before {
            Some(before) => before,
            None => now.clone(),
        };
        let pictured = frames.pictured;
        let mut attachments = frames.images;
        if pictured != now.pictured {
            attachments.extend(now.images.into_iter().map(|(name, image)| (at_the_end(&name), image)));
        }
        let energy = stepper.account().encode(self.comm);
        if self.comm.rank() == 0 {
            let domain = self.domain.map(|domain| [domain.min, domain.max]);
            let position = Position { pictured, domain, series, machines };
            // Writing to memory cannot fail.
            attachments.push((POSITION.into(), postcard::to_allocvec(&position).unwrap_or_default()));
            if let Some(position) = forces {
                attachments.push((FORCE_ERRORS.into(), postcard::to_allocvec(&position).unwrap_or_default()));
            }
            attachments.extend(account.control.map(|control| (CONTROL.into(), control.encode())));
            attachments.push((STATISTICS.into(), account.statistics.encode()));
            attachments.push((ENERGY.into(), energy));
            if let (Some(speed), Some(limit)) = (stepper.speed_limit(), stepper.energy_limit()) {
                let limits = postcard::to_allocvec(&[speed, limit.margin]).unwrap_or_default();
                attachments.push((LIMITS.into(), limits));
            }
            let listing = serde_json::to_vec(account.listing).unwrap_or_default();
            attachments.push((LISTING.into(), listing));
            attachments.push((GRADINGS.into(), serde_json::to_vec(account.gradings).unwrap_or_default()));
        }
        let header = StateHeader {
            time: physics.time(scene.state.step),
            step: scene.state.step,
            code_version: env!("CARGO_PKG_VERSION").into(),
            case: account.case_text.into(),
            groups: scene.model.groups.clone(),
            materials: scene.model.materials.clone(),
            sections: sections(stepper, self.comm),
        };
        checkpoints::make_folder(&self.directory, self.comm)?;
        let path = checkpoints::path(&self.directory, scene.state.step);
        let bodies = own_bodies(scene, self.comm);
        let impulses = impulse_rows(scene);
        let digest =
            write_checkpoint(&path, self.comm, &header, bodies, &impulses, &attachments, self.compression)?;
        Ok(digest)
    }

    /// Collective: the frame files as they are now.
    pub fn frames(&mut self) -> Result<Frames, RunError> {
        let all = [
            (BODIES, self.bodies.as_mut().map(|file| file.image(self.comm))),
            (CONTACTS, self.contacts.as_mut().map(|file| file.image(self.comm))),
        ];
        let mut images = Vec::new();
        for (name, image) in all {
            match image.transpose() {
                Ok(image) => images.extend(image.flatten().map(|image| (name.into(), image.encode()))),
                // A file in which a step failed takes no more; a restart gives it another name.
                Err(OutputError::Misuse { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Frames { pictured: self.pictured, images })
    }

    /// Collective: makes the checkpoint of a step `final.h5`, too: a second name of the same file, where the
    /// disk can do that.
    pub fn name_final(&self, step: u64) -> Result<(), RunError> {
        let (from, to) = (checkpoints::path(&self.directory, step), self.directory.join("final.h5"));
        let aside = self.directory.join("final.h5.tmp");
        let name = || {
            if !from.exists() && to.exists() {
                return Ok(()); // the run went on from it, and no step was left
            }
            let _ = std::fs::remove_file(&aside);
            std::fs::hard_link(&from, &aside)
                .or_else(|_| {
                    std::fs::copy(&from, &aside).and_then(|_| std::fs::File::open(&aside)?.sync_all())
                })
                .and_then(|()| std::fs::rename(&aside, &to))
                .map_err(|source| RunError::Io { path: to.clone(), action: "write", source })?;
            // Two names of one file are not renamed: both stay.
            let _ = std::fs::remove_file(&aside);
            Ok(())
        };
        agree(self.comm, if self.comm.rank() == 0 { name() } else { Ok(()) })
    }

    /// Whether HDF5 made every transfer of frames collectively, as it was asked to.
    pub fn was_collective(&self) -> bool {
        self.bodies.as_ref().is_none_or(BodyFile::was_collective)
            && self.contacts.as_ref().is_none_or(ContactFile::was_collective)
    }

    /// Collective: closes all files, whatever happens to one of them, and returns the first error.
    pub fn close(self) -> Result<(), OutputError> {
        let bodies = self.bodies.map_or(Ok(()), BodyFile::close);
        let contacts = self.contacts.map_or(Ok(()), ContactFile::close);
        let machines = self.machines.map_or(Ok(()), |series| series.file.close());
        let forces = self.forces.map_or(Ok(()), |forces| forces.file.close());
        bodies.and(contacts).and(self.series.file.close()).and(machines).and(forces)
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
    let remove_all =
        || NAMES.iter().try_for_each(|name| remove(name)).and_then(|()| checkpoints::remove_all(directory));
    agree(comm, if comm.rank() == 0 { remove_all() } else { Ok(()) })
}

/// The files of a run that continues.
pub(super) struct OldFiles<'a, 'c> {
    pub directory: &'a Path,
    pub comm: &'c dyn Comm,
    pub state: &'a StateFile,
    pub log: &'a mut Log,
    /// Whether no step is left to be made.
    pub at_end: bool,
}

impl OldFiles<'_, '_> {
    /// Collective: makes a frame file what it was at the checkpoint; none if the checkpoint does not know it.
    fn put_back(&self, name: &str) -> Option<Result<(), RunError>> {
        let path = self.directory.join(name);
        let restore = |bytes: Vec<u8>| match Image::decode(&bytes) {
            Some(image) => image.restore(&path),
            None => {
                let problem = format!("what it says about {name} cannot be read");
                Err(OutputError::Damaged { path: self.state.path().to_path_buf(), problem })
            }
        };
        // All ranks hold the same file: they get the same answer here.
        let last = if self.at_end { self.state.attachment(&at_the_end(name)) } else { Ok(None) };
        let bytes = match last
            .and_then(|last| last.map_or_else(|| self.state.attachment(name), |last| Ok(Some(last))))
        {
            Ok(bytes) => bytes?,
            Err(error) => return Some(Err(error.into())),
        };
        let restored = if self.comm.rank() == 0 { restore(bytes) } else { Ok(()) };
        Some(agree(self.comm, restored.map_err(RunError::from)))
    }

    /// Collective: opens an old file (`make` with true), or a new one if there is none that could be
    /// continued.
    fn continued<F>(
        &mut self,
        name: &str,
        whole: Result<Option<()>, RunError>,
        make: impl Fn(&Path, bool) -> Result<F, OutputError>,
    ) -> Result<F, RunError> {
        let path = self.directory.join(name);
        let problem = match whole {
            Ok(Some(())) => match make(&path, true) {
                Ok(file) => return Ok(file),
                Err(error) => Some(error.to_string()),
            },
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            self.log.say(&format!("warning: {problem}"));
        }
        let step = self.state.header().step;
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        let old = self.directory.join(format!("{stem}-before-step-{step}.{ending}"));
        let renamed = self.comm.rank() == 0 && std::fs::rename(&path, &old).is_ok();
        if renamed {
            self.log.say(&format!("warning: {name} cannot be continued and is now {}", old.display()));
        }
        Ok(make(&path, false)?)
    }
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
