//! Random damage to the shipped cases: an error or a case, never a panic, never a hang.
//!
//! `BRECCIA_FUZZ` sets the number of damaged texts (default 3000).

use super::machines;
use super::mistakes::BASE;
use super::shipped::shipped;
use super::values::processor_time;
use breccia::input::{BodyMotion, Case, CaseErrors, ErrorKind, Generator, parse_case};
use breccia::step::Stepper;
use decomposition::Solo;
use std::time::{Duration, Instant};

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const NUMBERS: &[&str] = &[
    "0",
    "-0.0",
    "-1",
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "9223372036854775807",
    "99999999999999999999",
    "1099511627776",
    "0x7fffffffffffffff",
    "\"1/0\"",
    "\"0/0\"",
    "\"sqrt(-1)\"",
    "\"1e308*10\"",
    "\"2^2^2^2^2^2\"",
    "\"mod(1, 0)\"",
    "true",
    "[]",
    "[[[[]]]]",
    "{}",
    "\"\"",
    "1979-05-27",
    "[0, 0, 0]",
    "[1e200, 1e200, 1e200]",
];

const INSERTS: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\r\n",
    "\\",
    "\0",
    "\u{feff}",
    "é",
    "\t",
    "[body]",
    "[[body]]\n",
    "[start]\n",
    "a.b.c.d.e = 1\n",
    "name = \"stone\"\n",
    "\"t\"",
    "nan",
    "kind = \"cluster\"\n",
    "[[machine]]\n",
    "[[machine.joint]]\n",
    "[[machine.phase]]\nname = \"p\"\n",
    "include = \"machine.toml\"\n",
];

/// Number literals outside names, as byte ranges.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let part = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || b".-+e_".contains(byte));
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let fresh = at == 0 || !bytes[at - 1].is_ascii_alphanumeric() && bytes[at - 1] != b'_';
        if bytes[at].is_ascii_digit() && fresh {
            let start = at;
            while part(at) {
                at += 1;
            }
            found.push((start, at));
        } else {
            at += 1;
        }
    }
    found
}

/// A place between two characters.
fn boundary(random: &mut Random, text: &str) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn damage(random: &mut Random, text: &mut String) {
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    let line = random.below(lines.len());
    let joined = |lines: Vec<String>| lines.join("\n") + "\n";
    match random.below(12) {
        0 => {
            let mut bytes = std::mem::take(text).into_bytes();
            if !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        1 => {
            let (a, b) = (boundary(random, text), boundary(random, text));
            let end = b.max(a).min(a.min(b) + 40);
            if text.is_char_boundary(end) {
                text.replace_range(a.min(b)..end, "");
            }
        }
        2 => *text = joined([&lines[..line], &lines[(line + 1).min(lines.len())..]].concat()),
        3 if !lines.is_empty() => {
            *text = joined([&lines[..line], &lines[line..=line], &lines[line..]].concat())
        }
        4 if !lines.is_empty() => {
            let mut lines = lines;
            let other = random.below(lines.len());
            lines.swap(line, other);
            *text = joined(lines);
        }
        5..=7 => {
            let found = numbers(text);
            if !found.is_empty() {
                let (start, end) = found[random.below(found.len())];
                text.replace_range(start..end, random.pick(NUMBERS));
            }
        }
        8 => {
            let at = boundary(random, text);
            text.insert_str(at, random.pick(INSERTS));
        }
        9 => {
            let (at, bracket) = (boundary(random, text), random.pick(&["[", "{a=", "(", "a.", "-", "[["]));
            let deep = bracket.repeat(1 + random.below(2000));
            text.insert_str(at, &deep);
        }
        10 => {
            // A formula where a value stood.
            let deep =
                random.pick(&["(", "-", "sin(", "2^", "if(1,2,", "not "]).repeat(1 + random.below(300));
            if let Some(at) = text.find(" = ") {
                let start = text[at..].find('\n').map_or(text.len(), |end| at + end);
                text.replace_range(at..start, &format!(" = \"{deep}1\""));
            }
        }
        _ => {
            // Words of the file change places.
            let words: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
            if words.len() > 1 {
                let (old, new) = (
                    words[random.below(words.len())].to_string(),
                    words[random.below(words.len())].to_string(),
                );
                *text = text.replacen(&format!("\"{old}\""), &format!("\"{new}\""), 1 + random.below(3));
            }
        }
    }
}

/// One time in four a value is replaced as from the command line: an existing key or a made-up one.
fn random_override(random: &mut Random, text: &str) -> Vec<(String, String)> {
    if random.below(4) > 0 {
        return Vec::new();
    }
    let tops = [
        "simulation",
        "solver",
        "body",
        "contact",
        "grains",
        "shape",
        "parameters",
        "output",
        "machine.robot",
        "include",
        "nonsense",
        "",
    ];
    let keys: Vec<&str> =
        text.lines().filter_map(|line| line.split_once(" = ").map(|(key, _)| key.trim())).collect();
    let key = if keys.is_empty() { "x" } else { keys[random.below(keys.len())] };
    let place = random.pick(&["", ".1", ".ball", ".floor", ".99", ".-1", ".18446744073709551616"]);
    vec![(format!("{}{place}.{key}", random.pick(&tops)), random.pick(NUMBERS).to_string())]
}

/// What whoever takes a case may rely on.
fn check_case(case: &Case) {
    assert!(case.simulation.time_step > 0.0 && case.simulation.duration.is_finite());
    assert!(case.step_count() >= 1 && case.step_count() <= 1 << 50);
    for body in &case.bodies {
        assert!(body.shape < case.shapes.len() && body.material < case.materials.len());
        assert!(body.pose.position.iter().all(|part| part.is_finite()));
        assert!((body.pose.rotation.norm() - 1.0).abs() < 1e-9, "{:?}", body.pose);
        match &body.motion {
            BodyMotion::Fixed => {}
            BodyMotion::Kinematic(motion) => {
                let state = motion.at(case.simulation.start_time, &body.pose);
                assert!(state.velocity.iter().all(|part| part.is_finite()));
            }
            BodyMotion::Free { mass, .. } => {
                assert!(mass.is_none_or(|mass| mass > 0.0) && !case.is_unbounded(body.shape));
            }
        }
    }
    for machine in &case.machines {
        assert!(machine.bodies.len() == machine.joints.len());
        for body in &machine.bodies {
            assert!(body.mass.is_some() || !body.parts.is_empty());
            assert!(body.parts.is_empty() == body.material.is_none());
            assert!(body.parts.iter().all(|part| !case.is_unbounded(part.shape)));
        }
    }
    // A mechanism may be impossible; that is an error, never a panic. A hang would be noticed by the clock.
    let _ = breccia::setup::machine::build(case);
}

/// Builds a small case and takes two steps: an error or a run. True if it ran.
fn try_to_run(case: &Case) -> bool {
    let small = |generator: &Generator| generator.placing().is_some_and(|placing| placing.count <= 400);
    if !case.grains.iter().all(|grains| small(&grains.generator)) {
        return false;
    }
    let Ok(mut setup) = breccia::setup::build(case, &Solo) else { return false };
    setup.solver.maximum_sweeps = setup.solver.maximum_sweeps.min(20);
    let mut stepper = Stepper::with_machines(
        setup.scene,
        setup.machines,
        setup.physics,
        setup.solver,
        setup.decomposition,
        &Solo,
    );
    for _ in 0..2 {
        // A machine may tear at a singularity: the run ends with a message. It also ends where numbers do.
        if stepper.step().is_err() || !stepper.observe().kinetic_energy.is_finite() {
            break;
        }
    }
    true
}

fn check_errors(errors: &CaseErrors) {
    assert!(!errors.errors.is_empty(), "refused without a reason");
    let shown = errors.to_string();
    assert!(shown.ends_with("error") || shown.contains(" errors"));
    for error in &errors.errors {
        let told = error.message.contains("found") && error.message.contains("expected");
        assert!(told || error.kind == ErrorKind::Syntax, "{error}");
    }
}

#[test]
fn damaged_cases_never_panic_nor_hang() {
    let count: usize = std::env::var("BRECCIA_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    let mut originals: Vec<(String, String)> = shipped()
        .iter()
        .map(|path| (path.display().to_string(), std::fs::read_to_string(path).expect("a text")))
        .collect();
    originals.push(("inputs/base.toml".to_string(), BASE.to_string()));
    // More than once: it is one of many and has most to break.
    for _ in 0..4 {
        originals.push(("inputs/machine.toml".to_string(), machines::BASE.to_string()));
    }
    let (mut right, mut ran, mut longest) = (0, 0, Duration::ZERO);
    for seed in 0..count {
        let mut random = Random(seed as u64);
        let (name, text) = &originals[random.below(originals.len())];
        let mut text = text.clone();
        for _ in 0..1 + random.below(6) {
            damage(&mut random, &mut text);
        }
        let overrides = random_override(&mut random, &text);
        let begin = processor_time();
        let result = std::panic::catch_unwind(|| match parse_case(name, &text, &overrides) {
            Ok(case) => {
                check_case(&case);
                true
            }
            Err(errors) => {
                check_errors(&errors);
                false
            }
        });
        let taken = processor_time() - begin;
        longest = longest.max(taken);
        assert!(taken < Duration::from_secs(1), "seed {seed} took {taken:?}:\n{text}");
        match result {
            Ok(taken) => right += usize::from(taken),
            Err(_) => panic!("seed {seed}, {overrides:?}:\n{text}"),
        }
        // One in four of those that are right is run: building three hundred stones takes a while.
        if matches!(result, Ok(true)) && right % 4 == 0 {
            let case = parse_case(name, &text, &overrides).expect("it was right before");
            let begin = Instant::now();
            match std::panic::catch_unwind(|| try_to_run(&case)) {
                Ok(done) => ran += usize::from(done),
                Err(_) => panic!("running seed {seed}, {overrides:?}:\n{text}"),
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "running seed {seed} took {:?}:\n{text}",
                begin.elapsed()
            );
        }
    }
    println!("{ran} of them ran two steps");
    assert!(count < 1000 || ran > count / 1000, "{ran} of {count} ran");
    println!("{count} damaged cases, {right} of them still right, at most {longest:?}");
    // If nothing or everything were refused, the damage would not test the reader.
    assert!(count < 1000 || (right > count / 50 && right < count * 4 / 5), "{right} of {count} are right");
}
