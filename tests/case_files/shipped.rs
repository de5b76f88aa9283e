//! The shipped cases and the manual.

use breccia::geometry::Convex;
use breccia::geometry::{Grading, Overflow, SizeDistribution, StoneParameters};
use breccia::input::{BodyMotion, Generator, ShapeKind, manual_markdown, read_case, read_case_with};
use breccia::scene::Activation;
use std::path::{Path, PathBuf};

/// Every case in `inputs/` and the folders below, sorted by name; a file without a simulation is a part of
/// cases.
pub fn shipped() -> Vec<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![project.join("inputs")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the inputs") {
            let path = entry.expect("an entry").path();
            let name = path.display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".toml")
                && std::fs::read_to_string(&path).expect("a text").contains("[simulation]")
            {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
}

fn input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(name)
}

#[test]
fn every_shipped_case_is_right_and_without_warnings() {
    assert!(shipped().len() >= 17, "{:?}", shipped());
    for path in shipped() {
        match read_case(&path) {
            Ok(case) => assert_eq!(case.warnings, Vec::<String>::new(), "{}", path.display()),
            Err(errors) => panic!("{errors}"),
        }
    }
}

#[test]
fn ballast_box_says_what_it_says() {
    let case = read_case(&input("ballast-box.toml")).expect("right");
    assert_eq!(case.simulation.time_step, 5e-4);
    assert_eq!(case.step_count(), 3000);
    assert_eq!(case.simulation.gravity.evaluate(&[0.0]).as_slice(), [0.0, 0.0, -9.81]);
    let names: Vec<&str> = case.materials.iter().map(|material| material.name.as_str()).collect();
    assert_eq!(names, ["stone", "wall"]);
    let pair = case.contact(1, 0).expect("stone and wall");
    assert_eq!(
        (pair.law.friction, pair.law.restitution, pair.law.activation),
        (0.7, 0.0, Activation::Predictive)
    );
    assert!(case.contact(1, 1).is_none());
    assert_eq!(case.bodies.len(), 5);
    for body in &case.bodies {
        assert_eq!(body.motion, BodyMotion::Fixed);
        assert!(case.is_unbounded(body.shape));
        // Every wall looks towards a point in the middle of the box.
        let inside = body.pose.inverse_point(&breccia::geometry::Vec3::new(0.0, 0.0, 0.1));
        assert!(inside.z > 0.05, "{}: {inside}", body.name);
    }
    let Generator::Stones { placing, sizes, stone } = &case.grains[0].generator else { panic!("stones") };
    assert_eq!((placing.count, placing.seed, placing.overflow), (300, 1, Overflow::GrowUp));
    assert_eq!(placing.region.min.as_slice(), [-0.2, -0.2, 0.02]);
    assert_eq!(*sizes, SizeDistribution::Grading(Grading::en_13450_a()));
    assert_eq!(*stone, StoneParameters::default());
}

#[test]
fn the_drum_is_a_ring_of_plates_that_starts_gently() {
    let case = read_case(&input("rotating-drum.toml")).expect("right");
    let drum = case.bodies.iter().find(|body| body.name == "drum").expect("the drum");
    let ShapeKind::Cluster { parts } = &case.shapes[drum.shape].kind else { panic!("a cluster") };
    assert_eq!(parts.len(), 24);
    for part in parts {
        assert!((part.pose.position.norm() - 0.155).abs() < 1e-12);
        // The thin side of each plate looks at the axis.
        let outward = part.pose.direction(&breccia::geometry::Vec3::z());
        assert!((outward - part.pose.position / 0.155).norm() < 1e-12);
    }
    let BodyMotion::Kinematic(motion) = &drum.motion else { panic!("kinematic") };
    let rate = std::f64::consts::TAU * 20.0 / 60.0;
    for (time, expected) in [(0.0, 0.0), (0.25, 0.5 * rate), (0.5, rate), (3.0, rate)] {
        let state = motion.at(time, &drum.pose);
        assert!((state.angular_velocity.y - expected).abs() < 1e-12, "{time}");
    }
}

#[test]
fn overrides_replace_single_values() {
    let set = |pairs: &[(&str, &str)]| {
        let overrides: Vec<_> =
            pairs.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
        read_case_with(&input("bouncing-ball.toml"), &overrides)
    };
    let case = set(&[
        ("simulation.time_step", "1e-3"),
        ("parameters.restitution", "0.5"),
        ("parameters.radius", "0.1 + 0.1"),
        ("body.ball.position", "[0, 0, 3]"),
        ("contact.1.friction", "2*restitution"),
        ("solver.warm_start", "false"),
        ("output.precision", "f64"),
        ("decomposition.cell_size", "0.5"),
    ])
    .expect("right");
    assert_eq!(case.simulation.time_step, 1e-3);
    assert_eq!(case.contacts[0].law.restitution, 0.5);
    assert_eq!(case.contacts[0].law.friction, 1.0);
    assert_eq!(case.shapes[0].kind, ShapeKind::Convex(Convex::Sphere { radius: 0.2 }));
    assert_eq!(case.bodies[1].pose.position.z, 3.0);
    assert!(!case.solver.warm_start);
    assert_eq!(case.output.precision.name(), "f64");
    assert_eq!(case.decomposition.cell_size, Some(0.5));
    for (path, value, message) in [
        (
            "simulation.time_step",
            "-1",
            "override simulation.time_step=-1: simulation.time_step: found -1, expected a number > 0",
        ),
        ("simulation.time_stp", "1", "did you mean \"time_step\"?"),
        ("body.bal.position", "[0, 0, 0]", "found `bal`, expected a name or a number from 1 to 2"),
        ("simulation.theta.x", "1", "simulation.theta: found "),
        ("simulation.time_step.x", "1", "found `x` below a plain value"),
        ("", "1", "found no key path"),
        (
            "parameters.restitution",
            "2",
            "contact.1.restitution: found \"restitution\" = 2, expected a number in [0, 1]",
        ),
    ] {
        let errors = set(&[(path, value)]).expect_err(path).to_string();
        assert!(errors.contains(message), "{path}={value}: {errors}");
    }
}

/// `docs/case-file.md` is made from the key lists; with BRECCIA_WRITE_MANUAL set it is written anew.
#[test]
fn manual_in_docs_is_the_one_of_the_key_lists() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/case-file.md");
    if std::env::var_os("BRECCIA_WRITE_MANUAL").is_some() {
        std::fs::write(&path, manual_markdown()).expect("a folder that can be written");
    }
    let text = std::fs::read_to_string(&path).expect("docs/case-file.md");
    assert!(text == manual_markdown(), "docs/case-file.md is out of date: run with BRECCIA_WRITE_MANUAL=1");
}
