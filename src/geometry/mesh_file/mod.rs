//! Closed triangle surfaces from OBJ and STL files.
//!
//! - OBJ: `v` and `f` lines count; polygons become fans of triangles; indices may be negative (from the end)
//!   and may carry texture and normal indices after slashes; every other keyword of the format is passed
//!   over.
//! - STL, text or binary: corners with equal coordinates become one vertex; normals are passed over.
//!
//! A surface is *closed* when every edge is used as often in one direction as in the other.
//! `MeshFile::check_closed` tells which one is not, and where it stands in the file. Coordinates are taken as
//! metres.

mod obj;
mod stl;

use super::Vec3;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A surface of triangles, counter-clockwise seen from outside, as the file gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshFile {
    pub path: PathBuf,
    pub vertices: Vec<Vec3>,
    /// Triangles with three different vertices; others are left out.
    pub triangles: Vec<[u32; 3]>,
    /// Where each triangle stands in the file.
    places: Vec<Place>,
}

/// A place in a mesh file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of a text file, from 1.
    Line(usize),
    /// Of a binary STL file, from 1.
    Triangle(usize),
    /// The file as a whole.
    File,
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Place::Line(line) => write!(out, "line {line}"),
            Place::Triangle(number) => write!(out, "triangle {number}"),
            Place::File => write!(out, "the file"),
        }
    }
}

#[derive(Debug, Error)]
pub enum MeshError {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: a mesh file ends in .obj or .stl", path.display())]
    Extension { path: PathBuf },
    #[error("{}, {place}: found {found}, expected {expected}", path.display())]
    Malformed { path: PathBuf, place: Place, found: String, expected: &'static str },
    #[error("{}: holds no triangles; a body needs at least four", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}, {place}: the surface is not closed: the edge from {from:?} to {to:?} is used {forward} times this way and \
         {backward} times the other way; in a closed surface with all triangles counter-clockwise seen from outside, \
         both are equal",
        path.display()
    )]
    NotClosed { path: PathBuf, place: Place, from: [f64; 3], to: [f64; 3], forward: usize, backward: usize },
}

/// What a parser found wrong, before the path is known.
#[derive(Debug, PartialEq)]
struct Fault {
    place: Place,
    found: String,
    expected: &'static str,
}

impl Fault {
    fn new(place: Place, found: impl Into<String>, expected: &'static str) -> Self {
        // A binary file taken for text may have very long lines.
        let found: String = found.into();
        let found = if found.chars().count() > 60 {
            found.chars().take(60).chain("…".chars()).collect()
        } else {
            found
        };
        Fault { place, found, expected }
    }
}

/// What a parser collects.
#[derive(Debug, Default)]
struct Surface {
    vertices: Vec<Vec3>,
    triangles: Vec<[u32; 3]>,
    places: Vec<Place>,
}

impl Surface {
    /// Adds a triangle unless two of its corners are one: it has no area, and its edges cancel.
    fn push(&mut self, [a, b, c]: [u32; 3], place: Place) {
        if a != b && b != c && c != a {
            self.triangles.push([a, b, c]);
            self.places.push(place);
        }
    }
}

impl MeshFile {
    /// Reads an OBJ or STL file, by its extension.
    pub fn read(path: &Path) -> Result<Self, MeshError> {
        let format = Format::of(path)?;
        let bytes = std::fs::read(path).map_err(|source| MeshError::Read { path: path.into(), source })?;
        Self::parse(path, &bytes, format)
    }

    /// The same from bytes in memory; `path` names them in errors, and its extension their format.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, MeshError> {
        Self::parse(path, bytes, Format::of(path)?)
    }

    fn parse(path: &Path, bytes: &[u8], format: Format) -> Result<Self, MeshError> {
        let surface = match format {
            Format::Obj => obj::parse(bytes),
            Format::Stl => stl::parse(bytes),
        };
        let Surface { vertices, triangles, places } =
            surface.map_err(|Fault { place, found, expected }| MeshError::Malformed {
                path: path.into(),
                place,
                found,
                expected,
            })?;
        if triangles.is_empty() {
            return Err(MeshError::Empty { path: path.into() });
        }
        Ok(MeshFile { path: path.into(), vertices, triangles, places })
    }

    /// Whether every edge is used as often in one direction as in the other.
    pub fn check_closed(&self) -> Result<(), MeshError> {
        // Uses of an edge from its lower to its higher vertex, and back.
        let mut uses: BTreeMap<(u32, u32), [usize; 2]> = BTreeMap::new();
        for (from, to, _) in self.edges() {
            uses.entry((from.min(to), from.max(to))).or_default()[usize::from(from > to)] += 1;
        }
        for (from, to, place) in self.edges() {
            let both = uses.get(&(from.min(to), from.max(to))).copied().unwrap_or_default();
            if both[0] != both[1] {
                let (forward, backward) = if from < to { (both[0], both[1]) } else { (both[1], both[0]) };
                let [from, to] = [from, to].map(|v| self.vertices[v as usize].into());
                return Err(MeshError::NotClosed {
                    path: self.path.clone(),
                    place,
                    from,
                    to,
                    forward,
                    backward,
                });
            }
        }
        Ok(())
    }

    fn edges(&self) -> impl Iterator<Item = (u32, u32, Place)> {
        let sides = |([a, b, c], place): ([u32; 3], Place)| [(a, b, place), (b, c, place), (c, a, place)];
        self.triangles.iter().copied().zip(self.places.iter().copied()).flat_map(sides)
    }
}

#[derive(Clone, Copy)]
enum Format {
    Obj,
    Stl,
}

impl Format {
    fn of(path: &Path) -> Result<Format, MeshError> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("obj") => Ok(Format::Obj),
            Some("stl") => Ok(Format::Stl),
            _ => Err(MeshError::Extension { path: path.into() }),
        }
    }
}

/// A finite number.
fn number(word: &str, place: Place) -> Result<f64, Fault> {
    let value = word.parse::<f64>().ok().filter(|x| x.is_finite());
    value.ok_or_else(|| Fault::new(place, format!("`{word}`"), "a finite number"))
}

/// Three of them, from the next three words.
fn point<'a>(words: &mut impl Iterator<Item = &'a str>, place: Place) -> Result<Vec3, Fault> {
    let mut point = Vec3::zeros();
    for k in 0..3 {
        let word =
            words.next().ok_or_else(|| Fault::new(place, "the end of the line", "three coordinates"))?;
        point[k] = number(word, place)?;
    }
    Ok(point)
}

#[cfg(test)]
mod tests;
