//! Scenes of small cases, on one rank and on several.

use super::*;
use crate::input::parse_case;
use decomposition::{Solo, threads};

const COMMON: &str = r#"
title = "Test"
[simulation]
time_step = 1e-3
duration = 1.0
start_time = 2.0
gravity = ["t", 0, -9.81]
[[material]]
name = "stone"
density = 2000
[[contact]]
materials = ["stone", "stone"]
friction = 0.5
[[shape]]
name = "plane"
kind = "half-space"
[[shape]]
name = "brick"
kind = "box"
size = [0.2, 0.1, 0.1]
[[shape]]
name = "hammer"
kind = "cluster"
parts = [{ shape = "brick" }, { shape = "brick", position = [0, 0.1, 0] }]
"#;

fn case(text: &str) -> Case {
    parse_case("test.toml", &format!("{COMMON}{text}"), &[]).expect("a good case")
}

fn body(name: &str, shape: &str, more: &str) -> String {
    format!("[[body]]\nname = \"{name}\"\nshape = \"{shape}\"\nmaterial = \"stone\"\n{more}\n")
}

const SPHERES: &str = r#"
[[grains]]
name = "pebbles"
generator = "spheres"
material = "stone"
count = 37
seed = 5
radius = [0.01, 0.02]
region = { min = [0, 0, 0], max = [0.2, 0.2, 0.5] }
velocity = ["x", "-y", 0.5]
"#;

const STONES: &str = r#"
[[grains]]
name = "ballast"
generator = "stones"
material = "stone"
grading = "EN 13450 A 31.5/50"
count = 11
seed = 3
region = { min = [0, 0, 1], max = [0.3, 0.3, 2] }
"#;

const BRICKS: &str = r#"
[[grains]]
name = "hammers"
generator = "shape"
shape = "hammer"
material = "stone"
orientation = "aligned"
count = 5
seed = 3
region = { min = [0, 0, 3], max = [0.9, 0.9, 4] }
"#;

#[test]
fn ids_follow_the_order_of_motion_and_of_the_case() {
    let text = [
        body("free", "brick", "position = [0, 0, 5]"),
        body("floor", "plane", "motion = \"fixed\"\nposition = [0, 0, -1]"),
        body(
            "ram",
            "brick",
            "motion = \"kinematic\"\nposition = [9, 0, 0]\n[body.prescribed]\nposition = [\"t - 2\", 0, 0]",
        ),
        SPHERES.into(),
    ];
    let setup = build(&case(&text.concat()), &Solo).expect("a scene");
    let Setup { scene, physics, inventory, .. } = setup;
    let named = |body: &Body| (body.id.0, scene.model.groups[body.group as usize].clone());
    assert_eq!(
        scene.state.statics.iter().map(named).collect::<Vec<_>>(),
        [(0, "floor".into()), (1, "ram".into())]
    );
    assert_eq!(named(&scene.state.grains[0]), (2, "free".into()));
    let ids: Vec<u64> = scene.state.grains.iter().map(|body| body.id.0).collect();
    assert_eq!(ids, (2..40).collect::<Vec<_>>());
    assert_eq!(
        (scene.state.statics[1].motion, scene.state.statics[1].velocity),
        (Motion::Kinematic(0), Vec3::x())
    );
    assert_eq!((scene.model.motions[0])(3.0).position, Vec3::new(10.0, 0.0, 0.0));
    assert_eq!((physics.gravity)(4.0), Vec3::new(4.0, 0.0, -9.81));
    assert_eq!((inventory.bodies(), inventory.free_bodies()), (40, 38));
    assert_eq!(inventory.groups[3].first_id, 3);
    assert_eq!(inventory.describe(BodyId(10), 3), "\"pebbles\" number 7 (body 10)");
    let grain = &scene.state.grains[5];
    assert_eq!(grain.velocity, Vec3::new(grain.pose.position.x, -grain.pose.position.y, 0.5));
}

#[test]
fn a_free_body_stands_at_its_centre_of_mass() {
    let turned = "orientation = { axis = [0, 0, 1], degrees = 90 }\nposition = [1, 2, 3]\nangular_velocity = [1, 2, 4]\nmass = 7";
    let setup = build(&case(&body("tool", "hammer", turned)), &Solo).expect("a scene");
    let tool = &setup.scene.state.grains[0];
    // The centre is at (0, 0.05, 0) of the shape, which a quarter turn takes to (−0.05, 0, 0).
    assert!((tool.pose.position - Vec3::new(0.95, 2.0, 3.0)).norm() < 1e-12, "{}", tool.pose.position);
    assert_eq!(tool.mass, 7.0);
    // A block of 0.2 x 0.2 x 0.1: m (0.2² + 0.1²)/12 twice, m (0.2² + 0.2²)/12.
    let mut moments: Vec<f64> = tool.inertia.iter().copied().collect();
    moments.sort_by(f64::total_cmp);
    let expected = [7.0 * 0.05 / 12.0, 7.0 * 0.05 / 12.0, 7.0 * 0.08 / 12.0];
    assert!(
        moments.iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-12),
        "{moments:?}"
    );
    let momentum = Vec3::new(expected[0], 2.0 * expected[1], 4.0 * expected[2]);
    assert!((tool.angular_momentum - momentum).norm() < 1e-12, "{}", tool.angular_momentum);
    // The surface has not moved: the lower corner of the cluster's box in the world.
    let bounds = tool.shape.aabb(&tool.pose);
    assert!((bounds.min - Vec3::new(0.85, 1.9, 2.95)).norm() < 1e-12, "{}", bounds.min);
}

#[test]
fn any_number_of_ranks_builds_the_same_bodies() {
    let case = case(
        &[body("floor", "plane", "motion = \"fixed\""), SPHERES.into(), STONES.into(), BRICKS.into()]
            .concat(),
    );
    let alone = build(&case, &Solo).expect("a scene");
    assert_eq!(alone.scene.state.grains.len(), 37 + 11 + 5);
    let grading = &alone.inventory.gradings[0];
    assert_eq!(grading.passing.last().map(|point| point.percent), Some(100.0));
    for ranks in [2, 3] {
        let built = threads::run(ranks, |comm| {
            let setup = build(&case, comm).expect("a scene");
            (setup.scene.state.statics, setup.scene.state.grains, setup.inventory)
        });
        let mut grains = Vec::new();
        for (statics, own, inventory) in built {
            assert_eq!(statics, alone.scene.state.statics);
            assert_eq!(inventory, alone.inventory);
            grains.extend(own);
        }
        grains.sort_by_key(|body| body.id);
        assert_eq!(grains, alone.scene.state.grains);
    }
}

/// So many that they are placed in tiles: the same on any number of ranks, and `build` itself checks for overlaps across the tiles' sides.
#[test]
fn many_grains_are_placed_in_tiles() {
    let many = SPHERES
        .replace("count = 37", "count = 45000")
        .replace("max = [0.2, 0.2, 0.5]", "max = [3.0, 1.5, 100]");
    let case = case(&many);
    let alone = build(&case, &Solo).expect("a scene").scene.state.grains;
    assert_eq!(alone.len(), 45_000);
    let top = alone.iter().map(|body| body.pose.position.z).fold(0.0, f64::max);
    let volume: f64 = alone.iter().map(|body| 4.19 * body.shape.bounding_radius().powi(3)).sum();
    assert!(volume / (3.0 * 1.5 * top) > 0.25, "as dense as a placement as a whole: {top} m high");
    let mut together =
        threads::run(4, |comm| build(&case, comm).expect("a scene").scene.state.grains).concat();
    together.sort_by_key(|body| body.id);
    assert_eq!(together, alone);
    let low = many.replace("1.5, 100] }", "1.5, 0.1] }\ngrow = \"none\"");
    let message = build(&self::case(&low), &Solo).err().expect("too low").to_string();
    assert!(message.contains("of 45000 bodies fit"), "{message}");
}

#[test]
fn aligned_grains_keep_the_axes_of_their_shape() {
    let setup = build(&case(BRICKS), &Solo).expect("a scene");
    for body in &setup.scene.state.grains {
        let bounds = body.shape.aabb(&body.pose);
        assert!((bounds.max - bounds.min - Vec3::new(0.2, 0.2, 0.1)).norm() < 1e-12);
        let centre = (bounds.max + bounds.min) / 2.0;
        assert!((centre - body.pose.position).norm() < 1e-12);
    }
}

#[test]
fn overlap_is_found_across_ranks_and_small_overlap_is_let_pass() {
    let at = |x: f64| {
        let far = (0..4).map(|k| body(&format!("far-{k}"), "brick", &format!("position = [{k}, 5, 5]")));
        let near = [
            body("floor", "plane", "motion = \"fixed\"\nposition = [0, 0, -0.05]"),
            body("a", "brick", ""),
            body("b", "brick", &format!("position = [{x}, 0, 0]")),
        ];
        case(&near.into_iter().chain(far).collect::<String>())
    };
    // The tolerance is 1 % of half the diagonal, 0.1225 m.
    for ranks in [1, 3] {
        let found = threads::run(ranks, |comm| build(&at(0.15), comm).err().map(|error| error.to_string()));
        for message in found {
            let message = message.expect("an error on every rank");
            assert!(message.contains("\"a\" (body 1)") && message.contains("\"b\" (body 2)"), "{message}");
            assert!(message.contains("5.000e-2"), "{message}");
        }
        let fine = threads::run(ranks, |comm| build(&at(0.2 - 1.1e-3), comm).is_ok());
        assert!(fine.into_iter().all(|good| good));
    }
    let sunk = body("floor", "plane", "motion = \"fixed\"") + &body("a", "brick", "position = [0, 0, 0.04]");
    let message = build(&case(&sunk), &Solo).err().expect("inside the floor").to_string();
    assert!(message.contains("\"floor\"") && message.contains("\"a\""), "{message}");
}

#[test]
fn a_region_that_is_too_small_says_so() {
    let narrow = SPHERES.replace("max = [0.2, 0.2, 0.5]", "max = [0.03, 0.03, 0.5]");
    let message = build(&case(&narrow), &Solo).err().expect("too narrow").to_string();
    assert!(message.contains("\"pebbles\"") && message.contains("region"), "{message}");
}

#[test]
fn a_scene_file_is_read_whole() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/stones1000-settled.toml");
    let settled = crate::input::read_case(file.as_ref()).expect("a good case");
    let one = build(&settled, &Solo).expect("a scene");
    assert_eq!(one.scene.state.grains.len(), 1000);
    assert_eq!((one.scene.state.grains[0].id, one.scene.state.grains[999].id), (BodyId(5), BodyId(1004)));
    // Half-axes of 15 to 25 mm at 2700 kg/m³: 38 to 177 g less what twenty corners cut off.
    let mass = one.inventory.groups[5].mass.expect("free bodies");
    assert!((20.0..120.0).contains(&mass), "{mass}");
    let kinetic: f64 = one.scene.state.grains.iter().map(crate::step::observe::kinetic_energy).sum();
    assert!(kinetic < 1e-2, "{kinetic}");
    let mut two: Vec<Body> =
        threads::run(2, |comm| build(&settled, comm).expect("a scene").scene.state.grains).concat();
    two.sort_by_key(|body| body.id);
    assert_eq!(two, one.scene.state.grains);
}
