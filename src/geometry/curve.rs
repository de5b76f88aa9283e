//! A space-filling curve: neighbours on it are neighbours in space, and the other way round for most.

use super::{Aabb, Vec3};

/// Bits of a coordinate: 1024 steps across the box.
const BITS: i32 = 10;

/// Where a point of a box stands on the Z-curve through it; points outside, and those of a box without
/// extent, count as on its border.
pub fn place_on_curve(point: &Vec3, bounds: &Aabb) -> u32 {
    let steps = 2_f64.powi(BITS);
    let coordinate = |axis: usize| {
        let share = (point[axis] - bounds.min[axis]) / (bounds.max[axis] - bounds.min[axis]);
        // What is not a number becomes zero.
        spread((share * steps).clamp(0.0, steps - 1.0) as u64)
    };
    (coordinate(0) << 2 | coordinate(1) << 1 | coordinate(2)) as u32
}

/// Puts two zeros before each of the lowest 17 bits.
pub fn spread(value: u64) -> u64 {
    let mut x = value & 0x1_ffff;
    x = (x | x << 32) & 0x001f_0000_0000_ffff;
    x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octants_follow_one_another_and_so_do_theirs() {
        let bounds = Aabb { min: Vec3::repeat(-1.0), max: Vec3::repeat(1.0) };
        let at = |x: f64, y: f64, z: f64| place_on_curve(&Vec3::new(x, y, z), &bounds);
        let corners = [-0.5, 0.5].map(|x| [-0.5, 0.5].map(|y| [-0.5, 0.5].map(|z| at(x, y, z))));
        let corners: Vec<u32> = corners.into_iter().flatten().flatten().collect();
        assert!(corners.is_sorted_by(|a, b| a < b), "{corners:?}");
        let eighth = 1 << (3 * BITS - 3);
        assert!(corners.iter().enumerate().all(|(octant, place)| place / eighth == octant as u32));
        assert!(at(-0.9, -0.9, -0.9) < at(-0.9, -0.9, -0.1) && at(-0.1, -0.1, -0.1) < eighth);
    }

    #[test]
    fn the_border_and_what_is_no_number_have_places() {
        let bounds = Aabb { min: Vec3::zeros(), max: Vec3::new(1.0, 1.0, 0.0) };
        let most = (1 << (3 * BITS)) - 1;
        for x in [0.0, 1.0, 7.0, -7.0, f64::INFINITY, f64::NAN] {
            assert!(place_on_curve(&Vec3::repeat(x), &bounds) <= most);
        }
        assert_eq!(place_on_curve(&Vec3::zeros(), &bounds), 0);
    }
}
