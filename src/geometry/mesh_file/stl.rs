//! STL files, text and binary.
//!
//! A file is binary when its length is the one its triangle count announces (84 + 50 n bytes): binary files
//! may begin with the word `solid` too, which is how text files begin.

use super::{Fault, Place, Surface, Vec3, point};
use std::collections::HashMap;

const HEADER: usize = 84;
const RECORD: usize = 50;

pub(super) fn parse(bytes: &[u8]) -> Result<Surface, Fault> {
    let announced = bytes.get(80..HEADER).map(|n| u32::from_le_bytes([n[0], n[1], n[2], n[3]]));
    let expected = announced.map(|count| HEADER as u64 + RECORD as u64 * u64::from(count));
    if expected == Some(bytes.len() as u64) {
        return binary(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    if text.trim_start().get(..5).is_some_and(|word| word.eq_ignore_ascii_case("solid")) {
        return ascii(&text);
    }
    let found = match expected {
        Some(expected) => format!("{} bytes where its header announces {expected}", bytes.len()),
        None => format!("{} bytes", bytes.len()),
    };
    Err(Fault::new(Place::File, found, "text that begins with `solid`, or a whole binary STL file"))
}

/// Gives equal points one index.
#[derive(Default)]
struct Welder {
    known: HashMap<[u64; 3], u32>,
}

impl Welder {
    fn index(&mut self, surface: &mut Surface, point: Vec3) -> u32 {
        // Adding zero turns −0 into 0.
        let key = std::array::from_fn(|k| (point[k] + 0.0).to_bits());
        *self.known.entry(key).or_insert_with(|| {
            surface.vertices.push(point);
            (surface.vertices.len() - 1) as u32
        })
    }

    fn triangle(&mut self, surface: &mut Surface, corners: [Vec3; 3], place: Place) {
        let indices = corners.map(|corner| self.index(surface, corner));
        surface.push(indices, place);
    }
}

fn binary(bytes: &[u8]) -> Result<Surface, Fault> {
    let (mut surface, mut welder) = (Surface::default(), Welder::default());
    for (index, record) in bytes[HEADER..].chunks_exact(RECORD).enumerate() {
        let place = Place::Triangle(index + 1);
        let value = |i: usize| {
            // The normal comes first: three numbers.
            let at = 12 + 4 * i;
            f64::from(f32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]))
        };
        let corners = [0, 3, 6].map(|i| Vec3::new(value(i), value(i + 1), value(i + 2)));
        if let Some(bad) = corners.iter().flat_map(|c| c.iter()).find(|x| !x.is_finite()) {
            return Err(Fault::new(place, format!("a coordinate {bad}"), "finite numbers"));
        }
        welder.triangle(&mut surface, corners, place);
    }
    Ok(surface)
}

/// Lines in their order: solid (facet (outer loop, vertex × 3, endloop) endfacet)* endsolid, any number of
/// times.
fn ascii(text: &str) -> Result<Surface, Fault> {
    const FACET: [&str; 7] = ["facet", "outer", "vertex", "vertex", "vertex", "endloop", "endfacet"];
    let (mut surface, mut welder) = (Surface::default(), Welder::default());
    let mut corners = [Vec3::zeros(); 3];
    // How much of a facet has been read, and whether a solid is open.
    let (mut state, mut open) = (0, false);
    let mut last = 0;
    for (index, line) in text.lines().enumerate() {
        let place = Place::Line(index + 1);
        last = index + 1;
        let mut words = line.split_whitespace();
        let Some(word) = words.next() else { continue };
        let keyword = word.to_ascii_lowercase();
        match (open, state, keyword.as_str()) {
            (false, _, "solid") => open = true,
            (true, 0, "endsolid") => open = false,
            (true, _, found) if found == FACET[state] => {
                if found == "vertex" {
                    corners[state - 2] = point(&mut words, place)?;
                }
                if found == "endfacet" {
                    welder.triangle(&mut surface, corners, place);
                }
                state = (state + 1) % FACET.len();
            }
            (open, state, _) => {
                let expected = match (open, state) {
                    (false, _) => "`solid`",
                    (true, 0) => "`facet normal …` or `endsolid`",
                    (true, 1) => "`outer loop`",
                    (true, 2..=4) => "`vertex x y z`, three of them",
                    (true, 5) => "`endloop`",
                    (true, _) => "`endfacet`",
                };
                return Err(Fault::new(place, format!("`{word}`"), expected));
            }
        }
    }
    if open {
        return Err(Fault::new(Place::Line(last), "the end of the file", "`endsolid`: is the file whole?"));
    }
    Ok(surface)
}
