//! `breccia report`: whole, interrupted, poor and large runs; and the page in a real browser.

mod support;

use breccia::geometry::{Pose, Quat, Random, Shape, Vec3, convex_hull};
use breccia::output::{BodyFile, BodyOptions};
use breccia::scene::{Body, BodyId, Motion};
use decomposition::Solo;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Directory, project};

fn fallen(name: &str) -> (Directory, PathBuf) {
    let directory = Directory::new(name);
    let out = directory.file("run");
    let more = [
        "--steps",
        "100",
        "--set",
        "grains.ballast.count=40",
        "--set",
        "output.interval=0.01",
        "--set",
        "grains.ballast.region={ min = [-0.2, -0.2, 0.0], max = [0.2, 0.2, 0.3] }",
    ];
    support::run(&project("inputs/ballast-box.toml"), 1, &out, &more);
    (directory, out)
}

fn report(directory: &Path) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_breccia"))
        .arg("report")
        .arg(directory)
        .output()
        .expect("breccia starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout) + &text(&output.stderr))
}

fn page(directory: &Path) -> String {
    let (code, words) = report(directory);
    assert_eq!(code, 0, "{words}");
    let page = std::fs::read_to_string(directory.join("report.html")).expect("the page is there");
    assert!(page.len() < 15_000_000, "the page has {} bytes", page.len());
    page
}

/// Nothing is fetched from anywhere: every address is in the page itself, and `http` occurs only as the name
/// of SVG.
fn is_alone(page: &str) -> bool {
    let sources = page.match_indices(" src=\"").chain(page.match_indices(" href=\""));
    let inside = sources.into_iter().all(|(at, found)| page[at + found.len()..].starts_with("data:"));
    let addresses =
        page.match_indices("http").filter(|(at, _)| !page[*at..].starts_with("http://www.w3.org/2000/svg"));
    inside && addresses.count() == 0 && !page.contains("@import") && !page.contains("fetch(")
}

#[test]
fn a_whole_run_has_a_whole_page() {
    let (_kept, out) = fallen("report");
    let text = page(&out);
    assert!(is_alone(&text));
    for wanted in [
        "Ballast in a box",
        "Finished",
        "100 steps",
        "Energy balance",
        "Residual",
        "Deepest penetration",
        "Force on walls and tools",
        "Where the time went",
        "imbalance",
        "Grading of ballast",
        "tolerance 0.005",
        "id=\"view\"",
    ] {
        assert!(text.contains(wanted), "{wanted} is missing");
    }
    assert_eq!(text.matches("<img ").count(), text.matches("<img alt=\"").count(), "a picture has no words");
    for name in ["energy-balance.svg", "energy-balance.csv", "residual.svg", "scene.png", "scene-000000.png"]
    {
        assert!(out.join("report").join(name).exists(), "{name}");
    }
    let picture = std::fs::File::open(out.join("report/scene.png")).unwrap();
    let mut reader = png::Decoder::new(std::io::BufReader::new(picture)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let size = reader.next_frame(&mut pixels).unwrap();
    let covered = pixels.chunks_exact(4).filter(|pixel| pixel[3] > 0).count() as f64;
    let share = covered / f64::from(size.width * size.height);
    assert!(share > 0.3, "the picture shows something on {share} of its area");
    let shades: std::collections::BTreeSet<u8> =
        pixels.chunks_exact(4).filter(|p| p[3] == 255).map(|p| p[0]).collect();
    assert!(shades.len() > 60, "the picture is flat");
    // The numbers beside a plot are the run's.
    let table =
        breccia::commands::inspect::text_table::TextTable::read(&out.join("report/kinetic-energy.csv"))
            .unwrap();
    let series = breccia::commands::inspect::text_table::TextTable::read(&out.join("series.csv")).unwrap();
    assert_eq!(table.column("kinetic (J)"), series.column("kinetic_energy"));
}

#[test]
fn runs_that_were_killed_or_wrote_little_have_pages_too() {
    let (kept, out) = fallen("report-poor");
    let poor = |name: &str, files: &[&str]| {
        let directory = kept.file(name);
        std::fs::create_dir(&directory).unwrap();
        files.iter().for_each(|file| {
            std::fs::copy(out.join(file), directory.join(file)).unwrap();
        });
        directory
    };
    // Killed: a torn line, no final state, a summary that says `running`.
    let killed = poor("killed", &["bodies.vtkhdf", "series.csv"]);
    let mut series = std::fs::read_to_string(killed.join("series.csv")).unwrap();
    series.truncate(series.len() - 20);
    std::fs::write(killed.join("series.csv"), series).unwrap();
    let identity = r#"{"status": "running", "version": "0.1.0", "case": "/gone.toml", "title": "A <b>bold</b> case", "ranks": 1, "threads": 1}"#;
    std::fs::write(killed.join("summary.json"), identity).unwrap();
    let text = page(&killed);
    assert!(
        text.contains("under way, or killed") && text.contains("torn line") && text.contains("id=\"view\"")
    );
    assert!(text.contains("A &lt;b&gt;bold") && !text.contains("<b>bold"), "titles are text, not markup");
    // No frames; only frames; machines beside.
    let numbers = poor("numbers", &["series.csv", "summary.json"]);
    let text = page(&numbers);
    assert!(!text.contains("id=\"view\"") && text.contains("Energy balance"));
    let again = page(&numbers);
    assert!(
        again.len() > 10_000 && again.contains("Energy balance"),
        "a report can be written again over an old one"
    );
    let machines =
        "step,time,arm/lift,arm/lift.velocity,arm/force.cylinder\n1,0.1,0.5,0.25,100\n2,0.2,0.6,0.25,120\n";
    std::fs::write(numbers.join("machines.csv"), machines).unwrap();
    let text = page(&numbers);
    for wanted in ["arm: coordinates", "arm: velocities", "arm: forces"] {
        assert!(text.contains(wanted), "{wanted}");
    }
    let frames = poor("frames", &["bodies.vtkhdf"]);
    let text = page(&frames);
    assert!(
        text.contains("no summary.json") && text.contains("id=\"view\"") && !text.contains("Energy balance")
    );
    // Frames that cannot be read, and a summary that is none, are said.
    let damaged = poor("damaged", &["series.csv"]);
    std::fs::write(damaged.join("bodies.vtkhdf"), "not HDF5").unwrap();
    std::fs::write(damaged.join("summary.json"), "{").unwrap();
    let text = page(&damaged);
    assert!(text.contains("frames cannot be read") && text.contains("summary.json cannot be read"));
    let header = "step,time,kinetic_energy\n";
    std::fs::write(damaged.join("series.csv"), header).unwrap();
    page(&damaged);
    // Nothing at all is an error that names the place.
    let empty = poor("empty", &[]);
    let (code, words) = report(&empty);
    assert!(code == 4 && words.contains("empty") && words.contains("no results"), "{words}");
    let (code, words) = report(&kept.file("absent"));
    assert!(code == 4 && words.contains("absent"), "{words}");
}

/// Stones of twenty random corners in a cube, some frames of them.
fn many(directory: &Path, count: u64, frames: usize) {
    std::fs::create_dir_all(directory).unwrap();
    let stone = |id: u64| {
        let mut random = Random::new(7, id);
        let corners: Vec<Vec3> = (0..20).map(|_| random.direction() * 0.02).collect();
        let mut number = || random.between(-1.0, 1.0);
        let place = Vec3::new(number(), number(), number());
        Body {
            id: BodyId(id),
            group: 0,
            material: 0,
            motion: Motion::Free,
            shape: Shape::polyhedron(convex_hull(&corners).unwrap()),
            mass: 1.0,
            inertia: Vec3::repeat(1.0),
            pose: Pose::new(Quat::from_euler_angles(number(), number(), number()), place),
            velocity: Vec3::zeros(),
            angular_velocity: Vec3::zeros(),
            angular_momentum: Vec3::zeros(),
            anchor: None,
            memory: Box::default(),
        }
    };
    let mut bodies: Vec<Body> = (0..count).map(stone).collect();
    let mut file = BodyFile::create(&directory.join("bodies.vtkhdf"), &Solo, BodyOptions::default()).unwrap();
    for frame in 0..frames {
        file.write(&Solo, frame as f64, &bodies).unwrap();
        for body in &mut bodies {
            body.pose.position.z -= 0.1;
            body.pose.rotation = Quat::from_euler_angles(0.1, 0.2, 0.3) * body.pose.rotation;
        }
    }
    file.close().unwrap();
}

/// `make soak` takes 10⁵ bodies.
#[test]
fn many_bodies_keep_the_page_small() {
    let soak = std::env::var_os("BRECCIA_SOAK").is_some();
    let directory = Directory::new("report-many");
    many(&directory.0, if soak { 100_000 } else { 12_500 }, if soak { 12 } else { 2 });
    let text = page(&directory.0);
    assert!(
        text.contains("256 sample shapes"),
        "shapes of so many bodies must be thinned, and that must be said"
    );
    if soak {
        assert!(text.contains("7 of 12 frames"), "frames must be left out, and that must be said");
    }
}

/// What the page has become after its scripts have run, and what the browser complained about.
fn in_browser(page: &Path, profile: &Path, more: &[&str]) -> Option<(String, String)> {
    let name = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    })?;
    let output = Command::new("timeout")
        .args([
            "120",
            name,
            "--headless=new",
            "--no-sandbox",
            "--use-angle=swiftshader",
            "--enable-unsafe-swiftshader",
        ])
        .args([
            "--window-size=1400,1000",
            "--virtual-time-budget=10000",
            "--enable-logging=stderr",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("timeout starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let complaints =
        text(&output.stderr).lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    Some((text(&output.stdout), complaints))
}

fn attribute(dom: &str, name: &str) -> Option<String> {
    let start = dom.find(&format!("{name}=\""))? + name.len() + 2;
    Some(dom[start..].split('"').next()?.to_string())
}

#[test]
fn the_page_works_in_a_real_browser() {
    let (kept, out) = fallen("report-browser");
    page(&out);
    let html = out.join("report.html");
    let Some((dom, complaints)) = in_browser(&html, &kept.file("profile"), &[]) else {
        return support::skip::test("no chromium (make setup-browser installs it)");
    };
    assert_eq!(complaints, "", "the browser complains");
    // Plots were drawn by breccia and given their cursors by the script.
    assert!(dom.matches("<path class=\"line").count() >= 8);
    assert!(dom.matches("class=\"cursor\"").count() >= 7, "the script of the plots did not run");
    assert_eq!(attribute(&dom, "data-state").as_deref(), Some("ready"), "the view did not come up");
    assert_eq!(attribute(&dom, "data-error").as_deref(), Some("0"), "WebGL has an error");
    let coverage: f64 = attribute(&dom, "data-coverage").unwrap().parse().unwrap();
    assert!((0.03..0.97).contains(&coverage), "the view covers {coverage} of its canvas");
    // Without WebGL the page says so and goes on.
    let without = ["--disable-3d-apis"];
    let (dom, complaints) = in_browser(&html, &kept.file("profile2"), &without).unwrap();
    assert_eq!(complaints, "");
    assert_eq!(attribute(&dom, "data-state").as_deref(), Some("fallback"));
    assert!(dom.matches("class=\"cursor\"").count() >= 7);
}
