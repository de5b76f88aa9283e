use super::*;
use crate::geometry::Vec3;
use proptest::prelude::*;

/// The oracle: every pair, straight from the definition.
fn all_pairs(boxes: &[Aabb], movable: &[bool]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for i in 0..boxes.len() {
        for j in i + 1..boxes.len() {
            if (movable[i] || movable[j]) && boxes[i].overlaps(&boxes[j]) {
                pairs.push((i as u32, j as u32));
            }
        }
    }
    pairs
}

fn check(boxes: &[Aabb], movable: &[bool]) -> usize {
    let mut out = vec![(7, 7)];
    let mut broad = BroadPhase::new();
    broad.pairs(boxes, movable, &mut out);
    let expected = all_pairs(boxes, movable);
    assert!(out == expected, "{} pairs, oracle {}", out.len(), expected.len());
    // Scratch left over from another problem changes nothing.
    let mut other = Vec::new();
    broad.pairs(&boxes[boxes.len() / 2..], &movable[boxes.len() / 2..], &mut other);
    broad.pairs(boxes, movable, &mut out);
    assert!(out == expected);
    expected.len()
}

fn check_all_movable(boxes: &[Aabb]) -> usize {
    check(boxes, &vec![true; boxes.len()])
}

fn cube(centre: Vec3, half: f64) -> Aabb {
    Aabb { min: centre.add_scalar(-half), max: centre.add_scalar(half) }
}

/// A small generator of its own, so that a failure replays.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn point(&mut self) -> Vec3 {
        Vec3::new(self.unit(), self.unit(), self.unit())
    }
}

#[test]
fn mixed_sizes_everywhere() {
    for (seed, ratio, shift) in
        [(1, 1.0, 0.0), (2, 10.0, -3.0), (3, 100.0, 1e6), (4, 1e4, -1e6), (5, 1e9, 0.5)]
    {
        let mut random = Random(seed);
        let boxes: Vec<Aabb> = (0..1500)
            .map(|_| {
                let half = 0.1 * f64::powf(ratio, -random.unit());
                cube(random.point().add_scalar(shift), half)
            })
            .collect();
        let movable: Vec<bool> = (0..boxes.len()).map(|_| random.unit() < 0.7).collect();
        assert!(check(&boxes, &movable) > 10);
        assert!(check_all_movable(&boxes) > 10);
    }
}

#[test]
fn slender_boxes() {
    let mut random = Random(11);
    let boxes: Vec<Aabb> = (0..1000)
        .map(|_| {
            let min = random.point();
            let size = random.point().map(|x| 0.5 * x.powi(6));
            Aabb { min, max: min + size }
        })
        .collect();
    assert!(check_all_movable(&boxes) > 100);
}

#[test]
fn faces_that_just_touch_count() {
    // Closed boxes on an exact lattice: each of the 27 neighbours shares a face, an edge or a corner.
    let mut boxes = Vec::new();
    for x in -3..3 {
        for y in -3..3 {
            for z in -3..3 {
                boxes.push(cube(Vec3::new(x as f64, y as f64, z as f64), 0.5));
            }
        }
    }
    // Per direction 6 + 2·5 ordered neighbours: (16³ − 6³) / 2 pairs.
    assert_eq!(check_all_movable(&boxes), (16_usize.pow(3) - 216) / 2);
    // Widths that are no power of two, and touching only up to rounding: the oracle rounds the same way.
    for lattice in &mut boxes {
        *lattice = Aabb { min: lattice.min * 0.3, max: lattice.max * 0.3 };
    }
    check_all_movable(&boxes);
}

#[test]
fn degenerate_sets() {
    assert_eq!(check_all_movable(&[]), 0);
    assert_eq!(check_all_movable(&[cube(Vec3::zeros(), 1.0)]), 0);
    let same = vec![cube(Vec3::new(0.1, -5.0, 3.0), 0.25); 100];
    assert_eq!(check_all_movable(&same), 4950);
    assert_eq!(check(&same, &[false; 100]), 0);
    let points = vec![cube(Vec3::new(1.0, 2.0, 3.0), 0.0); 60];
    assert_eq!(check_all_movable(&points), 60 * 59 / 2);

    // Points only, some of them twice; and points among boxes.
    let mut random = Random(17);
    let mut boxes: Vec<Aabb> = (0..300).map(|_| cube(random.point(), 0.0)).collect();
    boxes.extend_from_within(..50);
    assert_eq!(check_all_movable(&boxes), 50);
    boxes.extend((0..300).map(|_| cube(random.point(), 0.05)));
    assert!(check_all_movable(&boxes) > 100);

    // All in one cell, all different.
    let heap: Vec<Aabb> = (0..200).map(|_| cube(random.point() * 0.1, 0.4)).collect();
    assert_eq!(check_all_movable(&heap), 200 * 199 / 2);
}

#[test]
fn infinite_and_huge_boxes() {
    let mut random = Random(23);
    let infinity = f64::INFINITY;
    let mut boxes: Vec<Aabb> = (0..400).map(|_| cube(random.point(), 0.03)).collect();
    let mut movable = vec![true; 400];
    let everywhere = Aabb { min: Vec3::repeat(-infinity), max: Vec3::repeat(infinity) };
    let floor =
        Aabb { min: Vec3::new(-infinity, -infinity, -infinity), max: Vec3::new(infinity, infinity, 0.1) };
    for wall in [everywhere, floor, cube(Vec3::zeros(), 1e12), cube(Vec3::zeros(), 1.2e308), Aabb::empty()] {
        boxes.push(wall);
        movable.push(false);
    }
    assert!(check(&boxes, &movable) > 1000);
    assert!(check_all_movable(&boxes) > 1000);
    // Only infinite ones, more than the usual few.
    assert_eq!(check_all_movable(&vec![everywhere; 70]), 70 * 69 / 2);
    // One that flew away must stay correct, whatever it does to the extent of the scene.
    boxes.push(cube(Vec3::new(-1e300, 1e9, 1e18), 0.02));
    boxes.push(cube(Vec3::new(1e15, 1e9, 1e18), 1e-5));
    check_all_movable(&boxes);
}

#[test]
fn tiny_numbers() {
    let mut random = Random(29);
    for scale in [1e-300, 5e-324, 1e-310, 1e-20, 1e200] {
        let boxes: Vec<Aabb> = (0..200)
            .map(|_| {
                let min = random.point() * scale * 50.0;
                Aabb { min, max: min + random.point() * scale * 10.0 }
            })
            .collect();
        assert!(check_all_movable(&boxes) > 10);
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(31);
    let boxes: Vec<Aabb> = (0..20_000).map(|_| cube(random.point(), 0.002 + 0.02 * random.unit())).collect();
    let movable = vec![true; boxes.len()];
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut out = Vec::new();
        pool.install(|| BroadPhase::new().pairs(&boxes, &movable, &mut out));
        out
    };
    let one = run(1);
    assert!(one.len() > 10_000 && one.is_sorted());
    assert_eq!(one, run(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Coordinates on a coarse lattice: many ties, shared faces, zero extents.
    #[test]
    fn lattice_boxes(corners in prop::collection::vec((prop::array::uniform3(-6_i32..6), prop::array::uniform3(0_i32..4), any::<bool>()), 0..120), shift in -40_i32..40) {
        let scale = f64::from(shift).exp2();
        let boxes: Vec<Aabb> = corners
            .iter()
            .map(|(min, size, _)| {
                let min = Vec3::from_fn(|k, _| f64::from(min[k]));
                let size = Vec3::from_fn(|k, _| f64::from(size[k]));
                Aabb { min: min * scale, max: (min + size) * scale }
            })
            .collect();
        let movable: Vec<bool> = corners.iter().map(|corner| corner.2).collect();
        check(&boxes, &movable);
    }
}
