//! The part of the OBJ format that describes surfaces of polygons.

use super::{Fault, Place, Surface, number, point};

/// Keywords that say nothing about the surface itself.
const PASSED_OVER: [&str; 34] = [
    "vt",
    "vn",
    "vp",
    "o",
    "g",
    "s",
    "mg",
    "usemtl",
    "mtllib",
    "usemap",
    "maplib",
    "l",
    "p",
    "cstype",
    "deg",
    "bmat",
    "step",
    "curv",
    "curv2",
    "surf",
    "parm",
    "trim",
    "hole",
    "scrv",
    "sp",
    "end",
    "con",
    "bevel",
    "c_interp",
    "d_interp",
    "lod",
    "shadow_obj",
    "trace_obj",
    "ctech",
];

pub(super) fn parse(bytes: &[u8]) -> Result<Surface, Fault> {
    let text = String::from_utf8_lossy(bytes);
    let mut surface = Surface::default();
    for (place, line) in logical_lines(&text) {
        let mut words = line.split_whitespace();
        match words.next() {
            None => {}
            Some("v") => surface.vertices.push(vertex(words, place)?),
            Some("f") => {
                let corners = words.map(|word| corner(word, surface.vertices.len(), place));
                let corners = corners.collect::<Result<Vec<u32>, Fault>>()?;
                if corners.len() < 3 {
                    let found = format!("a face with {} vertices", corners.len());
                    return Err(Fault::new(place, found, "at least three"));
                }
                for pair in corners[1..].windows(2) {
                    surface.push([corners[0], pair[0], pair[1]], place);
                }
            }
            Some(keyword) if PASSED_OVER.contains(&keyword) => {}
            Some(keyword) => {
                return Err(Fault::new(place, format!("`{keyword}`"), "a keyword of the OBJ format"));
            }
        }
    }
    Ok(surface)
}

/// Lines without comments; a line that ends in a backslash goes on in the next one.
fn logical_lines(text: &str) -> impl Iterator<Item = (Place, String)> {
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (index, first) = lines.next()?;
        let mut whole = without_comment(first).to_string();
        while let Some(open) = whole.strip_suffix('\\') {
            let next = lines.next().map_or("", |(_, line)| without_comment(line));
            whole = format!("{open} {next}");
        }
        Some((Place::Line(index + 1), whole))
    })
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim_end()
}

/// Three coordinates; a weight or a colour may follow.
fn vertex<'a>(mut words: impl Iterator<Item = &'a str>, place: Place) -> Result<super::Vec3, Fault> {
    let position = point(&mut words, place)?;
    for word in words {
        number(word, place)?;
    }
    Ok(position)
}

/// `7`, `7/1`, `7//2`, `7/1/2` or negative, as an index from 0.
fn corner(word: &str, vertices: usize, place: Place) -> Result<u32, Fault> {
    let mut fields = word.split('/');
    let index = fields.next().unwrap_or_default().parse::<i64>().ok();
    let others_are_indices = fields.all(|field| field.is_empty() || field.parse::<i64>().is_ok());
    let Some(index) = index.filter(|_| others_are_indices && word.split('/').count() <= 3) else {
        return Err(Fault::new(place, format!("`{word}`"), "a vertex like 7, 7/1, 7//2, 7/1/2 or -1"));
    };
    let position = match index {
        1.. => Some(index - 1),
        0 => None,
        _ => (vertices as i64).checked_add(index),
    };
    position.and_then(|p| u32::try_from(p).ok()).filter(|&p| (p as usize) < vertices).ok_or_else(|| {
        let found = format!("vertex {index}, with {vertices} vertices before it");
        Fault::new(place, found, "the number of a vertex from 1, or from -1 backwards, that stands before")
    })
}
