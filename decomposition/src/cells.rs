//! Space cut into equal cells, numbered along x, then y, then z.
//!
//! The grid covers a box; points outside belong to the nearest cell on the border, so that every point of
//! space has a cell and the order of coordinates is kept: of two boxes that overlap, the cells of both hold
//! the cell of the lower corner of their intersection.

#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    origin: [f64; 3],
    edge: f64,
    counts: [u32; 3],
}

impl Cells {
    /// Cells of about `edge` over the box from `min` to `max`, at most `limit` of them: the edge grows until
    /// they fit.
    pub fn covering(min: [f64; 3], max: [f64; 3], edge: f64, limit: usize) -> Self {
        assert!(edge > 0.0 && limit >= 1);
        let mut cells = Self { origin: min, edge, counts: [1; 3] };
        if !(0..3).all(|k| (max[k] - min[k]).is_finite()) {
            return cells; // no edge is long enough
        }
        loop {
            cells.counts = std::array::from_fn(|k| {
                ((max[k] - min[k]) / cells.edge).ceil().clamp(1.0, f64::from(1u32 << 20)) as u32
            });
            if cells.count() <= limit {
                return cells;
            }
            cells.edge *= 1.26; // about twice the volume
        }
    }

    pub fn count(&self) -> usize {
        self.counts.iter().map(|&count| count as usize).product()
    }

    /// The middle of a cell.
    pub fn centre(&self, cell: usize) -> [f64; 3] {
        let [nx, ny, _] = self.counts.map(|count| count as usize);
        let index = [cell % nx, cell / nx % ny, cell / nx / ny];
        std::array::from_fn(|axis| self.origin[axis] + (index[axis] as f64 + 0.5) * self.edge)
    }

    pub fn edge(&self) -> f64 {
        self.edge
    }

    /// The cell that holds a point.
    pub fn cell_of(&self, point: [f64; 3]) -> usize {
        self.index(self.coordinates(point))
    }

    /// The cells that a box touches.
    pub fn in_box(&self, min: [f64; 3], max: [f64; 3]) -> impl Iterator<Item = usize> + '_ {
        let (low, high) = (self.coordinates(min), self.coordinates(max));
        (low[2]..=high[2]).flat_map(move |z| {
            (low[1]..=high[1]).flat_map(move |y| (low[0]..=high[0]).map(move |x| self.index([x, y, z])))
        })
    }

    /// The up to six cells that share a face with `cell`.
    pub fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> + '_ {
        let [nx, ny, _] = self.counts.map(|count| count as usize);
        let place = [cell % nx, cell / nx % ny, cell / (nx * ny)].map(|k| k as u32);
        (0..3).flat_map(move |axis| {
            [-1i64, 1].into_iter().filter_map(move |side| {
                let moved = i64::from(place[axis]) + side;
                (0..i64::from(self.counts[axis])).contains(&moved).then(|| {
                    let mut neighbour = place;
                    neighbour[axis] = moved as u32;
                    self.index(neighbour)
                })
            })
        })
    }

    fn coordinates(&self, point: [f64; 3]) -> [u32; 3] {
        std::array::from_fn(|k| {
            let place = ((point[k] - self.origin[k]) / self.edge).floor();
            // A NaN becomes 0 here; casts saturate.
            (place.max(0.0) as u32).min(self.counts[k] - 1)
        })
    }

    fn index(&self, [x, y, z]: [u32; 3]) -> usize {
        (z as usize * self.counts[1] as usize + y as usize) * self.counts[0] as usize + x as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_cell_and_the_limit_holds() {
        let cells = Cells::covering([-1.0, 0.0, 0.0], [1.0, 3.0, 0.0], 0.1, 50);
        assert!(cells.count() <= 50 && cells.count() > 10);
        assert_eq!(Cells::covering([-1e308; 3], [1e308; 3], 1.0, 1000).count(), 1);
        for point in [[-1e9, 0.0, 1.0], [0.5, 1.5, 0.0], [f64::INFINITY, -f64::INFINITY, f64::NAN]] {
            assert!(cells.cell_of(point) < cells.count());
        }
    }

    #[test]
    fn overlapping_boxes_share_the_cell_of_their_lower_corner() {
        let cells = Cells::covering([0.0; 3], [1.0; 3], 0.13, 1000);
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 31) as f64 * 1.6 - 0.3
        };
        let mut checked = 0;
        for _ in 0..2000 {
            let corner: [[f64; 3]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| next()));
            let far = corner.map(|low| low.map(|x| x + 0.4));
            let lower: [f64; 3] = std::array::from_fn(|k| corner[0][k].max(corner[1][k]));
            if (0..3).all(|k| lower[k] <= far[0][k].min(far[1][k])) {
                let shared = cells.cell_of(lower);
                assert!((0..2).all(|b| cells.in_box(corner[b], far[b]).any(|cell| cell == shared)));
                checked += 1;
            }
        }
        assert!(checked > 100);
    }

    #[test]
    fn neighbours_are_mutual() {
        let cells = Cells::covering([0.0; 3], [0.3, 0.2, 0.4], 0.1, 1000);
        for cell in 0..cells.count() {
            for neighbour in cells.neighbours(cell) {
                assert!(neighbour != cell && cells.neighbours(neighbour).any(|back| back == cell));
            }
        }
        assert_eq!(cells.neighbours(0).count(), 3);
    }
}
