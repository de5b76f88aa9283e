//! VTK's XML format for unstructured grids, with the numbers appended as raw bytes: nothing is rounded.
//!
//! Bodies become one polyhedron for each convex part (a polygon for a wall, a vertex for a sphere drawn as a
//! point).

use crate::output::reader::Numbers;
use std::fmt::Write as _;
use std::io::{self, Write};

/// VTK's numbers for kinds of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Vertex = 1,
    PolyLine = 4,
    Polygon = 7,
    Polyhedron = 42,
}

pub type NamedArray = (String, usize, Numbers);

#[derive(Clone, Debug)]
pub struct Grid {
    /// Three for each point.
    pub points: Numbers,
    connectivity: Vec<i64>,
    offsets: Vec<i64>,
    kinds: Vec<u8>,
    faces: Vec<i64>,
    face_offsets: Vec<i64>,
    pub point_data: Vec<NamedArray>,
    pub cell_data: Vec<NamedArray>,
}

impl Grid {
    pub fn new(points: Numbers) -> Self {
        Self {
            points,
            connectivity: Vec::new(),
            offsets: Vec::new(),
            kinds: Vec::new(),
            faces: Vec::new(),
            face_offsets: Vec::new(),
            point_data: Vec::new(),
            cell_data: Vec::new(),
        }
    }

    pub fn cell_count(&self) -> usize {
        self.kinds.len()
    }

    pub fn push(&mut self, kind: Cell, points: impl IntoIterator<Item = i64>) {
        self.connectivity.extend(points);
        self.offsets.push(self.connectivity.len() as i64);
        self.kinds.push(kind as u8);
        self.face_offsets.push(-1);
    }

    /// A polyhedron by its points and by the loops of its faces, all counted in the grid.
    pub fn push_polyhedron(&mut self, points: impl IntoIterator<Item = i64>, faces: &[Vec<i64>]) {
        self.push(Cell::Polyhedron, points);
        self.faces.push(faces.len() as i64);
        for face in faces {
            self.faces.push(face.len() as i64);
            self.faces.extend(face);
        }
        if let Some(end) = self.face_offsets.last_mut() {
            *end = self.faces.len() as i64;
        }
    }

    /// Writes the file; `time` goes into its field data, where ParaView expects it.
    pub fn write(&self, time: f64, out: &mut dyn Write) -> io::Result<()> {
        let mut file = Appended::default();
        // Writing to a String cannot fail.
        let mut text = String::from(
            "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\" \
             header_type=\"UInt64\">\n<UnstructuredGrid>\n<FieldData>\n",
        );
        text += &file.field("TimeValue", &Numbers::Double(vec![time]));
        let points = self.points.len() / 3;
        let _ = write!(
            text,
            "</FieldData>\n<Piece NumberOfPoints=\"{points}\" NumberOfCells=\"{}\">\n<Points>\n",
            self.kinds.len()
        );
        text += &file.array("Points", 3, &self.points);
        text += "</Points>\n<Cells>\n";
        text += &file.array("connectivity", 1, &Numbers::Integer(self.connectivity.clone()));
        text += &file.array("offsets", 1, &Numbers::Integer(self.offsets.clone()));
        text += &file.raw("types", "UInt8", 1, self.kinds.clone());
        if !self.faces.is_empty() {
            text += &file.array("faces", 1, &Numbers::Integer(self.faces.clone()));
            text += &file.array("faceoffsets", 1, &Numbers::Integer(self.face_offsets.clone()));
        }
        text += "</Cells>\n";
        for (place, arrays) in [("PointData", &self.point_data), ("CellData", &self.cell_data)] {
            let _ = writeln!(text, "<{place}>");
            for (name, components, values) in arrays {
                text += &file.array(name, *components, values);
            }
            let _ = writeln!(text, "</{place}>");
        }
        text += "</Piece>\n</UnstructuredGrid>\n<AppendedData encoding=\"raw\">\n_";
        out.write_all(text.as_bytes())?;
        file.blocks.iter().try_for_each(|block| {
            out.write_all(&(block.len() as u64).to_le_bytes())?;
            out.write_all(block)
        })?;
        out.write_all(b"\n</AppendedData>\n</VTKFile>\n")
    }
}

/// The blocks behind the text: each its length, then its bytes.
#[derive(Default)]
struct Appended {
    blocks: Vec<Vec<u8>>,
    offset: usize,
}

impl Appended {
    fn array(&mut self, name: &str, components: usize, values: &Numbers) -> String {
        self.raw(name, type_name(values), components, values.bytes())
    }

    fn raw(&mut self, name: &str, kind: &str, components: usize, bytes: Vec<u8>) -> String {
        let extra =
            if components > 1 { format!(" NumberOfComponents=\"{components}\"") } else { String::new() };
        self.element(name, kind, &extra, bytes)
    }

    fn field(&mut self, name: &str, values: &Numbers) -> String {
        let extra = format!(" NumberOfTuples=\"{}\"", values.len());
        self.element(name, type_name(values), &extra, values.bytes())
    }

    fn element(&mut self, name: &str, kind: &str, extra: &str, bytes: Vec<u8>) -> String {
        let text = format!(
            "<DataArray type=\"{kind}\" Name=\"{}\"{extra} format=\"appended\" offset=\"{}\"/>\n",
            escaped(name),
            self.offset
        );
        self.offset += 8 + bytes.len();
        self.blocks.push(bytes);
        text
    }
}

fn type_name(values: &Numbers) -> &'static str {
    match values {
        Numbers::Single(_) => "Float32",
        Numbers::Double(_) => "Float64",
        Numbers::Integer(_) => "Int64",
        Numbers::Unsigned(_) => "UInt64",
    }
}

/// Text for XML and HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A collection of files by time, which ParaView opens as one.
pub fn collection(files: &[(f64, String)]) -> String {
    let entry = |(time, file): &(f64, String)| {
        format!("<DataSet timestep=\"{time:?}\" part=\"0\" file=\"{}\"/>\n", escaped(file))
    };
    let entries: String = files.iter().map(entry).collect();
    format!(
        "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"0.1\">\n<Collection>\n{entries}</Collection>\n</VTKFile>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_where_the_text_says() {
        let mut grid = Grid::new(Numbers::Double(vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0]));
        grid.push(Cell::PolyLine, [0, 1]);
        grid.cell_data.push(("a<b".into(), 1, Numbers::Integer(vec![42])));
        let mut bytes = Vec::new();
        grid.write(0.5, &mut bytes).unwrap();
        let start = bytes.windows(2).position(|pair| pair == b"\n_").unwrap() + 2;
        let text = String::from_utf8_lossy(&bytes[..start]).into_owned();
        let line = text.lines().find(|line| line.contains("a&lt;b")).unwrap();
        let offset = line.split("offset=\"").nth(1).unwrap().split('"').next().unwrap();
        let at = start + offset.parse::<usize>().unwrap();
        assert_eq!(bytes[at..at + 16], [8u64.to_le_bytes(), 42u64.to_le_bytes()].concat());
        assert!(!text.contains("faces"));
    }
}
