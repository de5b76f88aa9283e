//! Generated grains: what grain k looks like depends on the seed and k alone, where it lies on the sizes of all.
//!
//! Each rank makes the grains of its share of the indices. For the loose placement every rank learns the bounding radii of all
//! (8 bytes a grain) and computes all centres (24 bytes a grain) in the same way; nothing else of other ranks' grains is held.

use super::error::{SetupError, agree};
use super::inventory::AchievedGrading;
use super::solids::{self, Solid, set_velocity};
use crate::geometry::{
    Passing, Pose, Quat, Random, Shape, SizeDistribution, Vec3, convex_hull, place, stone,
};
use crate::input::{Case, FileState, Generator, GrainOrientation, Grains, Placing};
use crate::output::{SceneFile, SceneRow, share};
use crate::scene::{Body, BodyId};
use decomposition::{Comm, ExactSum};
use rayon::prelude::*;
use std::path::Path;

/// The random stream of the placement; grains use their own number as stream.
const PLACING_STREAM: u64 = u64::MAX - 1;

/// Most grains of one generator that is placed loosely: beyond, the radii alone would not fit one message.
const MOST_PLACED: u64 = 1 << 27;

/// Where the grains stand among all bodies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub group: u32,
    pub first_id: u64,
}

/// The grains of one `[[grains]]`.
pub(super) struct Made {
    /// On all ranks.
    pub count: u64,
    /// This rank's.
    pub bodies: Vec<Body>,
    pub grading: Option<AchievedGrading>,
}

/// Collective.
pub(super) fn generate(
    case: &Case,
    grains: &Grains,
    shapes: &[Shape],
    place: Place,
    comm: &dyn Comm,
) -> Result<Made, SetupError> {
    let builder = Builder { case, grains, place, comm };
    match &grains.generator {
        Generator::Stones { placing, sizes, stone: parameters } => {
            let mut made = builder.placed(placing, |index| {
                let mut random = Random::new(placing.seed, index);
                let turn = random.rotation();
                let size = sizes.size(placing.seed, index);
                let shape = Shape::Convex(solids::polyhedron(stone(parameters, size, &mut random)));
                Ok((builder.solid(&shape)?, turn))
            })?;
            made.grading = builder.achieved(sizes, placing, &made.bodies);
            Ok(made)
        }
        Generator::Spheres { placing, sizes } => builder.placed(placing, |index| {
            let shape = Shape::sphere(0.5 * sizes.size(placing.seed, index));
            Ok((builder.solid(&shape)?, Quat::identity()))
        }),
        Generator::Shape { placing, shape, orientation } => {
            let solid = agree(comm, builder.solid(&shapes[*shape]))?;
            builder.placed(placing, |index| {
                let turn = match orientation {
                    GrainOrientation::Random => Random::new(placing.seed, index).rotation(),
                    GrainOrientation::Aligned => Quat::identity(),
                };
                Ok((solid.clone(), turn))
            })
        }
        Generator::File { file, state, offset } => builder.read_file(file, *state, offset),
    }
}

struct Builder<'a> {
    case: &'a Case,
    grains: &'a Grains,
    place: Place,
    comm: &'a dyn Comm,
}

impl Builder<'_> {
    fn wrong(&self, problem: impl ToString) -> SetupError {
        SetupError::Generator { grains: self.grains.name.clone(), problem: problem.to_string() }
    }

    fn solid(&self, shape: &Shape) -> Result<Solid, SetupError> {
        let density = self.case.materials[self.grains.material].density;
        let problem = |problem| SetupError::Mass { name: self.grains.name.clone(), problem };
        Solid::new(shape, density, None).map_err(problem)
    }

    /// Collective: this rank's share of the grains, at their places. `make` gives a grain's solid and orientation.
    fn placed(
        &self,
        placing: &Placing,
        make: impl Fn(u64) -> Result<(Solid, Quat), SetupError> + Send + Sync,
    ) -> Result<Made, SetupError> {
        if placing.count > MOST_PLACED {
            let problem = format!("{} grains cannot be placed, at most {MOST_PLACED}", placing.count);
            return Err(self.wrong(problem));
        }
        let own = share(placing.count, self.comm.rank(), self.comm.size());
        let solids = own.clone().into_par_iter().map(make).collect::<Result<Vec<_>, _>>();
        let solids = agree(self.comm, solids)?;
        let radii: Vec<f64> = solids.iter().map(|(solid, _)| solid.shape.bounding_radius()).collect();
        let radii = self.all(&radii);
        let mut random = Random::new(placing.seed, PLACING_STREAM);
        let centres = place(&radii, &placing.region, placing.gap, placing.overflow, &mut random);
        // The same arguments on every rank: the same result, good or bad.
        let centres = centres.map_err(|error| self.wrong(error))?;
        let bodies = own.zip(&solids).map(|(index, (solid, turn))| {
            // The centre of mass stands where the placement wants it; the frame of the shape is turned, not the body's.
            let mut body = self.body(solid, index, &Pose::identity());
            body.pose = Pose::new(turn * solid.frame.rotation, centres[index as usize]);
            let velocity = self.grains.velocity.evaluate(body.pose.position.as_slice());
            set_velocity(&mut body, velocity, Vec3::zeros());
            body
        });
        Ok(Made { count: placing.count, bodies: bodies.collect(), grading: None })
    }

    fn body(&self, solid: &Solid, index: u64, pose: &Pose) -> Body {
        let id = BodyId(self.place.first_id + index);
        solid.at(id, self.place.group, self.grains.material as u32, pose)
    }

    /// Collective: the numbers of all ranks, in rank order.
    fn all(&self, own: &[f64]) -> Vec<f64> {
        let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_le_bytes()).collect();
        let number = |eight: &[u8]| f64::from_le_bytes(eight.try_into().unwrap_or([0; 8]));
        self.comm.all_gather(&bytes).iter().flat_map(|bytes| bytes.chunks_exact(8).map(number)).collect()
    }

    /// Collective: the curve of the stones that were made, at the sieves of the curve that was wanted.
    fn achieved(
        &self,
        sizes: &SizeDistribution,
        placing: &Placing,
        bodies: &[Body],
    ) -> Option<AchievedGrading> {
        let SizeDistribution::Grading(grading) = sizes else { return None };
        let wanted = grading.points().to_vec();
        let mut sums = vec![ExactSum::default(); wanted.len() + 1];
        for body in bodies {
            let size = sizes.size(placing.seed, body.id.0 - self.place.first_id);
            sums[wanted.len()].add(body.mass);
            let passed = sums.iter_mut().zip(&wanted).filter(|(_, point)| size <= point.sieve);
            passed.for_each(|(sum, _)| sum.add(body.mass));
        }
        ExactSum::reduce(&mut sums, self.comm);
        let total = sums[wanted.len()].value();
        let share = |(point, sum): (&Passing, &ExactSum)| Passing {
            sieve: point.sieve,
            percent: 100.0 * sum.value() / total,
        };
        let passing = wanted.iter().zip(&sums).map(share).collect();
        Some(AchievedGrading { grains: self.grains.name.clone(), passing, wanted })
    }

    /// Collective.
    fn read_file(&self, file: &Path, state: FileState, offset: &Vec3) -> Result<Made, SetupError> {
        let read = SceneFile::open(file).map_err(SetupError::from).and_then(|scene| {
            let own = share(scene.count(), self.comm.rank(), self.comm.size());
            let rows = scene.read(own.clone(), state == FileState::Settled)?;
            let body = |(index, row): (u64, &SceneRow)| {
                self.body_of_row(row, index, offset).map_err(|problem| SetupError::SceneBody {
                    grains: self.grains.name.clone(),
                    file: file.to_path_buf(),
                    index,
                    problem,
                })
            };
            let bodies = own.zip(&rows).map(body).collect::<Result<_, _>>()?;
            Ok(Made { count: scene.count(), bodies, grading: None })
        });
        agree(self.comm, read)
    }

    /// Mass and frame come from the vertices and the material, as everywhere; the file's own frame is close to it.
    fn body_of_row(&self, row: &SceneRow, index: u64, offset: &Vec3) -> Result<Body, String> {
        let hull = convex_hull(&row.vertices).map_err(|error| error.to_string())?;
        let shape = Shape::Convex(solids::polyhedron(hull));
        let solid = self.solid(&shape).map_err(|error| error.to_string())?;
        let pose = Pose::new(row.state.pose.rotation, row.state.pose.position + offset);
        let mut body = self.body(&solid, index, &pose);
        let added = self.grains.velocity.evaluate(body.pose.position.as_slice());
        set_velocity(&mut body, row.state.velocity + added, row.state.angular_velocity);
        Ok(body)
    }
}
