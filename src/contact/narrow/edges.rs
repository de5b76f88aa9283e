//! Pairs of edges whose arcs cross on the Gauss sphere: facets of the Minkowski difference of two polyhedra.
//!
//! Everything in the frame of a.

use crate::geometry::Vec3;

/// Sine of the angle below which two edges are parallel, squared.
const PARALLEL_SQUARED: f64 = 1e-8;

/// An edge in the frame of a.
pub struct PlacedEdge {
    pub index: u32,
    pub point: Vec3,
    pub direction: Vec3,
    pub normals: [Vec3; 2],
}

/// Normal from a to b and separation, if the two edges span a facet: (3) of `axis`.
pub fn edge_axis(a: &PlacedEdge, b: &PlacedEdge) -> Option<(Vec3, f64)> {
    // The arc of a crosses the plane of the negated arc of b, and the other way round, on the same side.
    let (a0, a1) = (a.normals[0].dot(&b.direction), a.normals[1].dot(&b.direction));
    if a0 * a1 >= 0.0 {
        return None;
    }
    let (b0, b1) = (b.normals[0].dot(&a.direction), b.normals[1].dot(&a.direction));
    if b0 * b1 >= 0.0 || b0 * a1 >= 0.0 {
        return None;
    }
    let across = a.direction.cross(&b.direction);
    let squared = across.norm_squared();
    if squared <= PARALLEL_SQUARED * a.direction.norm_squared() * b.direction.norm_squared() {
        return None;
    }
    // The crossing point, a combination of the normals of a with positive weights, gives the sign.
    let crossing = a.normals[0] * a1.abs() + a.normals[1] * a0.abs();
    let length = squared.sqrt().copysign(across.dot(&crossing));
    let normal = across / length;
    Some((normal, normal.dot(&(b.point - a.point))))
}

/// The first test of [`edge_axis`]: whether the arc of an edge of a crosses the plane of the negated arc of
/// b.
pub fn crosses_plane(normals_of_a: &[Vec3; 2], b: &PlacedEdge) -> bool {
    normals_of_a[0].dot(&b.direction) * normals_of_a[1].dot(&b.direction) < 0.0
}

/// How far a pair may move, and how deep its best face is: what edges can become under that.
pub struct Reach {
    /// Largest turn, as a chord of the unit circle.
    pub turned: f64,
    /// No point of b is further from the origin of b than this.
    pub lever: f64,
    /// D: how far such a point moves at most, as seen from a.
    pub budget: f64,
    /// Separation of the best face, now.
    pub floor: f64,
    /// Of b.
    pub origin: Vec3,
}

/// An edge, and how far the other's normals may come along its direction in a turn.
pub struct Turning {
    pub edge: PlacedEdge,
    room: f64,
}

impl Turning {
    /// Whether the arcs of two edges, one of each body, cross or may cross once b has turned: the tests of
    /// `edge_axis`, with room.
    pub fn may_cross(&self, b: &Turning) -> bool {
        let (Turning { edge: a, room: room_b }, Turning { edge: b, room: room_a }) = (self, b);
        let differ = |x: f64, room_x: f64, y: f64, room_y: f64| {
            (x > -room_x && y < room_y) || (x < room_x && y > -room_y)
        };
        let [a0, a1] = a.normals.map(|normal| normal.dot(&b.direction));
        if !differ(a0, *room_a, a1, *room_a) {
            return false;
        }
        let [b0, b1] = b.normals.map(|normal| normal.dot(&a.direction));
        differ(b0, *room_b, b1, *room_b) && differ(b0, *room_b, a1, *room_a)
    }
}

impl Reach {
    pub fn turning(&self, edge: PlacedEdge) -> Turning {
        Turning { room: self.turned * edge.direction.norm(), edge }
    }

    /// Whether a facet of separation s can be proved to stay below the best face.
    ///
    /// Let P and Q be the points of the two lines that are closest: Q − P = s n. With Q no further from the
    /// origin of b than the lever, it moves by η, |η| ≤ D, and the facet becomes
    ///
    /// ```text
    /// s' = n'·(s n + η) ≤ s n·n' + D
    /// ```
    ///
    /// The edges turn by an angle of sine `≤ turned / sin(e_a, e_b)` against each other, which is kept below
    /// 0.29, and n' is not the opposite normal, since both lie on the arc of e_a, which is kept shorter than
    /// 154°: so n·n' > 0.95. The best face loses at most D.
    pub fn stays_below(&self, a: &PlacedEdge, b: &PlacedEdge, separation: f64) -> bool {
        let later = if separation < 0.0 { 0.95 * separation } else { separation } + self.budget;
        if later >= self.floor - self.budget || a.normals[0].dot(&a.normals[1]) < -0.9 {
            return false;
        }
        let (u, v, between) = (&a.direction, &b.direction, b.point - a.point);
        let (uu, uv, vv) = (u.norm_squared(), u.dot(v), v.norm_squared());
        let across = u.cross(v).norm_squared();
        if across * (0.29 * 0.29) < self.turned * self.turned * uu * vv {
            return false;
        }
        let parameter = (uv * between.dot(u) - uu * between.dot(v)) / across;
        (b.point + v * parameter - self.origin).norm_squared() <= self.lever * self.lever
    }
}
