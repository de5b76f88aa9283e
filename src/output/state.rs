//! The state file: everything that the future of a run depends on, written by all ranks together.
//!
//! ```text
//! seal (512 bytes, see `seal`)
//! /header  JSON text: code version, hash of the case, digest, names of groups, materials, sections,
//!          attachments
//! /case    text      /time, /step  one number each
//! /sections/<name>     bytes that belong to the physical state, known to their makers only: machines
//! /attachments/<name>  bytes that do not: what a restart needs to continue the files of a run
//! /bodies/…  /parts/…  /polyhedra/…  (see `pack`)
//! /impulses/{ids[n,2], parts[n,2], feature[n], impulse[n,3]}
//! ```
//!
//! It is written under another name, flushed, closed, sealed, forced to the disk and only then renamed:
//! whoever finds the file finds a whole one. Rows stand in rank order; no reader may depend on their order.

use super::digest::Digest;
use super::error::{FirstError, OutputError};
use super::hyperslab::{SharedFile, Storage, Table};
use super::pack::{ANCHOR, Children, Packed};
use super::ranks::{Rows, agree, gather, place};
use super::seal;
use super::space;
use crate::geometry::Vec3;
use crate::scene::Body;
use decomposition::Comm;
use hdf5::{Group, H5Type};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// What a state file says beside bodies and impulses. The same on every rank.
#[derive(Clone, Debug, PartialEq)]
pub struct StateHeader {
    pub time: f64,
    pub step: u64,
    pub code_version: String,
    pub case: String,
    /// `Body::group` counts these.
    pub groups: Vec<String>,
    /// `Body::material` counts these.
    pub materials: Vec<String>,
    /// Parts of the physical state that other rooms encode: machine coordinates, controller phases. They
    /// count in the digest.
    pub sections: Vec<(String, Vec<u8>)>,
}

/// The impulse of one contact point at the end of a step, under the key by which the next step finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImpulseRow {
    pub ids: [u64; 2],
    /// Parts of the two bodies' clusters, 0 for a single convex.
    pub parts: [u32; 2],
    pub feature: u32,
    /// World, N s.
    pub impulse: Vec3,
}

/// The part of the header that is JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HeaderText {
    pub code_version: String,
    pub groups: Vec<String>,
    pub materials: Vec<String>,
    /// Of the case's text; none in format 1, like what follows.
    #[serde(default)]
    pub case_hash: Option<String>,
    #[serde(default)]
    pub digest: Option<String>,
    #[serde(default)]
    pub sections: Vec<String>,
    #[serde(default)]
    pub attachments: Vec<String>,
    /// What bodies are, see [`Digest`]; none before version 0.1.
    #[serde(default)]
    #[serde(rename = "makings")]
    pub properties: Option<String>,
    /// Of the attachments, in their order; none before version 0.1.
    #[serde(default)]
    pub attachment_hashes: Vec<String>,
}

/// Names and bytes that rank 0 gives; other ranks give none.
pub type Attachments = [(String, Vec<u8>)];

pub(super) fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// Collective: writes a state file and returns its digest, or on error leaves what was there before.
///
/// Every body and every impulse is given by exactly one rank. Levels of `compression` are 1–9, 0 for none.
pub fn write_state<'a>(
    path: &Path,
    comm: &dyn Comm,
    header: &StateHeader,
    bodies: impl IntoIterator<Item = &'a Body>,
    impulses: &[ImpulseRow],
    compression: u8,
) -> Result<String, OutputError> {
    write_checkpoint(path, comm, header, bodies, impulses, &[], compression)
}

/// The same with attachments.
pub fn write_checkpoint<'a>(
    path: &Path,
    comm: &dyn Comm,
    header: &StateHeader,
    bodies: impl IntoIterator<Item = &'a Body>,
    impulses: &[ImpulseRow],
    attachments: &Attachments,
    compression: u8,
) -> Result<String, OutputError> {
    let aside = aside(path);
    let bodies: Vec<&Body> = bodies.into_iter().collect();
    let sums = digest_of(header, &bodies, impulses, comm);
    let digest = sums.finish(header.time, header.step);
    let packed = Packed::new(bodies);
    let sized = |all: &[(String, Vec<u8>)]| all.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let texts = header.case.len() + sized(&header.sections) + sized(attachments);
    let own = packed.bytes() + size_of_val(impulses) as u64 + texts as u64;
    let bytes = gather(comm, [own]).iter().map(|[bytes]| bytes).sum();
    let attachments = Announced::by_root(attachments, comm);
    let (digests, attachments) = ([&digest[..], &sums.properties()], &attachments[..]);
    let whole = Whole { header, digests, attachments, packed, impulses };
    let written = space::require(comm, path, bytes)
        .and_then(|()| write_aside(&aside, comm, whole, compression))
        .and_then(|()| seal::close(&aside, comm))
        .and_then(|()| {
            let moved = if comm.rank() == 0 { rename(&aside, path) } else { Ok(()) };
            agree(comm, path, "rename", moved)
        });
    if written.is_err() && comm.rank() == 0 {
        // It may not even have been created; the error that matters is the first one.
        let _ = std::fs::remove_file(&aside);
    }
    written.map(|()| digest)
}

/// Collective.
fn digest_of(header: &StateHeader, bodies: &[&Body], impulses: &[ImpulseRow], comm: &dyn Comm) -> Digest {
    let mut digest = Digest::new();
    bodies.iter().for_each(|body| digest.add_body(body));
    impulses.iter().for_each(|row| digest.add_impulse(row));
    if comm.rank() == 0 {
        header.sections.iter().for_each(|(name, bytes)| digest.add_section(name, bytes));
    }
    digest.over_ranks(comm)
}

/// Everything that goes into one file.
struct Whole<'a> {
    header: &'a StateHeader,
    /// The digest, and the sum over what bodies are.
    digests: [&'a str; 2],
    attachments: &'a [Announced<'a>],
    packed: Packed,
    impulses: &'a [ImpulseRow],
}

/// An attachment whose name and length every rank knows; the bytes are rank 0's.
struct Announced<'a> {
    name: String,
    length: u64,
    hash: String,
    bytes: &'a [u8],
}

impl<'a> Announced<'a> {
    /// Collective.
    fn by_root(attachments: &'a Attachments, comm: &dyn Comm) -> Vec<Self> {
        let entry = |(name, bytes): &'a (String, Vec<u8>)| (name.as_str(), bytes.len() as u64, hash(bytes));
        let list: Vec<(&str, u64, String)> = attachments.iter().map(entry).collect();
        let mut text = serde_json::to_vec(&list).unwrap_or_default();
        comm.broadcast(0, &mut text);
        let list: Vec<(String, u64, String)> = serde_json::from_slice(&text).unwrap_or_default();
        let own = |k: usize| attachments.get(k).filter(|_| comm.rank() == 0);
        let announced = |(k, (name, length, hash))| Announced {
            name,
            length,
            hash,
            bytes: own(k).map_or(&[], |(_, bytes)| bytes.as_slice()),
        };
        list.into_iter().enumerate().map(announced).collect()
    }
}

pub(super) fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

fn rename(from: &Path, to: &Path) -> Result<(), OutputError> {
    std::fs::rename(from, to).map_err(OutputError::io(to, "rename the finished file"))?;
    // The new name itself reaches the disk with its directory.
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    directory.map_err(OutputError::io(to, "force the directory to the disk"))
}

fn write_aside(path: &Path, comm: &dyn Comm, whole: Whole, compression: u8) -> Result<(), OutputError> {
    let Whole { header, digests, attachments, packed, impulses } = whole;
    let names = agree(comm, path, "write", check_names(path, header, attachments));
    let file = names.and_then(|()| {
        let file = SharedFile::create(path, comm, seal::LENGTH);
        agree(comm, path, "create", file)
    })?;
    let mut writer = Writer { file: &file, comm, compression, errors: FirstError::default() };
    writer.header(header, digests, attachments);
    writer.bodies(packed);
    writer.impulses(impulses);
    writer.errors.keep(file.flush());
    let mut errors = writer.errors;
    errors.keep(file.close());
    agree(comm, path, "write", errors.into_result())
}

fn check_names(path: &Path, header: &StateHeader, attachments: &[Announced]) -> Result<(), OutputError> {
    let sections = header.sections.iter().map(|(name, _)| ("sections", name));
    let attachments = attachments.iter().map(|attachment| ("attachments", &attachment.name));
    let mut seen = std::collections::BTreeSet::new();
    for (what, name) in sections.chain(attachments) {
        let plain = !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
        if !plain || !seen.insert((what, name)) {
            return Err(OutputError::misuse(path, format!("{what} cannot be named {name:?}")));
        }
    }
    Ok(())
}

/// Every call is made by every rank, whatever failed before.
struct Writer<'a> {
    file: &'a SharedFile,
    comm: &'a dyn Comm,
    compression: u8,
    errors: FirstError,
}

impl Writer<'_> {
    fn group(&mut self, name: &str) -> Option<Group> {
        let made = self.file.root().create_group(name);
        self.errors.keep(made.map_err(OutputError::hdf5(self.file.path(), format!("create {name}"))))
    }

    fn column<T: H5Type>(
        &mut self,
        group: &Group,
        name: &str,
        width: Option<usize>,
        rows: Rows,
        values: &[T],
    ) {
        let storage = Storage { typical_rows: rows.total, compression: self.compression };
        let table = Table::create::<T>(self.file, group, name, width, storage);
        let written = table.and_then(|mut table| table.append(self.file, rows, values));
        self.errors.keep(written);
    }

    fn children(&mut self, group: &Group, name: &str, rows: Rows, mut children: Children, before: u64) {
        children.shift(before);
        self.column(group, &format!("first_{name}"), None, rows, &children.first);
        self.column(group, &format!("{name}_count"), None, rows, &children.count);
    }

    /// Values that all ranks know and rank 0 writes.
    fn shared<T: H5Type>(&mut self, group: &Group, name: &str, values: &[T]) {
        let rows = Rows::only_on_root(self.comm, values.len() as u64);
        self.column(group, name, None, rows, if rows.own > 0 { values } else { &[] });
    }

    fn header(&mut self, header: &StateHeader, digests: [&str; 2], attachments: &[Announced]) {
        let text = HeaderText {
            code_version: header.code_version.clone(),
            groups: header.groups.clone(),
            materials: header.materials.clone(),
            case_hash: Some(hash(header.case.as_bytes())),
            digest: Some(digests[0].into()),
            properties: Some(digests[1].into()),
            attachment_hashes: attachments.iter().map(|attachment| attachment.hash.clone()).collect(),
            sections: header.sections.iter().map(|(name, _)| name.clone()).collect(),
            attachments: attachments.iter().map(|attachment| attachment.name.clone()).collect(),
        };
        let text = serde_json::to_string(&text)
            .map_err(|error| OutputError::misuse(self.file.path(), error.to_string()));
        let text = self.errors.keep(text).unwrap_or_default();
        let root = self.file.root();
        self.shared(root, "header", text.as_bytes());
        self.shared(root, "case", header.case.as_bytes());
        self.shared(root, "time", &[header.time]);
        self.shared(root, "step", &[header.step]);
        if let Some(group) = self.group("sections") {
            header.sections.iter().for_each(|(name, bytes)| self.shared(&group, name, bytes));
        }
        let Some(group) = self.group("attachments") else { return };
        for Announced { name, length, bytes, .. } in attachments {
            self.column(&group, name, None, Rows::only_on_root(self.comm, *length), bytes);
        }
    }

    fn bodies(&mut self, packed: Packed) {
        let tables = [
            packed.id.len(),
            packed.part_kind.len(),
            packed.vertex.len() / 3,
            packed.face_offset.len(),
            packed.edge.len() / 4,
            packed.corner.len(),
            packed.memory.len(),
        ];
        let all = gather(self.comm, tables.map(|rows| rows as u64));
        let rank = self.comm.rank();
        let [bodies, parts, vertices, faces, edges, corners, memory] =
            std::array::from_fn(|k| place(&all, rank, k));
        if let Some(group) = self.group("bodies") {
            self.column(&group, "id", None, bodies, &packed.id);
            self.column(&group, "group", None, bodies, &packed.group);
            self.column(&group, "material", None, bodies, &packed.material);
            self.column(&group, "motion", None, bodies, &packed.motion);
            self.column(&group, "prescribed", None, bodies, &packed.prescribed);
            self.column(&group, "cluster", None, bodies, &packed.cluster);
            self.column(&group, "mass", None, bodies, &packed.mass);
            self.column(&group, "inertia", Some(3), bodies, &packed.inertia);
            self.column(&group, "position", Some(3), bodies, &packed.position);
            self.column(&group, "rotation", Some(4), bodies, &packed.rotation);
            self.column(&group, "velocity", Some(3), bodies, &packed.velocity);
            self.column(&group, "angular_velocity", Some(3), bodies, &packed.angular_velocity);
            self.column(&group, "angular_momentum", Some(3), bodies, &packed.angular_momentum);
            self.column(&group, "anchor", Some(ANCHOR), bodies, &packed.anchor);
            self.children(&group, "part", bodies, packed.parts, parts.before);
            if memory.total > 0 {
                self.children(&group, "memory", bodies, packed.memories, memory.before);
                self.column(&group, "memory", None, memory, &packed.memory);
            }
        }
        if let Some(group) = self.group("parts") {
            self.column(&group, "kind", None, parts, &packed.part_kind);
            self.column(&group, "position", Some(3), parts, &packed.part_position);
            self.column(&group, "rotation", Some(4), parts, &packed.part_rotation);
            self.column(&group, "radius", None, parts, &packed.part_radius);
            self.children(&group, "vertex", parts, packed.vertices, vertices.before);
            self.children(&group, "face", parts, packed.faces, faces.before);
            self.children(&group, "edge", parts, packed.edges, edges.before);
        }
        if let Some(group) = self.group("polyhedra") {
            self.column(&group, "vertex", Some(3), vertices, &packed.vertex);
            self.column(&group, "face_normal", Some(3), faces, &packed.face_normal);
            self.column(&group, "face_offset", None, faces, &packed.face_offset);
            self.children(&group, "corner", faces, packed.corners, corners.before);
            self.column(&group, "corner", None, corners, &packed.corner);
            self.column(&group, "edge", Some(4), edges, &packed.edge);
        }
    }

    fn impulses(&mut self, impulses: &[ImpulseRow]) {
        let all = gather(self.comm, [impulses.len() as u64]);
        let rows = place(&all, self.comm.rank(), 0);
        let Some(group) = self.group("impulses") else { return };
        let ids: Vec<u64> = impulses.iter().flat_map(|row| row.ids).collect();
        let parts: Vec<u32> = impulses.iter().flat_map(|row| row.parts).collect();
        let features: Vec<u32> = impulses.iter().map(|row| row.feature).collect();
        let values: Vec<f64> = impulses.iter().flat_map(|row| row.impulse.data.0[0]).collect();
        self.column(&group, "ids", Some(2), rows, &ids);
        self.column(&group, "parts", Some(2), rows, &parts);
        self.column(&group, "feature", None, rows, &features);
        self.column(&group, "impulse", Some(3), rows, &values);
    }
}
