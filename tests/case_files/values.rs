//! What right values come out as: orientations, clusters, prescribed motions, spans, sizes.

use breccia::geometry::Convex;
use breccia::geometry::{Pose, SizeDistribution, Vec3};
use breccia::input::{BodyMotion, Case, CaseErrors, Generator, ShapeKind, parse_case};
use std::f64::consts::PI;
use std::time::Duration;

fn read(more: &str) -> Result<Case, CaseErrors> {
    let head = "[simulation]\ntime_step = 1e-3\nduration = 1.0\nstart_time = 0.5\n\
        [[material]]\nname = \"m\"\ndensity = 1000\n[[contact]]\nmaterials = [\"m\", \"m\"]\nfriction = 0.5\n\
        [[shape]]\nname = \"ball\"\nkind = \"sphere\"\nradius = 0.1\n[[shape]]\nname = \"plane\"\nkind = \"half-space\"\n";
    parse_case("case.toml", &format!("{head}{more}"), &[])
}

fn right(more: &str) -> Case {
    read(more).unwrap_or_else(|errors| panic!("{errors}"))
}

fn wrong(more: &str) -> String {
    read(more).expect_err(more).to_string()
}

fn body(keys: &str) -> Case {
    right(&format!("[[body]]\nname = \"b\"\nshape = \"ball\"\nmaterial = \"m\"\n{keys}\n"))
}

#[test]
fn orientations_can_be_written_in_five_ways() {
    let turned = |orientation: &str| body(&format!("orientation = {orientation}")).bodies[0].pose.rotation;
    let half = (PI / 6.0).sin_cos();
    for orientation in [
        "{ axis = [0, 2, 0], degrees = 60 }".to_string(),
        "{ axis = [0, 1e-320, 0], radians = \"pi/3\" }".to_string(),
        "{ roll_pitch_yaw_degrees = [0, 60, 0] }".to_string(),
        format!("{{ quaternion = [{}, 0, {}, 0] }}", 3.0 * half.1, 3.0 * half.0),
        "{ z_axis = [\"sqrt(3)\", 0, 1] }".to_string(),
    ] {
        let z = turned(&orientation) * Vec3::z();
        assert!((z - Vec3::new(3f64.sqrt() / 2.0, 0.0, 0.5)).norm() < 1e-12, "{orientation}: {z}");
    }
    // Roll, pitch and yaw about fixed axes, in this order: x goes to y by the yaw, then stays there.
    let x = turned("{ roll_pitch_yaw_degrees = [90, 0, 90] }") * Vec3::x();
    assert!((x - Vec3::y()).norm() < 1e-12);
    let y = turned("{ roll_pitch_yaw_degrees = [90, 0, 90] }") * Vec3::y();
    assert!((y - Vec3::z()).norm() < 1e-12);
    for axis in ["[0, 0, -1]", "[0, 0, -1e-300]", "[1e-9, 0, -1]", "[1e200, 0, 0]"] {
        let z = turned(&format!("{{ z_axis = {axis} }}")) * Vec3::z();
        assert!((z.norm() - 1.0).abs() < 1e-12 && z.z < 1e-12, "{axis}: {z}");
    }
}

#[test]
fn clusters_of_clusters_are_flattened() {
    let case = right(
        "[[shape]]\nname = \"outer\"\nkind = \"cluster\"\nparts = [\
            { shape = \"inner\", position = [1, 0, 0], orientation = { axis = [0, 0, 1], degrees = 90 } }, { shape = \"ball\" }]\n\
         [[shape]]\nname = \"inner\"\nkind = \"cluster\"\nparts = [\
            { shape = \"ball\", position = [0.5, 0, 0], copies_around = { axis = [0, 0, 1], count = 4 } }]\n\
         [[body]]\nname = \"b\"\nshape = \"outer\"\nmaterial = \"m\"\n",
    );
    let ShapeKind::Cluster { parts } = &case.shapes[2].kind else { panic!("a cluster") };
    let expected = [[1.0, 0.5, 0.0], [0.5, 0.0, 0.0], [1.0, -0.5, 0.0], [1.5, 0.0, 0.0], [0.0, 0.0, 0.0]];
    assert_eq!(parts.len(), expected.len());
    for (part, expected) in parts.iter().zip(expected) {
        assert_eq!(part.shape, 0);
        assert!((part.pose.position - Vec3::from(expected)).norm() < 1e-12, "{}", part.pose.position);
    }
    let walls = right(
        "[[shape]]\nname = \"walls\"\nkind = \"cluster\"\nparts = [{ shape = \"plane\" }]\n\
        [[body]]\nname = \"b\"\nshape = \"walls\"\nmaterial = \"m\"\nmotion = \"fixed\"\n",
    );
    assert!(walls.is_unbounded(2));
    let errors = wrong(
        "[[shape]]\nname = \"walls\"\nkind = \"cluster\"\nparts = [{ shape = \"plane\" }]\n\
        [[body]]\nname = \"b\"\nshape = \"walls\"\nmaterial = \"m\"\n",
    );
    assert!(errors.contains("body.b.shape: found \"walls\", a half-space, on a free body"), "{errors}");
}

#[test]
fn clusters_that_contain_themselves_or_explode_are_refused() {
    let cluster = |name: &str, part: &str, count: usize| {
        format!(
            "[[shape]]\nname = \"{name}\"\nkind = \"cluster\"\nparts = [\
             {{ shape = \"{part}\", copies_around = {{ axis = [0, 0, 1], count = {count} }} }}]\n"
        )
    };
    let ring = cluster("a", "b", 1) + &cluster("b", "c", 1) + &cluster("c", "a", 1);
    let errors = wrong(&ring);
    assert!(errors.contains("found the cycle a → b → c → a") && errors.ends_with("1 error"), "{errors}");
    // 100^20 parts, told at once.
    let begin = processor_time();
    let names: Vec<String> = (0..20).map(|k| format!("level-{k}")).collect();
    let mut tower = cluster(&names[0], "ball", 100);
    for pair in names.windows(2) {
        tower += &cluster(&pair[1], &pair[0], 100);
    }
    let errors = wrong(&tower);
    assert!(errors.contains("expected at most 10000"), "{errors}");
    // Deeper than any stack.
    let names: Vec<String> = (0..5000).map(|k| format!("deep-{k}")).collect();
    let deep: String = names.windows(2).map(|pair| cluster(&pair[0], &pair[1], 1)).collect();
    let errors = wrong(&(deep + &cluster("deep-4999", "ball", 1)));
    assert!(errors.contains("nested deeper than 64"), "{errors}");
    let taken = processor_time() - begin;
    assert!(taken < Duration::from_secs(2), "{taken:?}");
}

/// Of this thread, which does not grow while others have the processor: user and system, in hundredths of a
/// second.
pub fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/stat").expect("a Linux system");
    let (_, fields) = text.rsplit_once(')').expect("a name in parentheses");
    let ticks = |field: usize| {
        fields.split_whitespace().nth(field).and_then(|word| word.parse::<u64>().ok()).expect("ticks")
    };
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

#[test]
fn steady_motions_start_at_the_start() {
    let case = body(
        "motion = \"kinematic\"\nposition = [1, 0, 0]\n\
         prescribed = { velocity = [0, 0, 2], angular_velocity = [0, 0, \"-pi\"], pivot = [0, 0, 0] }",
    );
    let BodyMotion::Kinematic(motion) = &case.bodies[0].motion else { panic!("kinematic") };
    let initial: Pose = case.bodies[0].pose;
    let start = motion.at(0.5, &initial);
    assert!((start.pose.position - initial.position).norm() < 1e-15);
    assert!((start.velocity - Vec3::new(0.0, -PI, 2.0)).norm() < 1e-12, "{}", start.velocity);
    let later = motion.at(1.0, &initial);
    assert!((later.pose.position - Vec3::new(0.0, -1.0, 1.0)).norm() < 1e-12, "{}", later.pose.position);
    assert!((later.angular_velocity - Vec3::new(0.0, 0.0, -PI)).norm() < 1e-12);
    assert_eq!(case.warnings, ["shape.plane is not used"]);
    let jump = body("motion = \"kinematic\"\nprescribed = { position = [0, 0, \"t\"] }");
    assert!(
        jump.warnings[0].contains("body.b.prescribed: the body starts 0.5 m from"),
        "{:?}",
        jump.warnings
    );
    let turned =
        body("motion = \"kinematic\"\nprescribed = { rotation = { axis = [1, 0, 0], angle = \"t\" } }");
    assert!(turned.warnings[0].contains("the body starts turned by 0.5"), "{:?}", turned.warnings);
    let fast = "[[body]]\nname = \"b\"\nshape = \"ball\"\nmaterial = \"m\"\nmotion = \"kinematic\"\n\
        prescribed = { angular_velocity = [1.7e308, 1.7e308, 0] }\n";
    assert!(
        wrong(fast).contains("body.b.prescribed.angular_velocity: found 1.7e308, expected"),
        "{}",
        wrong(fast)
    );
    let far =
        fast.replace("angular_velocity = [1.7e308, 1.7e308, 0]", "position = [\"1e9*(t - 0.5)\", 0, 0]");
    assert!(wrong(&far).contains("body.b.prescribed: found no usable motion at t = "), "{}", wrong(&far));
}

#[test]
fn sizes_are_single_or_spans_or_gradings() {
    let sizes = |text: &str| {
        let case = right(&format!(
            "[[grains]]\nname = \"g\"\ngenerator = \"spheres\"\nmaterial = \"m\"\ncount = \"10^3\"\ngap = 0.001\n{text}\n\
             region = {{ min = [0, 0, 0], max = [1, 1, 1] }}\nvelocity = [\"-y\", \"x\", 0]\n"
        ));
        assert_eq!(case.grains[0].velocity.evaluate(&[1.0, 2.0, 3.0]), Vec3::new(-2.0, 1.0, 0.0));
        match &case.grains[0].generator {
            Generator::Spheres { sizes, placing } => {
                assert_eq!((placing.count, placing.gap), (1000, 0.001));
                sizes.clone()
            }
            other => panic!("{other:?}"),
        }
    };
    let uniform = |least, greatest| SizeDistribution::uniform(least, greatest).expect("right");
    assert_eq!(sizes("radius = 0.01"), uniform(0.02, 0.02));
    assert_eq!(sizes("radius = \"0.02/2\""), uniform(0.02, 0.02));
    assert_eq!(sizes("radius = [0.01, \"2*0.01\"]"), uniform(0.02, 0.04));
    let curve = sizes("grading = { sieve = [0.02, 0.03, 0.05], passing = [0, 40, 100] }");
    assert_eq!(curve.range(), (0.02, 0.05));
    assert_eq!(sizes("grading = \"EN 13450 A 31.5/50\"").range(), (0.0224, 0.063));
}

#[test]
fn mesh_files_must_be_there_and_closed() {
    let folder = std::env::temp_dir().join(format!("breccia-meshes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let vertices = "v 0 0 0\nv 100 0 0\nv 0 100 0\nv 0 0 100\n";
    let write = |name: &str, faces: &str| {
        std::fs::write(folder.join(name), format!("{vertices}{faces}")).expect("a file");
    };
    write("closed.obj", "f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n");
    write("open.obj", "f 1 3 2\nf 1 2 4\nf 2 3 4\n");
    write("broken.obj", "f 1 3 9\n");
    write("mesh.ply", "");
    let name = folder.join("case.toml").display().to_string();
    let read = |file: &str| {
        let text = format!(
            "[simulation]\ntime_step = 1e-3\nduration = 1.0\n\
             [[shape]]\nname = \"tool\"\nkind = \"polyhedron\"\nfile = \"{file}\"\nscale = 0.001\n"
        );
        parse_case(&name, &text, &[])
    };
    let case = read("closed.obj").unwrap_or_else(|errors| panic!("{errors}"));
    let ShapeKind::Convex(Convex::Polyhedron(hull)) = &case.shapes[0].kind else { panic!("a polyhedron") };
    assert_eq!(hull.faces.len(), 4);
    assert!((hull.bounding_radius - 0.1).abs() < 1e-12);
    for (file, message) in [
        ("open.obj", "the surface is not closed"),
        ("broken.obj", "line 5"),
        ("mesh.ply", "a mesh file ends in .obj or .stl"),
        ("none.obj", "found no file at \"none.obj\""),
    ] {
        let errors = read(file).expect_err(file).to_string();
        assert!(
            errors.contains("case.toml:7: shape.tool.file: found") && errors.contains(message),
            "{errors}"
        );
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn materials_need_a_pair_only_if_they_can_meet() {
    let two = "[[material]]\nname = \"n\"\ndensity = 1\n";
    let named = |name: &str, material: &str, motion: &str| {
        format!(
            "[[body]]\nname = \"{name}\"\nshape = \"ball\"\nmaterial = \"{material}\"\nmotion = \"{motion}\"\n"
        )
    };
    // One free body cannot meet itself; fixed bodies do not meet each other.
    right(&(two.to_string() + &named("a", "n", "free")));
    right(
        &(two.to_string()
            + &named("a", "n", "fixed")
            + &named("b", "n", "fixed")
            + &named("c", "m", "fixed")),
    );
    let errors = wrong(&(two.to_string() + &named("a", "n", "free") + &named("b", "n", "fixed")));
    assert!(errors.contains("found no entry for \"n\" with \"n\", which can meet (body.a)"), "{errors}");
    let errors = wrong(&(two.to_string() + &named("a", "n", "free") + &named("b", "m", "fixed")));
    assert!(
        errors.contains("found no entry for \"m\" with \"n\", which can meet (body.a and body.b)"),
        "{errors}"
    );
}

/// Reading is linear enough: a hundred thousand vertices, ten thousand bodies.
#[test]
fn large_cases_are_read_in_time() {
    let vertices: String = (0..100_000).map(|k| format!("[{}, {}, {}],\n", k % 7, k % 11, k % 13)).collect();
    let bodies: String = (0..10_000)
        .map(|k| {
            format!("[[body]]\nname = \"b{k}\"\nshape = \"rock\"\nmaterial = \"m\"\nposition = [{k}, 0, 0]\n")
        })
        .collect();
    let text =
        format!("[[shape]]\nname = \"rock\"\nkind = \"polyhedron\"\nvertices = [\n{vertices}]\n{bodies}");
    let begin = processor_time();
    let case = right(&text);
    assert_eq!(case.bodies.len(), 10_000);
    let taken = processor_time() - begin;
    assert!(taken < Duration::from_secs(5), "{taken:?}");
}

#[test]
fn suspicious_values_get_a_warning_with_file_line_and_key() {
    let text = r#"[simulation]
time_step = 0.5
duration = 1.0
gravity = [0, 0, -9810]
[[material]]
name = "stone"
density = 2.7
[[contact]]
materials = ["stone", "stone"]
friction = 35
[[shape]]
name = "ball"
kind = "sphere"
radius = 0.05
[[body]]
name = "b"
shape = "ball"
material = "stone"
orientation = { axis = [1, 0, 0], radians = 90 }
"#;
    let case = parse_case("folder/odd.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let expected = [
        "folder/odd.toml:2: simulation.time_step: found 0.5 s, ",
        "folder/odd.toml:4: simulation.gravity: found -9810 m/s², ",
        "folder/odd.toml:7: material.stone.density: found 2.7 kg/m³, ",
        "folder/odd.toml:10: contact.1.friction: found 35, ",
        "folder/odd.toml:19: body.b.orientation.radians: found 90 rad, ",
    ];
    assert_eq!(case.warnings.len(), expected.len(), "{:#?}", case.warnings);
    for (warning, start) in case.warnings.iter().zip(expected) {
        assert!(warning.starts_with(start), "{warning}");
    }
}
