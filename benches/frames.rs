//! Write throughput of frames against plain MPI-IO of as many bytes: `jobs/write-study.sh`, or under mpirun
//! `frames DIRECTORY [SPHERES]`.
//!
//! Every round adds a step to a frame file and writes the same number of bytes with `MPI_File_write_at_all`
//! into another file beside it, each rank one contiguous block; both end with the bytes handed over alike:
//! with several ranks HDF5 flushes with `MPI_File_sync`, so the plain file is synchronised, too; with one
//! rank neither is.

use breccia::geometry::{Pose, Quat, Shape, Vec3};
use breccia::output::{BodyField, BodyFile, BodyOptions, Precision, Spheres};
use breccia::scene::{Body, BodyId, Motion};
use decomposition::{Comm, World};
use mpi::ffi;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROUNDS: usize = 9;

fn main() {
    // `cargo bench` hands over `--bench`: without a directory there is nothing to do.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let Some(directory) = words.first().map(PathBuf::from) else {
        println!("frames: use jobs/write-study.sh");
        return;
    };
    let spheres: u64 = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(1_000_000);
    let Some(world) = World::initialize() else {
        eprintln!("MPI cannot be started");
        return;
    };
    if world.rank() == 0 {
        println!(
            "{:>6} {:>10} {:>12} {:>14} {:>14} {:>14} {:>8}",
            "ranks", "spheres", "compression", "MB a frame", "frame MB/s", "MPI-IO MB/s", "share"
        );
    }
    for compression in [0, 1] {
        study(&directory, spheres, compression, &world);
    }
}

fn study(directory: &Path, spheres: u64, compression: u8, world: &World) {
    let (rank, size) = (world.rank() as u64, world.size() as u64);
    let mut bodies: Vec<Body> = (spheres * rank / size..spheres * (rank + 1) / size).map(ball).collect();
    let options = BodyOptions {
        spheres: Spheres::Points,
        refinement: 0,
        fields: vec![BodyField::Id, BodyField::Group, BodyField::Velocity, BodyField::AngularVelocity],
        precision: Precision::Single,
        compression,
        domain: None,
    };
    let path = directory.join("frames.vtkhdf");
    let mut frames = BodyFile::create(&path, world, options).expect("a frame file");
    let mut plain = Plain::create(&directory.join("plain.bin"), world);
    // Every step writes positions and two velocities; ids, groups, radii and topology stand in the first step
    // only.
    let own = bodies.len() as u64 * 9 * 4;
    let block = vec![1u8; own as usize];
    let first = spheres * rank / size * 36;
    let (mut frame_seconds, mut plain_seconds) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for body in &mut bodies {
            body.pose.position.z -= 1e-3 * (1.0 + (body.id.0 % 7) as f64);
            body.velocity.z -= 1e-2 * (1.0 + (body.id.0 % 5) as f64);
            body.angular_velocity.x += 1e-2 * (1.0 + (body.id.0 % 3) as f64);
        }
        let (written, seconds) = timed(world, || frames.write(world, round as f64, &bodies));
        written.expect("a frame");
        let ((), plain_time) =
            timed(world, || plain.write(round as u64 * spheres * 36 + first, &block, size > 1));
        // The first step has more in it.
        if round > 0 {
            frame_seconds.push(seconds);
            plain_seconds.push(plain_time);
        }
    }
    assert!(frames.was_collective(), "HDF5 did not write collectively");
    frames.close().expect("a frame file");
    plain.close();
    if rank == 0 {
        let megabytes = spheres as f64 * 36.0 / 1e6;
        let (frame, plain) = (median(frame_seconds), median(plain_seconds));
        println!(
            "{size:>6} {spheres:>10} {compression:>12} {megabytes:>14.1} {:>14.0} {:>14.0} {:>6.0} %",
            megabytes / frame,
            megabytes / plain,
            100.0 * plain / frame
        );
        let _ = std::fs::remove_file(path);
        let _ = std::fs::remove_file(directory.join("plain.bin"));
    }
    world.barrier();
}

/// Seconds of the slowest rank.
fn timed<R>(world: &World, work: impl FnOnce() -> R) -> (R, f64) {
    world.barrier();
    let begun = Instant::now();
    let result = work();
    let mut seconds = [begun.elapsed().as_secs_f64()];
    world.max_f64(&mut seconds);
    (result, seconds[0])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Numbers as a simulation has them: all bits of an f32 are used.
fn ball(id: u64) -> Body {
    let at = |k: u64| ((id * 3 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
    Body {
        id: BodyId(id),
        group: 0,
        material: 0,
        motion: Motion::Free,
        shape: Shape::sphere(0.01),
        mass: 1.0,
        inertia: Vec3::repeat(1.0),
        pose: Pose::new(Quat::identity(), Vec3::new(at(0), at(1), at(2))),
        velocity: Vec3::new(at(1), at(2), at(0)),
        angular_velocity: Vec3::new(at(2), at(0), at(1)),
        angular_momentum: Vec3::zeros(),
        anchor: None,
        memory: Box::default(),
    }
}

/// A file of bytes through MPI-IO.
struct Plain(ffi::MPI_File);

impl Plain {
    fn create(path: &Path, world: &World) -> Self {
        let name = CString::new(path.display().to_string()).expect("a path without zero bytes");
        let mut file = std::ptr::null_mut();
        let mode = (ffi::MPI_MODE_CREATE | ffi::MPI_MODE_WRONLY) as i32;
        let comm = world.raw().expect("an MPI communicator");
        // SAFETY: a live communicator, a text that ends with 0, no hints, and a place for the answer.
        let code = unsafe { ffi::MPI_File_open(comm, name.as_ptr(), mode, ffi::RSMPI_INFO_NULL, &mut file) };
        assert_eq!(code, 0, "MPI_File_open");
        Self(file)
    }

    fn write(&mut self, at: u64, bytes: &[u8], sync: bool) {
        let mut status = std::mem::MaybeUninit::uninit();
        // SAFETY: an open file, a buffer of as many bytes as are written, and a place for the status.
        let code = unsafe {
            ffi::MPI_File_write_at_all(
                self.0,
                at as i64,
                bytes.as_ptr().cast(),
                bytes.len() as i32,
                ffi::RSMPI_UINT8_T,
                status.as_mut_ptr(),
            )
        };
        assert_eq!(code, 0, "MPI_File_write_at_all");
        if sync {
            // SAFETY: an open file.
            assert_eq!(unsafe { ffi::MPI_File_sync(self.0) }, 0, "MPI_File_sync");
        }
    }

    fn close(mut self) {
        // SAFETY: an open file, closed once.
        unsafe { ffi::MPI_File_close(&mut self.0) };
    }
}
