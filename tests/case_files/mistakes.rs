//! Mistakes in case files, and what is said about them.

use breccia::input::{ErrorKind, parse_case};

/// A right case with one of most things.
pub const BASE: &str = r#"title = "base"
[parameters]
mu = 0.5
width = 0.4
[simulation]
time_step = 1e-3
duration = 1.0
theta = 0.5
gravity = [0, 0, -9.81]
[solver]
tolerance = 1e-4
maximum_sweeps = 100
warm_start = true
local_law = "projected"
[[material]]
name = "stone"
density = 2700
[[material]]
name = "wall"
density = 7800
[[contact]]
materials = ["stone", "stone"]
friction = "mu"
[[contact]]
materials = ["stone", "wall"]
friction = 0.7
restitution = 0.25
law = "gap-activated"
[[shape]]
name = "ball"
kind = "sphere"
radius = 0.05
[[shape]]
name = "brick"
kind = "box"
size = [0.2, 0.1, 0.1]
[[shape]]
name = "plane"
kind = "half-space"
[[shape]]
name = "wedge"
kind = "polyhedron"
vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
[[shape]]
name = "tool"
kind = "cluster"
parts = [{ shape = "brick" }, { shape = "ball", position = [0, 0, 0.1] }]
[[table]]
name = "lift"
arguments = [0, 1, 2]
values = [0, 0.1, 0.1]
[[body]]
name = "floor"
shape = "plane"
material = "wall"
motion = "fixed"
orientation = { z_axis = [0, 0, 1] }
[[body]]
name = "ram"
shape = "tool"
material = "wall"
motion = "kinematic"
position = [0, 0, 2]
prescribed = { position = ["lift(t)", 0, 0] }
[[body]]
name = "rock"
shape = "wedge"
material = "stone"
mass = 3.5
velocity = [0, 0, 1]
[[grains]]
name = "pebbles"
generator = "spheres"
material = "stone"
count = 100
radius = [0.01, 0.02]
region = { min = [0, 0, 0], max = [1, 1, 1] }
[[grains]]
name = "ballast"
generator = "stones"
material = "stone"
count = 10
grading = { sieve = [0.02, 0.04], passing = [0, 100] }
region = { min = [0, 0, 2], max = [1, 1, 3] }
[start]
from = "out/final.h5"
material = "stone"
[output]
interval = 0.01
fields = ["id", "velocity"]
compression = 4
"#;

struct Mistake {
    /// Replaced in the base …
    old: &'static str,
    /// … by this.
    new: &'static str,
    /// Stands on the line of the error.
    at: &'static str,
    key: &'static str,
    message: &'static str,
}

const fn mistake(
    old: &'static str,
    new: &'static str,
    at: &'static str,
    key: &'static str,
    message: &'static str,
) -> Mistake {
    Mistake { old, new, at, key, message }
}

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    // Numbers.
    mistake("time_step = 1e-3", "time_step = -1e-3", "time_step", "simulation.time_step", "found -1e-3, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = 0", "time_step", "simulation.time_step", "found 0, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = nan", "time_step", "simulation.time_step", "found nan, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = inf", "time_step", "simulation.time_step", "found inf, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = 1e999", "time_step", "simulation.time_step", "found 1e999, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = true", "time_step", "simulation.time_step", "found true, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = 2020-01-01", "time_step", "simulation.time_step", "found 2020-01-01, expected a number > 0"),
    mistake("time_step = 1e-3", "time_step = 2.0", "time_step", "simulation.time_step", "found 2 s, expected at most the duration, 1 s"),
    mistake("time_step = 1e-3", "time_step = 1e-300", "duration", "simulation.duration", "expected at most 2^50 steps"),
    mistake("time_step = 1e-3\n", "", "[simulation]", "simulation.time_step", "found no such key, expected a number > 0 (s)"),
    mistake("theta = 0.5", "theta = 0.4", "theta", "simulation.theta", "found 0.4, expected a number in [0.5, 1]"),
    mistake("gravity = [0, 0, -9.81]", "gravity = [0, -9.81]", "gravity", "simulation.gravity", "found [0, -9.81] with 2 item(s), expected three numbers"),
    mistake("gravity = [0, 0, -9.81]", "gravity = [0, 0, \"1/(t - 0.5)\"]", "gravity", "simulation.gravity", "found no usable value at t = 0.5 s"),
    mistake("gravity = [0, 0, -9.81]", "gravity = -9.81", "gravity", "simulation.gravity", "found -9.81, expected three numbers or formulas of t"),
    mistake("maximum_sweeps = 100", "maximum_sweeps = 1.5", "maximum_sweeps", "solver.maximum_sweeps", "found 1.5, expected an integer in [1, 1000000000]"),
    mistake("maximum_sweeps = 100", "maximum_sweeps = 99999999999999999999", "maximum_sweeps", "solver.maximum_sweeps", "found 99999999999999999999, expected an integer"),
    mistake("warm_start = true", "warm_start = \"yes\"", "warm_start", "solver.warm_start", "found \"yes\", expected true or false"),
    mistake("local_law = \"projected\"", "local_law = \"exakt\"", "local_law", "solver.local_law", "found \"exakt\", expected one of \"projected\", \"exact\"; did you mean \"exact\"?"),
    mistake("density = 2700", "density = -2700", "density = -2700", "material.stone.density", "found -2700, expected a number in [1e-9, 1e12]"),
    mistake("restitution = 0.25", "restitution = 1.25", "restitution", "contact.2.restitution", "found 1.25, expected a number in [0, 1]"),
    mistake("friction = 0.7", "friction = -0.7", "friction = -0.7", "contact.2.friction", "found -0.7, expected a number ≥ 0"),
    mistake("radius = 0.05", "radius = 0.0", "radius = 0.0\n", "shape.ball.radius", "found 0.0, expected a number in [1e-9, 1e7]"),
    mistake("size = [0.2, 0.1, 0.1]", "size = [0.2, -0.1, 0.1]", "size", "shape.brick.size", "found -0.1, expected a number in [1e-9, 1e7]"),
    mistake("mass = 3.5", "mass = 0", "mass", "body.rock.mass", "found 0, expected a number in [1e-30, 1e30]"),
    mistake("count = 100", "count = 2000000000000", "count = 2", "grains.pebbles.count", "found 2000000000000, expected an integer in [1, 1099511627776]"),
    mistake("count = 100", "count = 0", "count = 0", "grains.pebbles.count", "found 0, expected an integer in"),
    mistake("radius = [0.01, 0.02]", "radius = [0.02, 0.01]", "radius = [0.02", "grains.pebbles.radius", "found [0.02, 0.01], expected a number in [1e-9, 1e7], or [smallest, largest], each in [1e-9, 1e7]"),
    mistake("compression = 4", "compression = 10", "compression", "output.compression", "found 10, expected an integer in [0, 9]"),
    mistake("interval = 0.01", "interval = 1e-4", "interval", "output.interval", "found 0.0001 s, expected at least simulation.time_step, 0.001 s"),
    // Keys.
    mistake("tolerance = 1e-4", "tolerence = 1e-4", "tolerence", "solver.tolerence", "found an unknown key, expected one of tolerance, "),
    mistake("tolerance = 1e-4", "tolerence = 1e-4", "tolerence", "solver.tolerence", "did you mean \"tolerance\"?"),
    mistake("[solver]", "[slover]", "[slover]", "slover", "did you mean \"solver\"?"),
    mistake("title = \"base\"", "title = 3", "title", "title", "found 3, expected a text"),
    mistake("mass = 3.5", "motion = \"fixed\"\nmass = 3.5", "mass", "body.rock.mass", "found a key of motion = \"free\", expected for motion = \"fixed\" one of"),
    mistake("motion = \"kinematic\"", "motion = \"kinematik\"", "kinematik", "body.ram.motion", "found \"kinematik\", expected one of \"free\", \"fixed\", \"kinematic\"; did you mean \"kinematic\"?"),
    mistake("kind = \"box\"\n", "", "[[shape]]\nname = \"brick\"", "shape.brick.kind", "found no such key, expected one of \"sphere\", \"box\""),
    mistake("kind = \"box\"", "kind = \"sphere\"", "size", "shape.brick.size", "found a key of kind = \"box\", expected for kind = \"sphere\""),
    mistake("name = \"brick\"", "name = \"my brick\"", "my brick", "shape.2.name", "found \"my brick\", expected a name of letters, digits, `_` and `-`"),
    mistake("[simulation]", "[[simulation]]", "[[simulation]]", "simulation", "expected a table"),
    mistake("[start]", "[start]\nform = 1", "form = 1", "start.form", "did you mean \"from\"?"),
    // Names.
    mistake("name = \"wall\"", "name = \"stone\"", "name = \"stone\"\ndensity = 7800", "material.stone.name", "found \"stone\" once more, expected another name"),
    mistake("name = \"pebbles\"", "name = \"rock\"", "name = \"rock\"\ngenerator", "grains.rock.name", "found \"rock\" once more, expected another name"),
    mistake("shape = \"wedge\"", "shape = \"wegde\"", "wegde", "body.rock.shape", "found the unknown name \"wegde\", expected a shape: one of \"ball\", \"brick\", \"plane\", \"tool\", \"wedge\"; did you mean \"wedge\"?"),
    mistake("shape = \"wedge\"\nmaterial = \"stone\"", "shape = \"wedge\"\nmaterial = \"stne\"", "stne", "body.rock.material", "found the unknown name \"stne\", expected a material: one of \"stone\", \"wall\"; did you mean \"stone\"?"),
    mistake("materials = [\"stone\", \"wall\"]", "materials = [\"stone\"]", "materials = [\"stone\"]", "contact.2.materials", "found [\"stone\"], expected the names of two [[material]]"),
    mistake("materials = [\"stone\", \"wall\"]", "materials = [\"stone\", \"stone\"]", "materials = [\"stone\", \"stone\"]\nfriction = 0.7", "contact.2.materials", "found \"stone\" with \"stone\" once more, expected each pair once"),
    mistake("{ shape = \"brick\" }", "{ shape = \"tool\" }", "parts", "shape.tool.parts", "found the cycle tool → tool, expected clusters that do not contain themselves"),
    mistake("{ shape = \"brick\" }", "{ shape = \"pipe\" }", "pipe", "shape.tool.parts.1.shape", "found the unknown name \"pipe\""),
    // Relations.
    mistake("law = \"gap-activated\"", "law = \"predictive\"", "restitution", "contact.2.restitution", "found 0.25 with the law \"predictive\", expected 0, or law = \"gap-activated\""),
    mistake("friction = \"mu\"", "friction = \"mu\"\ndissipation = 0.1", "dissipation", "contact.1.dissipation", "found without a stiffness, expected stiffness or young_modulus beside it"),
    mistake("friction = \"mu\"", "friction = \"mu\"\nrestitution = 0.5\nstiffness = 1e7", "restitution = 0.5", "contact.1.restitution", "found with a stiffness, expected 0"),
    mistake("friction = \"mu\"", "friction = \"mu\"\nlaw = \"gap-activated\"\nstiffness = 1e7", "law = \"gap-activated\"\nstiffness", "contact.1.law", "found \"gap-activated\" with a stiffness, expected \"predictive\" or nothing"),
    mistake("friction = \"mu\"", "friction = \"mu\"\nstiffness = 0", "stiffness", "contact.1.stiffness", "found 0, expected a number > 0"),
    mistake("[[contact]]\nmaterials = [\"stone\", \"stone\"]\nfriction = \"mu\"\n", "", "material = \"stone\"\nmass", "contact", "found no entry for \"stone\" with \"stone\", which can meet (body.rock), expected a [[contact]]"),
    mistake("shape = \"wedge\"", "shape = \"plane\"", "shape = \"plane\"\nmaterial = \"stone\"", "body.rock.shape", "found \"plane\", a half-space, on a free body, expected motion = \"fixed\" or \"kinematic\""),
    mistake("prescribed = { position = [\"lift(t)\", 0, 0] }\n", "", "[[body]]\nname = \"ram\"", "body.ram.prescribed", "found no such key, expected a table"),
    mistake("prescribed = { position = [\"lift(t)\", 0, 0] }", "prescribed = {}", "prescribed", "body.ram.prescribed", "found no motion, expected at least one of position, velocity, rotation, angular_velocity"),
    mistake("[\"lift(t)\", 0, 0] }", "[\"lift(t)\", 0, 0], velocity = [1, 0, 0] }", "prescribed", "body.ram.prescribed", "found position and velocity, expected either position, or velocity"),
    mistake("[\"lift(t)\", 0, 0] }", "[\"1/(1-t)\", 0, 0] }", "prescribed", "body.ram.prescribed", "found no usable motion at t = 1 s"),
    mistake("[\"lift(t)\", 0, 0] }", "[\"lfit(t)\", 0, 0] }", "prescribed", "body.ram.prescribed.position", "found the unknown function `lfit`"),
    mistake("[\"lift(t)\", 0, 0] }", "[\"lift(tt)\", 0, 0] }", "prescribed", "body.ram.prescribed.position", "found the unknown name `tt`, expected one of t, mu, width, pi"),
    mistake("friction = \"mu\"", "friction = \"mu*t\"", "mu*t", "contact.1.friction", "found the unknown name `t`, expected one of mu, width, pi"),
    mistake("friction = \"mu\"", "friction = \"mu - 1\"", "mu - 1", "contact.1.friction", "found \"mu - 1\" = -0.5, expected a number ≥ 0"),
    mistake("friction = \"mu\"", "friction = \"mu +\"", "mu +", "contact.1.friction", "found the end, expected a number, a name or `(`"),
    mistake("friction = \"mu\"", "friction = \"\"", "friction = \"\"", "contact.1.friction", "found an empty expression"),
    mistake("friction = \"mu\"", "friction = \"1/0\"", "1/0", "contact.1.friction", "found \"1/0\" = inf, expected a number ≥ 0"),
    mistake("mu = 0.5", "sin = 0.5\nmu = 0.5", "sin = 0.5", "parameters.sin", "found the name \"sin\", which formulas already know"),
    mistake("mu = 0.5", "mu = \"width\"", "mu = ", "parameters.mu", "found the unknown name `width`"),
    mistake("mu = 0.5", "mu = [0.5]", "mu = ", "parameters.mu", "found [0.5], expected a number or a formula"),
    mistake("name = \"lift\"", "name = \"mu\"", "name = \"mu\"", "table.mu.name", "found the name \"mu\", which formulas already know"),
    mistake("arguments = [0, 1, 2]", "arguments = [0, 1, 1]", "arguments", "table.lift.arguments", "found 1 after 1 (point 3), expected increasing arguments"),
    mistake("arguments = [0, 1, 2]", "arguments = [0, 1]", "arguments", "table.lift.arguments", "found 2 argument(s) and 3 value(s)"),
    mistake("arguments = [0, 1, 2]", "file = \"no.csv\"", "values = [0, 0.1", "table.lift", "found file and values, expected either arguments with values, or file"),
    mistake("z_axis = [0, 0, 1]", "z_axis = [0, 0, 0]", "z_axis", "body.floor.orientation.z_axis", "found [0, 0, 0], expected a direction [x, y, z], not all zero"),
    mistake("z_axis = [0, 0, 1]", "quaternion = [0, 0, 0, 0]", "quaternion", "body.floor.orientation.quaternion", "expected a quaternion [w, x, y, z], not all zero"),
    mistake("z_axis = [0, 0, 1]", "axis = [0, 0, 1]", "axis = [0", "body.floor.orientation", "found axis, expected either axis with degrees, or axis with radians, or z_axis"),
    mistake("z_axis = [0, 0, 1]", "axis = [0, 0, 1], degrees = 3, radians = 1", "degrees", "body.floor.orientation", "found axis and degrees and radians, expected either"),
    mistake("{ z_axis = [0, 0, 1] }", "[0, 0, 1]", "orientation", "body.floor.orientation", "found [0, 0, 1], expected a table"),
    mistake(", [0, 0, 1]]", "]", "vertices", "shape.wedge.vertices", "found 3 point(s), expected a list of at least 4 points"),
    mistake(", [0, 0, 1]]", ", [1, 1, 0]]", "vertices", "shape.wedge.vertices", "found points that enclose no volume, expected others: all 4 points lie in one plane"),
    mistake("vertices = [", "file = \"no.stl\"\nvertices = [", "vertices", "shape.wedge", "found file and vertices, expected either vertices, or file"),
    mistake("vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]", "file = \"no.stl\"", "no.stl", "shape.wedge.file", "found no file at \"no.stl\" (folder/no.stl), expected one"),
    mistake("max = [1, 1, 1]", "max = [1, 0, 1]", "max = [1, 0", "grains.pebbles.region.max", "found [1, 0, 1], expected more than min, [0, 0, 0], in each direction"),
    mistake("passing = [0, 100]", "passing = [0, 90]", "passing", "grains.ballast.grading.passing", "found 0 first and 90 last, expected 0 first and 100 last"),
    mistake("sieve = [0.02, 0.04]", "sieve = [0.04, 0.02]", "sieve", "grains.ballast.grading.sieve", "found 0.02 after 0.04, expected increasing sizes"),
    mistake("grading = { sieve = [0.02, 0.04], passing = [0, 100] }", "grading = \"EN 13450 B\"", "EN 13450 B", "grains.ballast.grading", "found \"EN 13450 B\", expected a table or one of \"EN 13450 A 31.5/50\""),
    mistake("\"velocity\"]", "\"velocty\"]", "velocty", "output.fields", "found \"velocty\", expected one of \"id\", \"group\", \"velocity\", \"angular_velocity\", \"speed\"; did you mean \"velocity\"?"),
    mistake("\"velocity\"]", "\"id\"]", "fields", "output.fields", "found \"id\", expected each word only once"),
    // Units.
    mistake("tolerance = 1e-4", "tolerance = \"5 ms\"", "\"5 ms\"", "solver.tolerance", "found \"5 ms\", expected a number in SI units without a unit: write 0.005"),
    mistake("tolerance = 1e-4", "tolerance = 5 ms", "tolerance = 5 ms", "", "found \"5 ms\", expected a number in SI units without a unit: write 0.005"),
    // Not TOML.
    mistake("theta = 0.5", "theta = ", "theta", "", "not TOML: "),
    mistake("theta = 0.5", "theta = 0.5\ntheta = 0.6", "theta = 0.6", "", "not TOML: duplicate key"),
];

#[test]
fn the_base_is_right() {
    let case = parse_case("folder/base.toml", BASE, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(case.warnings, Vec::<String>::new());
}

#[test]
fn every_mistake_is_told_with_line_and_key() {
    let mut failures = Vec::new();
    for Mistake { old, new, at, key, message } in MISTAKES {
        assert!(BASE.contains(old), "{old:?} is not in the base");
        let text = BASE.replacen(old, new, 1);
        let line = 1 + text[..text.find(at).expect(at)].matches('\n').count();
        let Err(errors) = parse_case("folder/case.toml", &text, &[]) else {
            failures.push(format!("{new:?} was taken"));
            continue;
        };
        let told = errors.errors.iter().any(|error| {
            error.file == "folder/case.toml"
                && error.line == Some(line)
                && error.key == *key
                && error.message.contains(message)
        });
        if !told {
            failures.push(format!("{new:?}: expected line {line}, {key}: {message}\n{errors}"));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    assert!(MISTAKES.len() > 60);
}

/// One mistake must not breed more: every entry gives exactly one error, but for these few that truly make
/// more.
#[test]
fn one_mistake_makes_one_error() {
    let truly_several = [
        "time_step = 2.0",                // longer than the output interval, too
        "motion = \"fixed\"\nmass = 3.5", // a fixed body has no velocity either
        "kind = \"sphere\"",              // wants a radius and has a size
        "name = \"stone\"",               // wall is gone
        "name = \"my brick\"",
        "name = \"mu\"",
        "materials = [\"stone\", \"stone\"]", // so is the pair with wall
        "file = \"no.csv\"",
        "file = \"no.stl\"\nvertices = [",
    ];
    let mut failures = Vec::new();
    for Mistake { old, new, .. } in MISTAKES {
        let text = BASE.replacen(old, new, 1);
        if let Err(errors) = parse_case("folder/case.toml", &text, &[])
            && errors.errors.len() != 1
            && !truly_several.contains(new)
        {
            failures.push(format!("{new:?}\n{errors}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn all_mistakes_come_at_once_in_the_order_of_the_file() {
    let text = r#"[simulation]
time_step = -1
duration = 1.0
[solver]
tolerence = 1e-4
[[body]]
name = "ball"
shape = "sphere"
"#;
    let errors = parse_case("inputs/foo.toml", text, &[]).expect_err("wrong");
    let expected = r#"inputs/foo.toml:2: simulation.time_step: found -1, expected a number > 0
  2 | time_step = -1
    |             ^^
inputs/foo.toml:5: solver.tolerence: found an unknown key, expected one of tolerance, force_tolerance, measure, fallback, patch_reuse or 12 others; did you mean "tolerance"?
  5 | tolerence = 1e-4
    | ^^^^^^^^^
inputs/foo.toml:6: body.ball.material: found no such key, expected the name of a [[material]]
  6 | [[body]]
    | ^^^^^^^^
inputs/foo.toml:8: body.ball.shape: found the unknown name "sphere", expected the name of a [[shape]], of which there is none
  8 | shape = "sphere"
    |         ^^^^^^^^
4 errors"#;
    assert_eq!(errors.to_string(), expected);
}

#[test]
fn what_is_not_toml_hides_only_what_depends_on_it() {
    let text = BASE.replacen("theta = 0.5", "theta 0.5", 1).replacen("radius = 0.05", "radius = -0.05", 1);
    let errors = parse_case("case.toml", &text, &[]).expect_err("wrong");
    let kinds: Vec<ErrorKind> = errors.errors.iter().map(|error| error.kind).collect();
    assert!(kinds.contains(&ErrorKind::Syntax) && kinds.contains(&ErrorKind::Value), "{errors}");
    assert!(errors.errors.iter().any(|error| error.key == "shape.ball.radius"), "{errors}");
}

#[test]
fn carets_point_into_formulas_and_long_lines() {
    let text = BASE.replacen("friction = \"mu\"", "friction = \"2*nu + 1\"", 1);
    let shown = parse_case("case.toml", &text, &[]).expect_err("wrong").to_string();
    assert!(shown.contains("| friction = \"2*nu + 1\"\n     |               ^^\n"), "{shown}");
    let long = format!("radius = \"{}nu\"", "0 + ".repeat(200));
    let shown = parse_case("case.toml", &BASE.replacen("radius = 0.05", &long, 1), &[])
        .expect_err("wrong")
        .to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let (text, caret) = (lines[1], lines[2].find('^').expect("a caret"));
    assert!(text.len() < 120 && text[caret..].starts_with("nu\""), "{shown}");
}

#[test]
fn files_are_named_when_they_cannot_be_read() {
    let folder = std::env::temp_dir().join(format!("breccia-case-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("a file");
    write("bad.csv", b"time, lift\n0, 0\n1, x\n");
    write("binary.toml", b"title = \"\xff\"\n");
    let case = folder.join("case.toml").display().to_string();
    let text = BASE.replacen("arguments = [0, 1, 2]\nvalues = [0, 0.1, 0.1]", "file = \"bad.csv\"", 1);
    let errors = parse_case(&case, &text, &[]).expect_err("wrong").to_string();
    assert!(
        errors.contains("bad.csv:3: table.lift.file: found \"x\" in column 2, expected a number"),
        "{errors}"
    );
    write("good.csv", b"time, lift\n0, 0\n1, 0.5\n");
    let right = text.replace("bad.csv", "good.csv");
    let read = parse_case(&case, &right, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(read.scope.tables["lift"].evaluate(0.5)[0], 0.25);
    let errors = breccia::input::read_case(&folder.join("binary.toml")).expect_err("wrong").to_string();
    assert!(errors.contains("binary.toml: found bytes that are not UTF-8 text on line 1"), "{errors}");
    let errors = breccia::input::read_case(&folder.join("none.toml")).expect_err("wrong").to_string();
    assert!(errors.contains("none.toml: found a file that cannot be read"), "{errors}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
