use super::*;
use crate::contact::narrow::axis::{Axes, Pair, Search, Start};

fn check(a: &(Arc<Polyhedron>, Pose), b: &(Arc<Polyhedron>, Pose), case: usize) {
    let (found, _) = oracle::search(a, b);
    let (facets, all) = oracle::separation(a, b);
    let scale = a.0.bounding_radius + b.0.bounding_radius + (a.1.position - b.1.position).norm();
    assert!((found - facets).abs() <= 2e-12 * scale, "case {case}: {found} but {facets}");
    if found < -1e-4 * scale {
        // Overlapping: no direction whatever separates more.
        assert!(all <= found + 1e-12 * scale, "case {case}: {found} but some axis {all}");
    }
}

#[test]
fn pruning_loses_nothing() {
    let mut random = Random(1);
    for case in 0..20_000 {
        let [a, b] = any_pair(&mut random);
        check(&a, &b, case);
    }
}

#[test]
fn pruning_loses_nothing_on_big_stones() {
    let mut random = Random(2);
    for case in 0..300 {
        let vertices = 20 + random.below(20);
        let a = (stone(&mut random, vertices), random.pose());
        let b = (stone(&mut random, vertices), random.pose());
        let reach = a.0.bounding_radius + b.0.bounding_radius;
        let position = a.1.position + random.direction() * reach * random.between(0.3, 1.1);
        check(&a, &(b.0, Pose::new(b.1.rotation, position)), case);
    }
}

#[test]
fn a_pair_apart_is_never_further_than_it_is() {
    let mut random = Random(3);
    let (mut tight, mut apart, mut worst) = (0, 0, 1.0_f64);
    for case in 0..3000 {
        let [a, b] = any_pair(&mut random);
        let (found, _) = oracle::search(&a, &b);
        if found <= 1e-6 {
            continue;
        }
        apart += 1;
        let distance = oracle::distance(&a, &b);
        assert!(found <= distance + 1e-12, "case {case}: {found} above the distance {distance}");
        tight += usize::from(found >= distance * (1.0 - 1e-9));
        worst = worst.min(found / distance);
    }
    println!("of {apart} pairs apart {tight} have their distance as separation; least ratio {worst:.3}");
    assert!(apart > 500 && tight > 50);
}

#[test]
fn a_search_may_start_anywhere() {
    let mut random = Random(5);
    let mut scratch = Search::default();
    for _ in 0..5000 {
        let [a, b] = any_pair(&mut random);
        let pair = Pair::new((&a.0, &a.1), (&b.0, &b.1));
        let (found, _) = oracle::search(&a, &b);
        let margin = [f64::INFINITY, 0.0, found + 1e-9][random.below(3)];
        let budget = [0.0, 0.02][random.below(2)];
        let plain = pair.search(margin, budget, None, &mut Search::default()).map(|(axes, _)| axes);
        let centres = pair.between_centres().between_centres;
        for between_centres in [centres, centres + 0.1, f64::INFINITY, f64::NAN] {
            let vertices = [random.below(a.0.vertices.len()) as u32, random.below(b.0.vertices.len()) as u32];
            let start = Some(Start { vertices, between_centres });
            match (&plain, pair.search(margin, budget, start, &mut scratch)) {
                (Ok(plain), Ok((axes, _))) => {
                    assert_eq!((plain.face, plain.face_separation), (axes.face, axes.face_separation));
                    // Edges below the best face may be left out or not.
                    let above = |axes: &Axes| axes.edges.filter(|edges| edges.3 > axes.face_separation);
                    assert_eq!(above(plain), above(&axes));
                }
                (Err(_), Err((_, separation))) => assert!(separation > margin),
                (plain, other) => panic!("{plain:?}, but {:?}", other.map(|(axes, _)| axes)),
            }
        }
    }
}

#[test]
fn hints_change_nothing() {
    let mut random = Random(4);
    let (mut none, mut some) = (0, 0);
    for _ in 0..5000 {
        let [a, b] = any_pair(&mut random);
        let (found, _) = oracle::search(&a, &b);
        // Margins right at the separation are the ones where a hint could tip the balance.
        let margin =
            [0.0, 0.05, found.max(0.0), (found - 1e-16).max(0.0), (found + 1e-16).max(0.0)][random.below(5)];
        let plain = collide_pair(&a, &b, margin, &mut Hint::default());
        if plain.is_some() {
            some += 1
        } else {
            none += 1
        }
        for _ in 0..6 {
            let (i, j) = (random.below(30) as u32, random.below(30) as u32);
            let separator = match random.below(3) {
                0 => axis::Separator::FaceOfA(i),
                1 => axis::Separator::FaceOfB(i),
                _ => axis::Separator::Edges(i, j),
            };
            assert_eq!(plain, collide_pair(&a, &b, margin, &mut Hint::apart(separator)));
        }
        // The hint that the pair leaves behind, for the same poses and after small and larger motions.
        let mut hint = Hint::default();
        collide_pair(&a, &b, margin, &mut hint);
        let radius = a.0.bounding_radius.min(b.0.bounding_radius);
        let mut moved = b.clone();
        for size in [0.0, 1e-9, 1e-6, 1e-4, 1e-3, 3e-3, 3e-3, 1e-2, 3e-2] {
            let turn = Quat::from_scaled_axis(random.direction() * size * random.unit());
            moved.1.rotation = turn * moved.1.rotation;
            moved.1.position += random.direction() * (radius * size * random.unit());
            for margin in [margin, 0.1 * radius] {
                let fresh = collide_pair(&a, &moved, margin, &mut Hint::default());
                assert_eq!(fresh, collide_pair(&a, &moved, margin, &mut hint));
            }
        }
    }
    assert!(none > 500 && some > 500);
}
