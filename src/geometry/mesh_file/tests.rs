use super::*;
use crate::geometry::{Polyhedron, convex_hull};
use proptest::prelude::*;

const CUBE_OBJ: &str = "\
# a cube
mtllib none.mtl
o cube
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
v 0 0 1 1.0
v 1 0 1 0.5 0.5 0.5
v 1e0 1 1
v 0 1 1
vn 0 0 1
f 4 3 2 1
f 5/1 6/2 7/3 8/4
f 1//1 2//1 6//1 5//1
f 2/1/1 3/1/1 7/1/1 6/1/1
f -6 -5 \\
  -1 -2 # goes on
f 4 1 5 8
";

fn parse(name: &str, bytes: impl AsRef<[u8]>) -> Result<MeshFile, MeshError> {
    MeshFile::from_bytes(Path::new(name), bytes.as_ref())
}

fn message(result: Result<impl Sized, MeshError>) -> String {
    result.map(|_| ()).expect_err("an error").to_string()
}

/// The triangles of a polyhedron, as corners.
fn corners(polyhedron: &Polyhedron) -> Vec<[Vec3; 3]> {
    let at = |v: u32| polyhedron.vertices[v as usize];
    let fan = |ring: &[u32]| {
        ring[1..].windows(2).map(|pair| [at(ring[0]), at(pair[0]), at(pair[1])]).collect::<Vec<_>>()
    };
    polyhedron.faces.iter().flat_map(|face| fan(&face.vertices)).collect()
}

fn ascii_stl(triangles: &[[Vec3; 3]]) -> String {
    let mut text = String::from("solid cube\n");
    for triangle in triangles {
        text += "  facet normal 0 0 0\n    outer loop\n";
        for corner in triangle {
            text += &format!("      vertex {:e} {} {}\n", corner.x, corner.y, corner.z);
        }
        text += "    endloop\n  endfacet\n";
    }
    text + "endsolid cube\n"
}

fn binary_stl(triangles: &[[Vec3; 3]]) -> Vec<u8> {
    let mut bytes = b"solid is how this header begins, too".to_vec();
    bytes.resize(80, b' ');
    bytes.extend((triangles.len() as u32).to_le_bytes());
    for triangle in triangles {
        bytes.extend([0; 12]);
        for value in triangle.iter().flat_map(|corner| corner.iter()) {
            bytes.extend((*value as f32).to_le_bytes());
        }
        bytes.extend([0; 2]);
    }
    bytes
}

fn cube() -> Polyhedron {
    Polyhedron::from_box(Vec3::repeat(0.5)).translated(Vec3::repeat(0.5))
}

#[test]
fn all_formats_give_the_same_cube() {
    let triangles = corners(&cube());
    let files = [
        parse("cube.obj", CUBE_OBJ),
        parse("cube.OBJ", CUBE_OBJ.replace('\n', "\r\n")),
        parse("cube.stl", ascii_stl(&triangles)),
        parse("cube.STL", ascii_stl(&triangles).to_uppercase()),
        parse("cube.stl", binary_stl(&triangles)),
    ];
    for file in files {
        let mesh = file.expect("a mesh");
        assert_eq!((mesh.vertices.len(), mesh.triangles.len()), (8, 12));
        mesh.check_closed().expect("closed");
        let hull = convex_hull(&mesh.vertices).expect("a hull");
        assert_eq!((hull.faces.len(), hull.volume()), (6, 1.0));
    }
}

#[test]
fn a_file_is_read_from_disk() {
    let path = std::env::temp_dir().join(format!("breccia-mesh-{}.obj", std::process::id()));
    std::fs::write(&path, CUBE_OBJ).expect("written");
    let mesh = MeshFile::read(&path);
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(mesh.expect("a mesh").vertices.len(), 8);
    let gone = message(MeshFile::read(&path));
    assert!(gone.contains("breccia-mesh") && gone.contains("cannot be read"), "{gone}");
    assert!(message(parse("cube.ply", "")).contains(".obj or .stl"));
}

#[test]
fn an_open_surface_is_named_with_its_line() {
    let open: String =
        CUBE_OBJ.lines().filter(|line| *line != "f 4 3 2 1").map(|l| format!("{l}\n")).collect();
    let found = message(parse("open.obj", open).expect("a mesh").check_closed());
    assert!(found.contains("open.obj, line 14") && found.contains("not closed"), "{found}");
    assert!(
        found.contains("[0.0, 0.0, 0.0] to [1.0, 0.0, 0.0]") && found.contains("0 times the other"),
        "{found}"
    );
    let flipped = CUBE_OBJ.replace("f 4 1 5 8", "f 8 5 1 4");
    let found = message(parse("flipped.obj", flipped).expect("a mesh").check_closed());
    assert!(found.contains("used 2 times this way and 0 times the other"), "{found}");
    let mut triangles = corners(&cube());
    triangles.pop();
    let found = message(parse("open.stl", binary_stl(&triangles)).expect("a mesh").check_closed());
    assert!(found.contains("open.stl, triangle "), "{found}");
}

#[test]
fn faults_are_named_with_their_line_and_remedy() {
    for (text, expected) in [
        ("v 0 0\n", "line 1: found the end of the line, expected three coordinates"),
        ("v 0 0 x\n", "line 1: found `x`, expected a finite number"),
        ("v 0 0 nan\n", "line 1: found `nan`, expected a finite number"),
        ("v 0 0 1e999\n", "line 1: found `1e999`, expected a finite number"),
        ("v 0 0 0\nf 1 1\n", "line 2: found a face with 2 vertices, expected at least three"),
        ("v 0 0 0\n\nf 1 2 1\n", "line 3: found vertex 2, with 1 vertices before it"),
        ("v 0 0 0\nf 1 1 0\n", "line 2: found vertex 0"),
        ("v 0 0 0\nf 1 1 -2\n", "line 2: found vertex -2"),
        ("v 0 0 0\nf 1 1 -9223372036854775808\n", "line 2: found vertex -9223372036854775808"),
        ("v 0 0 0\nf 1 1 1/2/3/4\n", "line 2: found `1/2/3/4`, expected a vertex like"),
        ("vertex 0 0 0\n", "line 1: found `vertex`, expected a keyword"),
        ("v 0 0 0\nf 1 1 1\n", "holds no triangles"),
        ("v 0 0 \\", "line 1: found the end of the line"),
        ("", "holds no triangles"),
    ] {
        let found = message(parse("bad.obj", text));
        assert!(found.starts_with("bad.obj") && found.contains(expected), "{text:?}: {found}");
    }
    let whole = ascii_stl(&corners(&cube()));
    for (text, expected) in [
        ("", "found 0 bytes, expected text that begins with `solid`"),
        ("solid\nendsolid\n", "holds no triangles"),
        ("solid\nfacet normal 0 0 1\nvertex 0 0 0\n", "line 3: found `vertex`, expected `outer loop`"),
        ("solid\nfacet normal 0 0 1\nouter loop\nvertex 0 0\n", "line 4: found the end of the line"),
        ("solid\nfacet normal 0 0 1\n", "line 2: found the end of the file, expected `endsolid`"),
        ("solid\nendsolid\nfacet\n", "line 3: found `facet`, expected `solid`"),
        (&whole[..whole.len() / 2], "expected"),
    ] {
        let found = message(parse("bad.stl", text));
        assert!(found.starts_with("bad.stl") && found.contains(expected), "{text:?}: {found}");
    }
    let mut binary = binary_stl(&corners(&cube()));
    binary[..5].copy_from_slice(b"BINAR");
    let cut = message(parse("cut.stl", &binary[..300]));
    assert!(cut.contains("300 bytes where its header announces 684"), "{cut}");
    binary[96..100].copy_from_slice(&f32::NAN.to_le_bytes());
    let bad = message(parse("nan.stl", &binary));
    assert!(bad.contains("triangle 1: found a coordinate NaN"), "{bad}");
    binary[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(message(parse("huge.stl", &binary)).contains("announces 214748364834"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any bytes, and small damage to good files: an error or a mesh, never a panic.
    #[test]
    fn damaged_files_never_panic(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let triangles = corners(&cube());
        let good = [CUBE_OBJ.as_bytes().to_vec(), ascii_stl(&triangles).into_bytes(), binary_stl(&triangles)];
        for name in ["x.obj", "x.stl"] {
            let _ = parse(name, &noise);
            for file in &good {
                let mut bytes = file.clone();
                for (place, value) in &hits {
                    let at = place.index(bytes.len());
                    bytes[at] = *value;
                }
                for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                    if let Ok(mesh) = parse(name, bytes) {
                        prop_assert!(mesh.triangles.iter().flatten().all(|&v| (v as usize) < mesh.vertices.len()));
                        let _ = mesh.check_closed();
                        let _ = convex_hull(&mesh.vertices);
                    }
                }
            }
        }
    }
}
