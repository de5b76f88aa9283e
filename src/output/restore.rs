//! Reading a state file, on any number of ranks: each reads the rows it wants, none has to hold all.

use super::digest::Digest;
use super::error::OutputError;
use super::hyperslab::{open, read_all, read_rows, row_count};
use super::pack::{ANCHOR, Children, Packed};
use super::seal;
use super::state::{HeaderText, ImpulseRow, StateHeader, hash};
use crate::geometry::Vec3;
use crate::scene::Body;
use decomposition::{Comm, Solo};
use hdf5::{File, Group, H5Type};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A state file whose seal was found whole.
pub struct StateFile {
    path: PathBuf,
    header: StateHeader,
    /// What the writer found; none in format 1.
    digest: Option<String>,
    properties: Option<String>,
    /// Names, and hashes of their bytes where the writer gave them.
    attachments: Vec<(String, Option<String>)>,
    bodies: Group,
    parts: Group,
    polyhedra: Group,
    impulses: Group,
    body_count: u64,
    impulse_count: u64,
    /// Last, because closing it closes the groups.
    file: File,
}

impl StateFile {
    /// Collective: the ranks share the checking of the seal. What follows is independent.
    pub fn open(path: &Path, comm: &dyn Comm) -> Result<Self, OutputError> {
        seal::check(path, comm)?;
        let opened = Self::open_whole(path).and_then(|file| {
            // Once is enough, and they are small beside the bodies.
            if comm.rank() == 0 {
                file.check_lengths()?;
            }
            let looked_at = if comm.rank() == 0 { &file.attachments[..] } else { &[] };
            looked_at.iter().try_for_each(|(name, _)| file.attachment(name).map(|_| ()))?;
            Ok(file)
        });
        super::ranks::agree(comm, path, "open", opened)
    }

    fn open_whole(path: &Path) -> Result<Self, OutputError> {
        hdf5::silence_errors(true);
        let file = File::open(path).map_err(OutputError::hdf5(path, "open"))?;
        let group = |name: &str| file.group(name).map_err(OutputError::hdf5(path, format!("open {name}")));
        let (bodies, impulses) = (group("bodies")?, group("impulses")?);
        let (header, text) = read_header(path, &file)?;
        let hashes = text.attachment_hashes.into_iter().map(Some).chain(std::iter::repeat(None));
        Ok(Self {
            path: path.to_path_buf(),
            header,
            digest: text.digest,
            properties: text.properties,
            attachments: text.attachments.into_iter().zip(hashes).collect(),
            body_count: row_count(path, &open(path, &bodies, "id")?, None)?,
            impulse_count: row_count(path, &open(path, &impulses, "ids")?, Some(2))?,
            bodies,
            parts: group("parts")?,
            polyhedra: group("polyhedra")?,
            impulses,
            file: file.clone(),
        })
    }

    /// An error unless every table has as many rows as the rows that it belongs to ask for, and none more.
    fn check_lengths(&self) -> Result<(), OutputError> {
        let end = |group: &Group, name: &str, rows: u64| match rows.checked_sub(1) {
            None => Ok(0),
            Some(last) => {
                let children = self.children(group, name, last..rows)?;
                let range = children.range().map_err(|problem| OutputError::damaged(&self.path, problem))?;
                Ok(range.end)
            }
        };
        let parts = end(&self.bodies, "part", self.body_count)?;
        let [vertices, faces, edges] = ["vertex", "face", "edge"].map(|name| end(&self.parts, name, parts));
        let (vertices, faces, edges) = (vertices?, faces?, edges?);
        let corners = end(&self.polyhedra, "corner", faces)?;
        let memories = match self.bodies.link_exists("memory") {
            true => end(&self.bodies, "memory", self.body_count)?,
            false => 0,
        };
        self.check_tables(&self.bodies, |name| if name == "memory" { memories } else { self.body_count })?;
        self.check_tables(&self.impulses, |_| self.impulse_count)?;
        self.check_tables(&self.parts, |_| parts)?;
        self.check_tables(&self.polyhedra, |name| match name {
            "vertex" => vertices,
            "edge" => edges,
            "corner" => corners,
            _ => faces,
        })
    }

    fn check_tables(&self, group: &Group, wanted: impl Fn(&str) -> u64) -> Result<(), OutputError> {
        let names = group.member_names().map_err(OutputError::hdf5(&self.path, "list its tables"))?;
        for name in names {
            let dataset = open(&self.path, group, &name)?;
            let action = format!("read the size of {}", dataset.name());
            let shape = dataset.get_shape().map_err(OutputError::hdf5(&self.path, action))?;
            let (there, wanted) = (shape.first().map_or(0, |rows| *rows as u64), wanted(&name));
            if there != wanted {
                let problem = format!("{} has {there} rows; {wanted} were expected", dataset.name());
                return Err(OutputError::damaged(&self.path, problem));
            }
        }
        Ok(())
    }

    pub fn header(&self) -> &StateHeader {
        &self.header
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A part of the physical state that another room encoded.
    pub fn section(&self, name: &str) -> Option<&[u8]> {
        let found = self.header.sections.iter().find(|(own, _)| own == name);
        found.map(|(_, bytes)| bytes.as_slice())
    }

    /// What was put beside the state, if anything was under this name.
    pub fn attachment(&self, name: &str) -> Result<Option<Vec<u8>>, OutputError> {
        let Some((_, written)) = self.attachments.iter().find(|(own, _)| own == name) else {
            return Ok(None);
        };
        let bytes = read_all(&self.path, &self.file, &format!("attachments/{name}"), None)?;
        match written {
            Some(written) if *written != hash(&bytes) => {
                Err(OutputError::damaged(&self.path, format!("{name} in it is not what was written")))
            }
            _ => Ok(Some(bytes)),
        }
    }

    /// As the writer found it; none in format 1.
    pub fn digest(&self) -> Option<String> {
        self.digest.clone()
    }

    /// An error unless what was read is what was written. `found` counts every body, impulse and section of
    /// the file once; the seal finds damage by accident, this also finds what a wrong program did and sealed
    /// again.
    pub fn check_digest(&self, found: &Digest) -> Result<String, OutputError> {
        if self.properties.as_ref().is_some_and(|written| *written != found.properties()) {
            let problem =
                "holds bodies of other shapes, masses, groups, materials or kinds than were written";
            return Err(OutputError::damaged(&self.path, problem));
        }
        let found = found.finish(self.header.time, self.header.step);
        match &self.digest {
            Some(written) if *written != found => {
                let problem = format!("holds another state than was written: digest {found}, not {written}");
                Err(OutputError::damaged(&self.path, problem))
            }
            _ => Ok(found),
        }
    }

    pub fn body_count(&self) -> u64 {
        self.body_count
    }

    pub fn impulse_count(&self) -> u64 {
        self.impulse_count
    }

    /// The bodies in some rows; [`super::share`] gives every rank its part.
    pub fn read_bodies(&self, rows: Range<u64>) -> Result<Vec<Body>, OutputError> {
        let (group, rows) = (&self.bodies, || rows.clone());
        let mut packed = Packed {
            id: self.column(group, "id", None, rows())?,
            group: self.column(group, "group", None, rows())?,
            material: self.column(group, "material", None, rows())?,
            motion: self.column(group, "motion", None, rows())?,
            prescribed: self.column(group, "prescribed", None, rows())?,
            cluster: self.column(group, "cluster", None, rows())?,
            mass: self.column(group, "mass", None, rows())?,
            inertia: self.column(group, "inertia", Some(3), rows())?,
            position: self.column(group, "position", Some(3), rows())?,
            rotation: self.column(group, "rotation", Some(4), rows())?,
            velocity: self.column(group, "velocity", Some(3), rows())?,
            angular_velocity: self.column(group, "angular_velocity", Some(3), rows())?,
            angular_momentum: self.column(group, "angular_momentum", Some(3), rows())?,
            anchor: match group.link_exists("anchor") {
                true => self.column(group, "anchor", Some(ANCHOR), rows())?,
                false => Vec::new(),
            },
            parts: self.children(group, "part", rows())?,
            ..Packed::default()
        };
        if group.link_exists("memory") {
            packed.memories = self.children(group, "memory", rows())?;
            packed.memory = self.column(group, "memory", None, self.list(&packed.memories)?)?;
        }
        self.read_shapes(&mut packed)?;
        let bodies = packed.unpack().map_err(|problem| OutputError::damaged(&self.path, problem))?;
        let (groups, materials) = (self.header.groups.len(), self.header.materials.len());
        let unknown =
            bodies.iter().find(|body| body.group as usize >= groups || body.material as usize >= materials);
        if let Some(body) = unknown {
            let problem = format!("body {} has a group or a material without a name", body.id.0);
            return Err(OutputError::damaged(&self.path, problem));
        }
        Ok(bodies)
    }

    fn read_shapes(&self, packed: &mut Packed) -> Result<(), OutputError> {
        let list = |children: &Children| self.list(children);
        let parts = list(&packed.parts)?;
        packed.part_kind = self.column(&self.parts, "kind", None, parts.clone())?;
        packed.part_position = self.column(&self.parts, "position", Some(3), parts.clone())?;
        packed.part_rotation = self.column(&self.parts, "rotation", Some(4), parts.clone())?;
        packed.part_radius = self.column(&self.parts, "radius", None, parts.clone())?;
        packed.vertices = self.children(&self.parts, "vertex", parts.clone())?;
        packed.faces = self.children(&self.parts, "face", parts.clone())?;
        packed.edges = self.children(&self.parts, "edge", parts)?;
        let faces = list(&packed.faces)?;
        packed.vertex = self.column(&self.polyhedra, "vertex", Some(3), list(&packed.vertices)?)?;
        packed.face_normal = self.column(&self.polyhedra, "face_normal", Some(3), faces.clone())?;
        packed.face_offset = self.column(&self.polyhedra, "face_offset", None, faces.clone())?;
        packed.corners = self.children(&self.polyhedra, "corner", faces)?;
        packed.corner = self.column(&self.polyhedra, "corner", None, list(&packed.corners)?)?;
        packed.edge = self.column(&self.polyhedra, "edge", Some(4), list(&packed.edges)?)?;
        Ok(())
    }

    /// The rows of all children.
    fn list(&self, children: &Children) -> Result<Range<u64>, OutputError> {
        children.range().map_err(|problem| OutputError::damaged(&self.path, problem))
    }

    /// The impulses in some rows.
    pub fn read_impulses(&self, rows: Range<u64>) -> Result<Vec<ImpulseRow>, OutputError> {
        let ids: Vec<u64> = self.column(&self.impulses, "ids", Some(2), rows.clone())?;
        let parts: Vec<u32> = self.column(&self.impulses, "parts", Some(2), rows.clone())?;
        let features: Vec<u32> = self.column(&self.impulses, "feature", None, rows.clone())?;
        let values: Vec<f64> = self.column(&self.impulses, "impulse", Some(3), rows)?;
        let row = |(k, &feature): (usize, &u32)| ImpulseRow {
            ids: [ids[2 * k], ids[2 * k + 1]],
            parts: [parts[2 * k], parts[2 * k + 1]],
            feature,
            impulse: Vec3::from_column_slice(&values[3 * k..3 * k + 3]),
        };
        Ok(features.iter().enumerate().map(row).collect())
    }

    fn column<T: H5Type + Copy + Default>(
        &self,
        group: &Group,
        name: &str,
        width: Option<usize>,
        rows: Range<u64>,
    ) -> Result<Vec<T>, OutputError> {
        read_rows(&self.path, &open(&self.path, group, name)?, width, rows)
    }

    fn children(&self, group: &Group, name: &str, rows: Range<u64>) -> Result<Children, OutputError> {
        let first = self.column(group, &format!("first_{name}"), None, rows.clone())?;
        Ok(Children { first, count: self.column(group, &format!("{name}_count"), None, rows)? })
    }
}

fn read_header(path: &Path, file: &File) -> Result<(StateHeader, HeaderText), OutputError> {
    let text = |name: &str| {
        String::from_utf8(read_all(path, file, name, None)?)
            .map_err(|_| OutputError::damaged(path, format!("{name} is not text")))
    };
    let mut parsed: HeaderText = serde_json::from_str(&text("header")?)
        .map_err(|error| OutputError::damaged(path, format!("its header is unreadable: {error}")))?;
    let time: Vec<f64> = read_all(path, file, "time", None)?;
    let step: Vec<u64> = read_all(path, file, "step", None)?;
    let case = text("case")?;
    if parsed.case_hash.as_ref().is_some_and(|written| *written != hash(case.as_bytes())) {
        return Err(OutputError::damaged(path, "its case is not the one whose hash it holds"));
    }
    let sections = std::mem::take(&mut parsed.sections).into_iter().map(|name| {
        let bytes: Vec<u8> = read_all(path, file, &format!("sections/{name}"), None)?;
        Ok::<_, OutputError>((name, bytes))
    });
    let sections = sections.collect::<Result<_, _>>()?;
    let (&[time], &[step]) = (&time[..], &step[..]) else {
        return Err(OutputError::damaged(path, "time and step are to be one number each"));
    };
    let header = StateHeader {
        time,
        step,
        code_version: std::mem::take(&mut parsed.code_version),
        case,
        groups: std::mem::take(&mut parsed.groups),
        materials: std::mem::take(&mut parsed.materials),
        sections,
    };
    Ok((header, parsed))
}

/// The digest of a state file: one line that depends on the physical state only. Holds some thousand bodies
/// at a time.
pub fn digest(path: &Path) -> Result<String, OutputError> {
    const ROWS: u64 = 1 << 14;
    let file = StateFile::open(path, &Solo)?;
    let mut digest = Digest::new();
    let pieces = |count: u64| (0..count.div_ceil(ROWS)).map(move |k| k * ROWS..((k + 1) * ROWS).min(count));
    for rows in pieces(file.body_count()) {
        file.read_bodies(rows)?.iter().for_each(|body| digest.add_body(body));
    }
    for rows in pieces(file.impulse_count()) {
        file.read_impulses(rows)?.iter().for_each(|row| digest.add_impulse(row));
    }
    file.header.sections.iter().for_each(|(name, bytes)| digest.add_section(name, bytes));
    file.check_digest(&digest)
}
