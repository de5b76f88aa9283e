//! A disk that is full, a directory that nobody may write to, and one that is taken away.

use super::runs::{CASE, Out, SETTINGS};
use crate::support::{project, skip};
use std::process::{Command, Stdio};

/// Runs a script in a name space of its own, where `$DISK` is an empty place for a disk, `$BRECCIA` starts a
/// run of the case in `$OUT` (on that disk) and `$BIN` is the program. None where the system does not allow
/// it.
fn with_disk(name: &str, script: &str) -> Option<(bool, String)> {
    let out = Out::new(name);
    let disk = out.beside("disk");
    std::fs::create_dir_all(&disk).expect("a place for the disk");
    let run = format!(
        "{} run {} --out {}/out --threads 1 {}",
        env!("CARGO_BIN_EXE_breccia"),
        project(CASE).display(),
        disk.display(),
        SETTINGS.join(" ")
    );
    let allowed = Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs"]).arg(&disk).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        skip::test("no small disk can be mounted");
        return None;
    }
    let output = Command::new("unshare")
        .args(["-rm", "bash", "-c", script])
        .env("DISK", &disk)
        .env("OUT", disk.join("out"))
        .env("BRECCIA", run)
        .env("BIN", env!("CARGO_BIN_EXE_breccia"))
        .stdin(Stdio::null())
        .output()
        .expect("unshare starts");
    let words =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), words))
}

/// The digest of 200 steps that nobody disturbed.
fn undisturbed() -> String {
    let out = Out::new("roomy");
    out.finish(1, 200, &[]);
    out.results().digest
}

#[test]
fn a_full_disk_ends_a_run_that_can_go_on_later() {
    let script = r#"
        mount -t tmpfs -o size=80m tmpfs "$DISK" || exit 9
        large="--set output.sphere_refinement=3 --set output.precision=f64 --set output.compression=0"
        $BRECCIA --steps 200 $large > "$DISK.log" 2>&1; code=$?
        tail -5 "$DISK.log"; [ $code = 4 ] || { echo "code $code"; exit 1; }
        grep -q "not written" "$DISK.log" && grep -q "out/" "$DISK.log" || exit 2
        for f in "$OUT"/checkpoints/*.h5; do $BIN digest "$f" || exit 3; done
        mount -o remount,size=500m "$DISK" || exit 9
        $BRECCIA --steps 200 $large --restart latest > "$DISK.log" 2>&1 || { cat "$DISK.log"; exit 4; }
        echo "digest $($BIN digest "$OUT")"
    "#;
    let Some((good, words)) = with_disk("full", script) else { return };
    assert!(good, "{words}");
    assert!(words.contains(&undisturbed()), "{words}");
}

/// A file that the system does not allow to grow ends the run like a full disk does, on one rank and on two,
/// and is no reason for the system to kill it.
#[test]
fn a_file_beyond_its_limit_ends_a_run_that_can_go_on_later() {
    let large = ["output.sphere_refinement=3", "output.precision=f64", "output.compression=0"];
    let large: Vec<&str> = large.iter().flat_map(|setting| ["--set", setting]).collect();
    let expected = undisturbed();
    for ranks in [1, 2] {
        let out = Out::new(&format!("limited-{ranks}"));
        let run = out.command(ranks, 200, &large);
        // In units of 1024 bytes.
        let mut limited = Command::new("bash");
        limited
            .args(["-c", "ulimit -f 80000; exec \"$@\"", "limited"])
            .arg(run.get_program())
            .args(run.get_args());
        for (name, value) in run.get_envs() {
            limited.env(name, value.unwrap_or_default());
        }
        let output = limited.stdin(Stdio::null()).output().expect("bash starts");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{words}");
        assert!(words.contains("bodies.vtkhdf: not written") && words.contains("ulimit -f"), "{words}");
        assert!(!out.checkpoints().is_empty(), "there is a checkpoint from before");
        out.finish(ranks, 200, &[&large[..], &["--restart", "latest"]].concat());
        assert_eq!(out.results().digest, expected, "{ranks} ranks");
    }
}

#[test]
fn a_run_may_go_on_without_pictures() {
    let script = r#"
        mount -t tmpfs -o size=60m tmpfs "$DISK" || exit 9
        $BRECCIA --steps 200 --set output.sphere_refinement=4 --set output.on_write_error=continue > "$DISK.log" 2>&1; code=$?
        tail -5 "$DISK.log"; [ $code = 0 ] || { echo "code $code"; exit 1; }
        grep -q "the run goes on" "$DISK.log" || exit 2
        echo "digest $($BIN digest "$OUT")"
    "#;
    let Some((good, words)) = with_disk("continue", script) else { return };
    assert!(good, "{words}");
    assert!(words.contains(&undisturbed()), "{words}");
}

#[test]
fn a_read_only_directory_and_one_that_is_taken_away() {
    let script = r#"
        mount -t tmpfs -o size=200m tmpfs "$DISK" && mkdir "$OUT" && mount -o remount,ro "$DISK" || exit 9
        $BRECCIA --steps 30 > "$DISK.log" 2>&1; code=$?
        cat "$DISK.log"; [ $code = 4 ] && grep -q "$OUT" "$DISK.log" || { echo "read-only: code $code"; exit 1; }
        mount -o remount,rw "$DISK" && $BRECCIA --steps 30 > /dev/null 2>&1 && mount -o remount,ro "$DISK" || exit 9
        $BRECCIA --steps 60 --restart latest > "$DISK.log" 2>&1; code=$?
        cat "$DISK.log"; [ $code = 4 ] && grep -q "$OUT" "$DISK.log" || { echo "read-only restart: code $code"; exit 2; }
        mount -o remount,rw "$DISK" && $BRECCIA --steps 60 --restart latest > /dev/null 2>&1 || exit 3
        rm -rf "$OUT"
        $BRECCIA --steps 1000000 > "$DISK.log" 2>&1 & run=$!
        for k in $(seq 600); do [ $(ls "$OUT/checkpoints" 2> /dev/null | grep -c 'h5$') -ge 2 ] && break; sleep 0.1; done
        mv "$OUT" "$OUT-gone"
        wait $run; code=$?
        cat "$DISK.log"; [ $code = 4 ] && grep -q "$OUT" "$DISK.log" || { echo "taken away: code $code"; exit 4; }
        for f in "$OUT-gone"/checkpoints/*.h5; do $BIN digest "$f" || exit 5; done
    "#;
    let Some((good, words)) = with_disk("read-only", script) else { return };
    assert!(good, "{words}");
}
