//! Which case a checkpoint may be continued with, and what is kept safe from whom.

use super::runs::Out;

#[test]
fn another_physics_is_refused_unless_asked_for() {
    let out = Out::new("physics");
    out.finish(1, 30, &[]);
    let friction = ["--set", "contact.2.friction=0.25"];
    let refused = |more: &[&str]| {
        let (code, words) = out.run(1, 40, &[&["--restart", "latest"], more].concat());
        assert_eq!(code, 1, "{words}");
        words
    };
    let words = refused(&friction);
    assert!(words.contains("contact.2.friction: 0.5 -> 0.25") && words.contains("--changed-case"), "{words}");
    let words = refused(&["--changed-case", "--set", "simulation.time_step=4e-4"]);
    assert!(words.contains("simulation.time_step: 0.0005 -> 0.0004") && words.contains("[start]"), "{words}");
    let words = refused(&["--changed-case", "--set", "body.front.name=door"]);
    assert!(words.contains("other bodies"), "{words}");
    // Nothing was touched by all this.
    let free =
        ["output.interval=0.02", "simulation.duration=9", "decomposition.cell_size=0.05", "title=Drum"];
    let free = free.map(|set| ["--set", set]).concat();
    let words = out.finish(1, 40, &[&["--restart", "latest"], &free[..]].concat());
    assert!(!words.contains("changed"), "{words}");
    let words = out.finish(1, 50, &[&["--restart", "latest", "--changed-case"], &friction[..]].concat());
    assert!(words.contains("the case has changed") && words.contains("0.5 -> 0.25"), "{words}");
    // From now on this is the case.
    let words = refused(&[]);
    assert!(words.contains("0.25 -> 0.5"), "{words}");
}

#[test]
fn a_run_that_could_go_on_is_not_replaced_by_mistake() {
    let out = Out::new("unfinished");
    let (code, words) = out.run(1, 40, &["--restart", "latest"]);
    assert!(code == 1 && words.contains("has no checkpoint"), "{code}: {words}");
    out.finish(1, 40, &["--restart", "auto"]);
    // As a kill would leave it.
    let summary = out.path.join("summary.json");
    let text = std::fs::read_to_string(&summary).expect("a summary");
    std::fs::write(&summary, text.replace("finished", "running")).expect("a summary");
    let (code, words) = out.run(1, 40, &[]);
    assert!(code == 1 && words.contains("--restart latest") && words.contains("step 40"), "{code}: {words}");
    out.finish(1, 40, &["--overwrite"]);
    // A finished one is replaced, as before there were checkpoints.
    out.finish(1, 20, &[]);
    assert_eq!(out.checkpoints().len(), 1);
}

/// From an older checkpoint: what came later gives way, and the files are cut there.
#[test]
fn any_checkpoint_will_do_here_or_elsewhere() {
    let out = Out::new("older");
    out.finish(1, 60, &["--set", "checkpoint.keep=9"]);
    let (expected, all) = (out.results(), out.checkpoints());
    assert_eq!(all.len(), 3, "{all:?}");
    let older = all[0].display().to_string();
    // In another directory it begins files of its own.
    let elsewhere = Out::new("elsewhere");
    elsewhere.finish(2, 60, &["--restart", &older]);
    assert_eq!(elsewhere.results().digest, expected.digest);
    let words = out.finish(2, 60, &["--restart", &older, "--set", "checkpoint.keep=1"]);
    assert!(words.contains("out of use"), "{words}");
    expected.assert_same(&out.results(), "from an older checkpoint");
    assert_eq!(out.checkpoints().len(), 1);
    // Files that are gone or of another layout are begun anew, the old ones are kept.
    let final_state = out.path.join("final.h5").display().to_string();
    std::fs::remove_file(out.path.join("contacts.vtkhdf")).expect("it is there");
    let words = out.finish(1, 90, &["--restart", &final_state, "--set", "output.fields=[\"id\"]"]);
    assert!(words.contains("bodies-before-step-60.vtkhdf") && words.contains("contacts.vtkhdf"), "{words}");
    assert_eq!(super::runs::pictures(&out.path.join("bodies-before-step-60.vtkhdf")).len(), 4);
    assert!(out.path.join("contacts.vtkhdf").exists());
}
