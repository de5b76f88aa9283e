//! Generated grains: the shape of grain k depends on the seed and k alone, where it lies on the sizes of
//! all.
//!
//! Each rank makes the grains of its share of the indices. The loose placement of few grains is computed by
//! every rank in the same way, from the bounding radii of all. Many grains are placed in tiles, side by side
//! in the region and each by one rank; how many tiles there are and which grains go where does not depend on
//! the ranks. Nothing else of other ranks' grains is held.

use super::error::{SetupError, agree};
use super::inventory::AchievedGrading;
use super::scene_properties;
use super::solids::{self, Solid, set_velocity};
use crate::geometry::{
    Aabb, Overflow, PackingError, Passing, Pose, Quat, Random, Shape, SizeDistribution, Vec3, convex_hull,
    place, stone,
};
use crate::input::{Case, FileProperties, FileState, Generator, GrainOrientation, Grains, Placing};
use crate::output::{SceneFile, SceneRow, share};
use crate::scene::{Body, BodyId};
use decomposition::{Comm, ExactSum};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

/// The random stream of the placement; grains use their own number as stream.
const PLACING_STREAM: u64 = u64::MAX - 1;

/// Grains of a tile of the placement, about.
const GRAINS_OF_A_TILE: u64 = 20_000;

/// A tile is at least so many of the greatest diameters wide, so that its sides hardly show.
const TILE_WIDTH: f64 = 6.0;

/// Most grains of one generator that is placed as a whole: beyond, the radii alone would not fit one message.
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
        Generator::File { file, state, offset, properties } => {
            builder.read_file(file, *state, offset, *properties)
        }
    }
}

/// The region of a placement cut into equal tiles along x and y, each for a stretch of the grains.
struct Tiles {
    grains: u64,
    along: [u64; 2],
    region: Aabb,
}

impl Tiles {
    fn new(placing: &Placing) -> Self {
        let extent = placing.region.max - placing.region.min;
        let wanted = placing.count.div_ceil(GRAINS_OF_A_TILE).max(1) as f64;
        // About square: as many along an axis as its length asks for.
        let along_x = (wanted * extent.x / extent.y).sqrt().round().clamp(1.0, wanted);
        let along_y = (wanted / along_x).ceil().clamp(1.0, wanted);
        Self { grains: placing.count, along: [along_x as u64, along_y as u64], region: placing.region }
    }

    fn count(&self) -> u64 {
        self.along[0] * self.along[1]
    }

    /// The first grain of a tile.
    fn first_of(&self, tile: u64) -> u64 {
        (u128::from(tile) * u128::from(self.grains) / u128::from(self.count())) as u64
    }

    fn width(&self) -> f64 {
        let extent = self.region.max - self.region.min;
        (extent.x / self.along[0] as f64).min(extent.y / self.along[1] as f64)
    }

    fn region(&self, tile: u64) -> Aabb {
        let place = [tile % self.along[0], tile / self.along[0]];
        let mut region = self.region;
        for (axis, place) in place.into_iter().enumerate() {
            let step = (self.region.max[axis] - self.region.min[axis]) / self.along[axis] as f64;
            region.min[axis] = self.region.min[axis] + step * place as f64;
            region.max[axis] = self.region.min[axis] + step * (place + 1) as f64;
        }
        region
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

    /// Collective: this rank's share of the grains, at their places. `make` gives a grain's solid and
    /// orientation.
    fn placed(
        &self,
        placing: &Placing,
        make: impl Fn(u64) -> Result<(Solid, Quat), SetupError> + Send + Sync,
    ) -> Result<Made, SetupError> {
        let tiles = Tiles::new(placing);
        let own_tiles = share(tiles.count(), self.comm.rank(), self.comm.size());
        let own = tiles.first_of(own_tiles.start)..tiles.first_of(own_tiles.end);
        let own =
            if tiles.count() == 1 { share(placing.count, self.comm.rank(), self.comm.size()) } else { own };
        let solids = own.clone().into_par_iter().map(make).collect::<Result<Vec<_>, _>>();
        let solids = agree(self.comm, solids)?;
        let radii: Vec<f64> = solids.iter().map(|(solid, _)| solid.shape.bounding_radius()).collect();
        let mut largest = [radii.iter().copied().fold(0.0, f64::max)];
        self.comm.max_f64(&mut largest);
        let centres = if tiles.count() > 1 && tiles.width() >= TILE_WIDTH * (2.0 * largest[0] + placing.gap) {
            self.centres_by_tile(placing, &tiles, own_tiles, &radii)?
        } else {
            self.centres_of_all(placing, &radii)?[own.start as usize..own.end as usize].to_vec()
        };
        let bodies = own.zip(solids.iter().zip(&centres)).map(|(index, ((solid, turn), centre))| {
            // The centre of mass stands where the placement wants it; the frame of the shape is turned, not
            // the body's.
            let mut body = self.body(solid, index, &Pose::identity());
            body.pose = Pose::new(turn * solid.frame.rotation, *centre);
            let velocity = self.grains.velocity.evaluate(body.pose.position.as_slice());
            set_velocity(&mut body, velocity, Vec3::zeros());
            body
        });
        Ok(Made { count: placing.count, bodies: bodies.collect(), grading: None })
    }

    /// Collective: the centres of all grains, on every rank.
    fn centres_of_all(&self, placing: &Placing, own_radii: &[f64]) -> Result<Vec<Vec3>, SetupError> {
        if placing.count > MOST_PLACED {
            let problem = format!(
                "{} grains cannot be placed in so narrow a region, at most {MOST_PLACED}",
                placing.count
            );
            return Err(self.wrong(problem));
        }
        let radii = self.all(own_radii);
        let mut random = Random::new(placing.seed, PLACING_STREAM);
        let centres = place(&radii, &placing.region, placing.gap, placing.overflow, &mut random);
        // The same arguments on every rank: the same result, good or bad.
        centres.map_err(|error| self.wrong(error))
    }

    /// Collective: the centres of the grains of this rank's tiles.
    fn centres_by_tile(
        &self,
        placing: &Placing,
        tiles: &Tiles,
        own: Range<u64>,
        radii: &[f64],
    ) -> Result<Vec<Vec3>, SetupError> {
        let first = tiles.first_of(own.start);
        let placed = |tile: u64| {
            let members =
                (tiles.first_of(tile) - first) as usize..(tiles.first_of(tile + 1) - first) as usize;
            let mut random = Random::new(placing.seed, PLACING_STREAM - tile);
            place(&radii[members], &tiles.region(tile), placing.gap, Overflow::GrowUp, &mut random)
        };
        let centres: Result<Vec<Vec<Vec3>>, _> = own.into_par_iter().map(placed).collect();
        let centres = agree(self.comm, centres.map_err(|error| self.wrong(error)))?.concat();
        let bottom = placing.region.min.z;
        let tops =
            centres.iter().zip(radii).map(|(centre, radius)| centre.z + radius + 0.5 * placing.gap - bottom);
        let height = placing.region.max.z - bottom;
        let mut needed = [tops.clone().fold(0.0, f64::max)];
        let mut fitting = [tops.filter(|top| *top <= height).count() as i64];
        self.comm.max_f64(&mut needed);
        self.comm.sum_i64(&mut fitting);
        if placing.overflow == Overflow::Refuse && needed[0] > height {
            let (fitting, wanted) = (fitting[0] as usize, placing.count as usize);
            return Err(self.wrong(PackingError::Full { fitting, wanted, height, needed: needed[0] }));
        }
        Ok(centres)
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
    fn read_file(
        &self,
        file: &Path,
        state: FileState,
        offset: &Vec3,
        properties: FileProperties,
    ) -> Result<Made, SetupError> {
        let read = SceneFile::open(file).map_err(SetupError::from).and_then(|scene| {
            let own = share(scene.count(), self.comm.rank(), self.comm.size());
            let rows = scene.read(own.clone(), state == FileState::Settled)?;
            let body = |(index, row): (u64, &SceneRow)| {
                self.body_of_row(row, index, offset, properties).map_err(|problem| SetupError::SceneBody {
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

    /// Mass and frame come from the vertices and the material, as everywhere; the file's own frame is close
    /// to it, and its mass and moments only take their place where the case says so.
    fn body_of_row(
        &self,
        row: &SceneRow,
        index: u64,
        offset: &Vec3,
        properties: FileProperties,
    ) -> Result<Body, String> {
        let hull = convex_hull(&row.vertices).map_err(|error| error.to_string())?;
        let shape = Shape::Convex(solids::polyhedron(hull));
        let mut solid = self.solid(&shape).map_err(|error| error.to_string())?;
        let density = self.case.materials[self.grains.material].density;
        scene_properties::check_volume(row, solid.mass / density)?;
        match properties {
            FileProperties::Compared => scene_properties::compare(row, &solid)?,
            FileProperties::Shape => {}
            FileProperties::File => solid = scene_properties::taken(row, &shape, density)?,
        }
        let pose = Pose::new(row.state.pose.rotation, row.state.pose.position + offset);
        let mut body = self.body(&solid, index, &pose);
        let added = self.grains.velocity.evaluate(body.pose.position.as_slice());
        set_velocity(&mut body, row.state.velocity + added, row.state.angular_velocity);
        Ok(body)
    }
}
