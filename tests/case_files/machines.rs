//! Machines in case files: what is right, what is wrong and where, and files that are included.

use breccia::input::{MachineForce, SelfContact, parse_case, read_case};
use breccia::multibody::{CutKind, JointKind, Partitioning};
use std::path::PathBuf;

/// A right case with one of most things that a machine can have.
pub const BASE: &str = r#"title = "robot"
[parameters]
K = 100
arm = 0.5
[simulation]
time_step = 1e-3
duration = 1.0
[[table]]
name = "lift"
arguments = [0, 1, 2]
values = [0, 0.1, 0.1]
[[material]]
name = "steel"
density = 7800
[[contact]]
materials = ["steel", "steel"]
friction = 0.3
[[shape]]
name = "ball"
kind = "sphere"
radius = 0.05
[[shape]]
name = "plane"
kind = "half-space"
[[body]]
name = "floor"
shape = "plane"
material = "steel"
motion = "fixed"
position = [0, 0, -3]
[[machine]]
name = "robot"
ground_points = { hook = [0, 0, 1] }
partition = { independent = ["turn", "slide.slide", "hand.first", "hand.second", "ball.wx", "ball.wy", "ball.wz"], always = false }
closure_tolerance = 1e-11
self_contact = "not-neighbours"
[[machine.body]]
name = "column"
mass = 10
inertia = [1, 1, 1]
centre = [0, 0, 0.5]
points = { top = [0, 0, 1], side = ["arm", 0, 0] }
[[machine.body]]
name = "boom"
mass = 5
inertia = [1, 1.5, 2, 0.1, 0, 0]
points = { tip = [2, 0, 0] }
[[machine.body]]
name = "fist"
shape = "ball"
material = "steel"
[[machine.body]]
name = "claw"
parts = [{ shape = "ball", position = [0, 0, 0.1] }, { shape = "ball", position = [0, 0, -0.1] }]
material = "steel"
contacts = true
[[machine.body]]
name = "sphere"
mass = 1
[[machine.body]]
name = "strut"
mass = 0.5
inertia = [0.1, 0.1, 0.1]
points = { end = [0, 1, 0] }
[[machine.joint]]
name = "base"
kind = "prismatic"
child = "column"
axis = [0, 0, 1]
prescribed = "0.01*sin(2*pi*15*t)"
[[machine.joint]]
name = "turn"
kind = "revolute"
parent = "column"
child = "boom"
axis = [0, 0, 2]
on_parent = "top"
position = 0.2
velocity = "2*pi"
[[machine.joint]]
name = "slide"
kind = "cylindrical"
parent = "boom"
child = "fist"
axis = [1, 0, 0]
on_parent = { position = [1, 0, 0], orientation = { axis = [0, 0, 1], degrees = 10 } }
position = [0.1, 0]
prescribed = { angle = "t" }
[[machine.joint]]
name = "hand"
kind = "universal"
parent = "fist"
child = "claw"
first = [1, 0, 0]
second = [0, 1, 0]
on_child = [0, 0, 0.3]
[[machine.joint]]
name = "ball"
kind = "spherical"
parent = "claw"
child = "sphere"
orientation = { axis = [0, 1, 0], degrees = 20 }
velocity = [1, 0, 0]
[[machine.joint]]
name = "swivel"
kind = "free"
child = "strut"
position = [0, 0, 1]
held = false
[[machine.cut]]
name = "pin"
kind = "points"
between = ["strut.origin", "ground.hook"]
[[machine.spring]]
name = "coil"
joint = "turn"
stiffness = "K"
damping = 1
[[machine.spring]]
name = "band"
between = ["column.side", "boom.tip"]
stiffness = 10
rest = 0.4
[[machine.actuator]]
name = "motor"
joint = "turn"
law = { diving = "-K*(x - lift(t)) - 2*v", squeezing = "slide.slide.velocity*depth" }
[[machine.actuator]]
name = "ram"
between = ["column.top", "claw.centre"]
law = "10*(x - 1) - v + phase.time"
[[machine.force]]
name = "wind"
point = "claw.origin"
direction = [0, 1, 0]
law = "3*sin(t)"
[[machine.torque]]
name = "spin"
body = "strut"
direction = [0, 0, 1]
frame = "body"
law = 0.1
[[machine.phase]]
name = "diving"
until = "depth > 0.3 or t > 1"
[[machine.phase]]
name = "squeezing"
until = "phase.time > 2"
next = "diving"
[machine.quantities]
depth = "-claw.centre.z"
speed = "hypot(boom.tip.vx, boom.tip.vy) + depth + turn.position"
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
    // Bodies.
    mistake("mass = 10\n", "mass = -1\n", "mass = -1", "machine.robot.body.column.mass", "found -1, expected a number in [0, 1e30]"),
    mistake("name = \"sphere\"\nmass = 1\n", "name = \"sphere\"\n", "[[machine.body]]\nname = \"sphere\"", "machine.robot.body.sphere.mass", "found neither a mass nor a shape, expected"),
    mistake("inertia = [1, 1, 1]", "inertia = [1, 1]", "inertia = [1, 1]", "machine.robot.body.column.inertia", "found [1, 1], expected [Ixx, Iyy, Izz], or [Ixx, Iyy, Izz, Ixy, Iyz, Izx]"),
    mistake("inertia = [1, 1, 1]", "inertia = [1, 1, 5]", "[[machine.body]]\nname = \"column\"", "machine.robot.body.column", "no mass distribution has this inertia"),
    mistake("top = [0, 0, 1]", "centre = [0, 0, 1]", "centre = [0, 0, 1]", "machine.robot.body.column.points.centre", "found the name \"centre\", which is there already"),
    mistake("side = [\"arm\", 0, 0]", "side = [\"arm\", 0]", "side = ", "machine.robot.body.column.points", "found [\"arm\", 0] with 2 item(s), expected three numbers"),
    mistake("name = \"strut\"", "name = \"ground\"", "name = \"ground\"", "machine.robot.body.ground.name", "found \"ground\", which is the world"),
    mistake("name = \"strut\"", "name = \"boom\"", "name = \"boom\"\nmass = 0.5", "machine.robot.body.boom.name", "found \"boom\" once more"),
    mistake("shape = \"ball\"\nmaterial = \"steel\"", "shape = \"ball\"", "[[machine.body]]\nname = \"fist\"", "machine.robot.body.fist.material", "found a shape without a material"),
    mistake("name = \"sphere\"\nmass = 1\n", "name = \"sphere\"\nmass = 1\nmaterial = \"steel\"\n", "material = \"steel\"\n[[machine.body]]\nname = \"strut\"", "machine.robot.body.sphere.material", "found a material without a shape"),
    mistake("shape = \"ball\"\nmaterial", "shape = \"plane\"\nmaterial", "shape = \"plane\"\nmaterial = \"steel\"\n[[machine.body]]", "machine.robot.body.fist.shape", "found \"plane\", a half-space, on a machine"),
    mistake("position = [0, 0, 0.1] }", "positon = [0, 0, 0.1] }", "positon", "machine.robot.body.claw.parts.1.positon", "did you mean \"position\"?"),
    // Joints.
    mistake("kind = \"revolute\"", "kind = \"hinge\"", "hinge", "machine.robot.joint.turn.kind", "found \"hinge\", expected one of \"revolute\", \"prismatic\""),
    mistake("name = \"turn\"", "name = \"turn-table\"", "turn-table", "machine.robot.joint.turn-table.name", "expected a name of letters, digits and `_` that does not start with a digit"),
    mistake("axis = [0, 0, 2]", "axis = [0, 0, 0]", "axis = [0, 0, 0]", "machine.robot.joint.turn.axis", "expected a direction"),
    mistake("axis = [0, 0, 2]\n", "", "[[machine.joint]]\nname = \"turn\"", "machine.robot.joint.turn.axis", "found no such key, expected a direction"),
    mistake("second = [0, 1, 0]", "second = [2, 0, 0]", "[[machine.joint]]\nname = \"hand\"", "machine.robot.joint.hand", "two axes must not be parallel"),
    mistake("parent = \"column\"", "parent = \"colum\"", "colum\"", "machine.robot.joint.turn.parent", "found the unknown name \"colum\", expected a body: one of \"column\", \"boom\", \"fist\", \"claw\", \"sphere\", \"strut\", \"ground\"; did you mean \"column\"?"),
    mistake("child = \"sphere\"", "child = \"claw\"", "child = \"claw\"\norientation", "machine.robot.joint.ball.child", "found \"claw\", which machine.robot.joint.hand carries already"),
    mistake("[[machine.joint]]\nname = \"swivel\"\nkind = \"free\"\nchild = \"strut\"\nposition = [0, 0, 1]\nheld = false\n", "", "[[machine.body]]\nname = \"strut\"", "machine.robot.body.strut", "found no joint with child = \"strut\""),
    mistake("kind = \"prismatic\"\nchild", "kind = \"prismatic\"\nparent = \"claw\"\nchild", "[[machine.body]]\nname = \"column\"", "machine.robot.body.column", "form a ring that never reaches the ground"),
    mistake("on_parent = \"top\"", "on_parent = \"tpo\"", "tpo", "machine.robot.joint.turn.on_parent", "found the unknown name \"tpo\", expected a point of \"column\": one of \"origin\", \"centre\", \"top\", \"side\"; did you mean \"top\"?"),
    mistake("on_child = [0, 0, 0.3]", "on_child = \"centre\"", "on_child = \"centre\"", "machine.robot.joint.hand.on_child", "found \"centre\", which follows from the shape"),
    mistake("on_child = [0, 0, 0.3]", "on_child = 3", "on_child = 3", "machine.robot.joint.hand.on_child", "found 3, expected a point [x, y, z], the name of a point of the body, or a table"),
    mistake("degrees = 10 } }", "degrees = 10, radians = 1 } }", "degrees = 10", "machine.robot.joint.slide.on_parent.orientation", "found axis and degrees and radians"),
    mistake("position = [0.1, 0]", "position = [0.1]", "position = [0.1]", "machine.robot.joint.slide.position", "found [0.1] with 1 item(s), expected a list of 2 numbers"),
    mistake("position = 0.2", "position = [0.2]", "position = [0.2]", "machine.robot.joint.turn.position", "found [0.2], expected a number"),
    mistake("prescribed = \"0.01*sin(2*pi*15*t)\"", "prescribed = \"0.01*sin(x)\"", "sin(x)", "machine.robot.joint.base.prescribed", "found the unknown name `x`, expected one of t, "),
    mistake("prescribed = \"0.01*sin(2*pi*15*t)\"", "prescribed = \"1/(t - 0.5)\"", "1/(t", "machine.robot.joint.base.prescribed", "found no usable motion at t = 0.5 s"),
    mistake("prescribed = { angle = \"t\" }", "prescribed = { angel = \"t\" }", "angel", "machine.robot.joint.slide.prescribed", "found the label \"angel\", expected one of \"slide\", \"angle\""),
    mistake("prescribed = { angle = \"t\" }", "prescribed = \"t\"", "prescribed = \"t\"", "machine.robot.joint.slide.prescribed", "found one formula for several coordinates"),
    mistake("held = false", "held = 0", "held = 0", "machine.robot.joint.swivel.held", "found 0, expected true or false"),
    // Cuts and forces.
    mistake("kind = \"points\"", "kind = \"rod\"", "[[machine.cut]]", "machine.robot.cut.pin.length", "found no such key, expected a number"),
    mistake("\"ground.hook\"", "\"ground.hok\"", "ground.hok", "machine.robot.cut.pin.between", "found the unknown name \"hok\", expected a point of \"ground\": one of \"origin\", \"hook\"; did you mean \"hook\"?"),
    mistake("\"ground.hook\"", "\"strut.end\"", "[[machine.cut]]", "machine.robot.cut.pin", "both ends are on one body"),
    mistake("joint = \"turn\"\nstiffness", "joint = \"trun\"\nstiffness", "trun", "machine.robot.spring.coil.joint", "found the unknown name \"trun\", expected a coordinate: one of \"turn\", \"base\", \"ball.wx\", \"ball.wy\", \"ball.wz\" or 10 others; did you mean \"turn\"?"),
    mistake("joint = \"turn\"\nstiffness", "joint = \"ball.wx\"\nstiffness", "[[machine.spring]]", "machine.robot.spring.coil", "a rotation in space has no single angle"),
    mistake("joint = \"turn\"\nstiffness", "joint = \"turn\"\nbetween = [\"column\", \"boom\"]\nstiffness", "joint = \"turn\"\nbetween", "machine.robot.spring.coil", "found between and joint, expected either joint, or between"),
    mistake("rest = 0.4", "rest = -0.4", "rest = -0.4", "machine.robot.spring.band.rest", "found a length below 0"),
    mistake("name = \"band\"", "name = \"motor\"", "name = \"motor\"\njoint", "machine.robot.actuator.motor.name", "found \"motor\" once more"),
    mistake("law = \"10*(x - 1) - v + phase.time\"", "law = \"10*(y - 1) - v\"", "10*(y", "machine.robot.actuator.ram.law", "found the unknown name `y`, expected one of x, v, t, base.velocity, turn.velocity or 28 others"),
    mistake("law = \"3*sin(t)\"", "law = \"3*sin(x)\"", "3*sin(x)", "machine.robot.force.wind.law", "found the unknown name `x`"),
    mistake("law = \"3*sin(t)\"", "law = \"ball.wx.position\"", "ball.wx.position", "machine.robot.force.wind.law", "found the unknown name `ball.wx.position`"),
    mistake("law = \"3*sin(t)\"", "law = \"1/0\"", "1/0", "machine.robot.force.wind.law", "expected a formula with a finite value"),
    mistake(", squeezing = \"slide.slide.velocity*depth\" }", " }", "diving = \"-K", "machine.robot.actuator.motor.law", "found no law for \"squeezing\", expected one for each phase"),
    mistake("law = { diving", "law = { dving", "dving", "machine.robot.actuator.motor.law", "found the unknown name \"dving\", expected a phase: one of \"diving\", \"squeezing\"; did you mean \"diving\"?"),
    mistake("point = \"claw.origin\"", "point = \"ground.hook\"", "point = \"ground", "machine.robot.force.wind.point", "expected a point of a body that can move"),
    mistake("body = \"strut\"", "body = \"ground\"", "body = \"ground\"", "machine.robot.torque.spin.body", "found the unknown name \"ground\", expected a body"),
    mistake("frame = \"body\"", "frame = \"wrold\"", "wrold", "machine.robot.torque.spin.frame", "did you mean \"world\"?"),
    // Phases and quantities.
    mistake("until = \"depth > 0.3 or t > 1\"\n", "", "[[machine.phase]]", "machine.robot.phase.diving.until", "found a phase that never ends but is followed by another"),
    mistake("next = \"diving\"", "nxt = \"diving\"", "nxt", "machine.robot.phase.squeezing.nxt", "did you mean \"next\"?"),
    mistake("name = \"squeezing\"", "name = \"squee zing\"", "squee zing", "machine.robot.phase.2.name", "expected a name of letters"),
    mistake("next = \"diving\"\n", "", "until = \"phase.time > 2\"", "machine.robot.phase.squeezing.until", "found an end of the last phase, expected `next`, or no `until`"),
    mistake("next = \"diving\"", "next = \"driving\"", "driving", "machine.robot.phase.squeezing.next", "found the unknown name \"driving\", expected a phase"),
    mistake("depth > 0.3 or t > 1", "dept > 0.3 or t > 1", "dept >", "machine.robot.phase.diving.until", "found the unknown name `dept`"),
    mistake("+ turn.position\"", "+ turn.angle\"", "turn.angle", "machine.robot.quantities.speed", "found the unknown name `turn.angle`"),
    mistake("depth = \"-claw.centre.z\"", "depth = \"-speed\"", "\"-speed\"", "machine.robot.quantities.depth", "found the unknown name `speed`"),
    mistake("speed = \"hypot", "sin = \"hypot", "sin = \"hypot", "machine.robot.quantities.sin", "found the name \"sin\", which formulas already know"),
    mistake("speed = \"hypot", "K = \"hypot", "K = \"hypot", "machine.robot.quantities.K", "found the name \"K\", which formulas already know"),
    mistake("speed = \"hypot", "phase = \"hypot", "phase = \"hypot", "machine.robot.quantities.phase", "found the name \"phase\", which formulas already know"),
    // The whole.
    mistake("partition = { independent", "partition = { dependnt", "partition", "machine.robot.partition.dependnt", "did you mean \"dependent\"?"),
    mistake("[\"turn\",", "[\"turn\", \"turn\",", "partition", "machine.robot.partition.independent", "expected each coordinate only once"),
    mistake("[\"turn\",", "[\"base\",", "partition", "machine.robot.partition.independent", "found \"base\", whose motion is prescribed"),
    mistake("\"hand.first\",", "\"hand.frist\",", "hand.frist", "machine.robot.partition.independent", "found the unknown name \"hand.frist\", expected a coordinate"),
    mistake("closure_tolerance = 1e-11", "closure_tolerance = 0", "closure_tolerance", "machine.robot.closure_tolerance", "found 0, expected a number in [1e-15, 0.001]"),
    mistake("self_contact = \"not-neighbours\"", "self_contact = \"some\"", "\"some\"", "machine.robot.self_contact", "found \"some\", expected one of"),
    mistake("name = \"robot\"", "name = \"floor\"", "name = \"floor\"\nground", "machine.floor.name", "found \"floor\" once more"),
    mistake("duration = 1.0", "duration = 1.0\ngravity = [\"t\", 0, 0]", "gravity", "simulation.gravity", "found gravity that changes with time, expected a constant one in a case with a [[machine]]"),
    mistake("K = 100", "K = 100\nv = 3", "v = 3", "parameters.v", "found the name \"v\", which laws of a [[machine]] already know"),
    mistake("[[contact]]\nmaterials = [\"steel\", \"steel\"]\nfriction = 0.3\n", "", "material = \"steel\"\n[[machine.body]]\nname = \"claw\"", "contact", "found no entry for \"steel\" with \"steel\", which can meet (machine.robot.body.fist)"),
    mistake("title = \"robot\"", "include = \"nowhere.toml\"", "include", "include", "found no file at folder/nowhere.toml, expected one"),
    mistake("title = \"robot\"", "include = 3", "include", "include", "found a number, expected the path of a file, or a list of paths"),
];

#[test]
fn the_base_says_what_it_says() {
    let case = parse_case("folder/base.toml", BASE, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(case.warnings, Vec::<String>::new());
    let [machine] = &case.machines[..] else { panic!("one machine") };
    assert_eq!((machine.name.as_str(), machine.bodies.len(), machine.joints.len()), ("robot", 6, 6));
    assert_eq!(machine.self_contact, SelfContact::NotNeighbours);
    let Partitioning::Preferred(dependent) = &machine.partitioning else { panic!("preferred") };
    assert_eq!(dependent, &["swivel.x", "swivel.y", "swivel.z", "swivel.wx", "swivel.wy", "swivel.wz"]);
    let slide = &machine.joints[2];
    assert!(matches!(slide.kind, JointKind::Cylindrical { .. }));
    assert_eq!(slide.parent_frame.position.as_slice(), [1.0, 0.0, 0.0]);
    assert!((slide.parent_frame.rotation.angle() - 10f64.to_radians()).abs() < 1e-15);
    assert_eq!(machine.joints[1].parent_frame.position.as_slice(), [0.0, 0.0, 1.0]);
    assert_eq!(machine.joints[1].velocity, [std::f64::consts::TAU]);
    let turned = &machine.joints[4].position;
    assert!((turned[0] - 10f64.to_radians().cos()).abs() < 1e-15 && turned.len() == 4, "{turned:?}");
    let prescribed: Vec<&str> = machine.prescribed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(prescribed, ["base", "slide.angle"]);
    assert_eq!(machine.cuts[0].kind, CutKind::Points { a: "strut.origin".into(), b: "ground.hook".into() });
    let MachineForce::Actuator { law, .. } = &machine.forces[2].1 else { panic!("the motor") };
    assert_eq!(law.0.len(), 2);
    assert_eq!(law.0[1].text(), "slide.slide.velocity*depth");
    assert_eq!(machine.phases[1].until.as_ref().map(|(_, next)| *next), Some(0));
    let parts = &machine.bodies[3].parts;
    assert_eq!((parts.len(), parts[1].pose.position.z), (2, -0.1));
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
    assert!(MISTAKES.len() > 60, "{}", MISTAKES.len());
}

/// One mistake must not breed more, but for these that truly make more.
#[test]
fn one_mistake_makes_one_error() {
    let truly_several = [
        "name = \"ground\"",     // the joint and the cut miss the strut
        "name = \"boom\"",       // so do they here
        "name = \"turn-table\"", // `turn` is gone
        "centre = [0, 0, 1]",    // `top` is gone
        "child = \"claw\"",      // nobody carries the sphere
        "",                      // what was left out is missed
        "sin = \"hypot",
        "nxt = \"diving\"",
        "name = \"squee zing\"", // the law of `squeezing` has no phase
        "depth = \"-speed\"",
        "partition = { dependnt", // the right key is missed, too
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
fn laws_by_phase_need_phases() {
    let head = &BASE[..BASE.find("[[machine]]").expect("the machine")];
    for law in ["{}", "{ diving = 1 }"] {
        let machine = format!(
            "[[machine]]\nname = \"m\"\n[[machine.body]]\nname = \"b\"\nmass = 1\n[[machine.joint]]\nname = \"j\"\n\
             kind = \"revolute\"\nchild = \"b\"\naxis = [0, 0, 1]\n[[machine.actuator]]\nname = \"a\"\njoint = \"j\"\nlaw = {law}\n"
        );
        let errors = parse_case("x.toml", &format!("{head}{machine}"), &[]).expect_err(law);
        assert_eq!(errors.errors.len(), 1, "{errors}");
        assert!(
            errors
                .to_string()
                .contains("machine.m.actuator.a.law: found a table in a machine without phases"),
            "{errors}"
        );
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("breccia-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("parts")).expect("a folder");
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The base in two files: head with the simulation, and the rest.
fn halves() -> (String, String) {
    let at = BASE.find("[[table]]").expect("the table");
    (BASE[..at].to_string(), BASE[at..].to_string())
}

#[test]
fn an_included_file_counts_as_if_it_stood_in_the_case() {
    let folder = Folder::new("include");
    let (head, rest) = halves();
    folder.write("parts/robot.toml", &rest);
    let whole = parse_case("x.toml", BASE, &[]).expect("right");
    let case = folder.write("case.toml", &format!("include = \"parts/robot.toml\"\n{head}"));
    let case = read_case(&case).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((&case.machines, &case.shapes, &case.bodies), (&whole.machines, &whole.shapes, &whole.bodies));

    // Lists grow, parameters of the case win, and relative paths start at the file that names them.
    folder.write("parts/lift.csv", "0, 0\n1, 0.1\n2, 0.1\n");
    let rest = rest.replace("arguments = [0, 1, 2]\nvalues = [0, 0.1, 0.1]", "file = \"lift.csv\"");
    folder.write("parts/robot.toml", &format!("[parameters]\nK = 7\nD = \"2*K\"\n{rest}"));
    let text = format!(
        "include = [\"parts/robot.toml\"]\n{head}\n[[shape]]\nname = \"own\"\nkind = \"sphere\"\nradius = \"1\"\n"
    );
    let path = folder.write("case.toml", &text);
    let case = read_case(&path).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((case.scope.constants["K"], case.scope.constants["D"]), (100.0, 200.0));
    assert_eq!(case.shapes[0].name, "own");
    assert_eq!(case.scope.tables["lift"].evaluate(0.5)[0], 0.05);
}

#[test]
fn mistakes_in_an_included_file_name_it_and_its_line() {
    let folder = Folder::new("include-mistakes");
    let (head, rest) = halves();
    let case = folder.write("case.toml", &format!("include = \"parts/robot.toml\"\n{head}"));
    let told = |included: &str| {
        folder.write("parts/robot.toml", included);
        read_case(&case).expect_err("wrong")
    };
    let errors = told(&rest.replacen("kind = \"revolute\"", "kind = \"hinge\"", 1));
    let line = 1 + rest[..rest.find("kind = \"revolute\"").expect("there")].matches('\n').count();
    let [error] = &errors.errors[..] else { panic!("{errors}") };
    assert!(error.file.ends_with("parts/robot.toml"), "{error}");
    assert_eq!((error.line, error.key.as_str()), (Some(line), "machine.robot.joint.turn.kind"));
    for (included, message) in [
        (
            format!("[simulation]\ntime_step = 1\n{rest}"),
            "robot.toml:1: simulation: found a key that an included file cannot hold",
        ),
        (
            format!("include = \"other.toml\"\n{rest}"),
            "robot.toml:1: include: found a key that an included file cannot hold",
        ),
        (format!("{rest}\nbroken = = 1\n"), "not TOML"),
        (
            format!("parameters = 3\n{rest}"),
            "robot.toml:1: parameters: found \"parameters\" of another kind here",
        ),
        (rest.replacen("density = 7800", "density = -1", 1), "material.steel.density: found -1"),
    ] {
        let errors = told(&included).to_string();
        assert!(errors.contains(message) && errors.contains("robot.toml:"), "{message}: {errors}");
    }
    let twice = folder
        .write("twice.toml", &format!("include = [\"parts/robot.toml\", \"parts/robot.toml\"]\n{head}"));
    folder.write("parts/robot.toml", &rest);
    let errors = read_case(&twice).expect_err("wrong").to_string();
    assert!(errors.contains("once more, expected each file once"), "{errors}");
    // A file that is not there is one mistake, whatever the case misses of it.
    let text = format!("include = \"nowhere.toml\"\n{head}\n[[machine]]\nname = \"a\"\n");
    let errors = read_case(&folder.write("missing.toml", &text)).expect_err("wrong");
    assert_eq!(errors.errors.len(), 1, "{errors}");
    let elsewhere = [("include".to_string(), "parts/robot.toml".to_string())];
    let text = text.replace("[[machine]]\nname = \"a\"\n", "");
    let path = folder.write("missing.toml", &text).display().to_string();
    let case = parse_case(&path, &text, &elsewhere).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(case.included, [folder.0.join("parts/robot.toml")]);
}

#[test]
fn overrides_reach_into_machines() {
    let set = |path: &str, value: &str| parse_case("x.toml", BASE, &[(path.to_string(), value.to_string())]);
    let case = set("machine.robot.joint.turn.position", "0.7").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(case.machines[0].joints[1].position, [0.7]);
    let errors = set("machine.robot.joint.turn.kind", "hinge").expect_err("wrong").to_string();
    assert!(
        errors.starts_with(
            "override machine.robot.joint.turn.kind=hinge: machine.robot.joint.turn.kind: found"
        ),
        "{errors}"
    );
}

#[test]
fn settings_reach_into_included_files_and_mistakes_name_their_line() {
    let folder = Folder::new("settings");
    let (head, rest) = halves();
    folder.write("robot.toml", &rest);
    let read = |settings: &str| {
        let text = format!("include = \"robot.toml\"\n{head}\n[set]\n{settings}\n");
        read_case(&folder.write("case.toml", &text))
    };
    let case =
        read("\"machine.robot.joint.turn.position\" = 0.7").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(case.machines[0].joints[1].position, [0.7]);
    assert!(case.listing.contains_key("machine.robot.joint.turn.position"));
    for (settings, message) in [
        ("\"machine.robot.joint.turn.kind\" = \"hinge\"", ": machine.robot.joint.turn.kind: found"),
        ("\"machine.nobody.joint\" = 1", ": set.machine.nobody.joint: found `nobody`, expected a name"),
        ("\"title.more\" = 1", "expected a table there"),
        ("\"\" = 1", "expected one such as `simulation.time_step`"),
    ] {
        let errors = read(settings).expect_err("wrong").to_string();
        let line = format!("case.toml:{}:", 3 + head.matches('\n').count() + 1);
        assert!(errors.contains(message) && errors.contains(&line), "{message}, {line}: {errors}");
    }
    let errors = parse_case("x.toml", &format!("set = 3\n{BASE}"), &[]).expect_err("wrong").to_string();
    assert!(errors.starts_with("x.toml:1: set: found a number, expected a table of values"), "{errors}");
    // What the command line says comes last.
    let text =
        format!("include = \"robot.toml\"\n{head}\n[set]\n\"machine.robot.joint.turn.position\" = 0.7\n");
    let path = folder.write("case.toml", &text).display().to_string();
    let last = [("machine.robot.joint.turn.position".to_string(), "0.9".to_string())];
    let case = parse_case(&path, &text, &last).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(case.machines[0].joints[1].position, [0.9]);
}
