//! A small software rasteriser: triangles to a picture, with no display and no graphics card.
//!
//! A perspective depth buffer with 2 × 2 samples a pixel finds what is seen. Light is a key light with a soft
//! shadow and a bright sky: for each of some dozen directions over the hemisphere a depth map is drawn once,
//! and a point is lit by those directions that reach it. Their mean is the ambient occlusion, exact up to the
//! maps' resolution, which is what makes a heap of stones look like one. Colours are linear until the end;
//! the background is transparent.

use nalgebra::Vector3;
use rayon::prelude::*;

pub type V3 = Vector3<f32>;

/// Samples along each side of a pixel.
const SAMPLES: usize = 2;
/// Rows of samples that one task draws.
const BAND: usize = 64;
const NOTHING: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub struct Triangle {
    /// World, counter-clockwise seen from outside.
    pub corners: [V3; 3],
    /// Unit, at the corners.
    pub normals: [V3; 3],
    /// Linear red, green, blue.
    pub colour: [f32; 3],
    /// Seen and casting shadows only from its front: a wall between the camera and the scene vanishes.
    pub one_sided: bool,
}

impl Triangle {
    pub fn flat(corners: [V3; 3], colour: [f32; 3]) -> Self {
        let normal = (corners[1] - corners[0]).cross(&(corners[2] - corners[0]));
        let normal = normal.try_normalize(0.0).unwrap_or_else(V3::z);
        Self { corners, normals: [normal; 3], colour, one_sided: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Camera {
    pub eye: V3,
    pub right: V3,
    pub up: V3,
    /// Towards the viewer.
    pub back: V3,
    /// Half the height of the picture at distance 1.
    pub half_height: f32,
}

impl Camera {
    /// A camera that sees all `points`, so large that they fill the part `fill` of the picture, looking along
    /// `-back`.
    pub fn around(points: &[V3], back: V3, up: V3, aspect: f32, fill: f32) -> Self {
        let back = back.normalize();
        let right = up.cross(&back).try_normalize(1e-6).unwrap_or_else(V3::x);
        let up = back.cross(&right);
        let half_height = 0.2f32;
        let (tall, wide) = (fill * half_height, fill * half_height * aspect);
        let mut camera = Self { eye: V3::zeros(), right, up, back, half_height };
        let local: Vec<V3> =
            points.iter().map(|p| V3::new(p.dot(&right), p.dot(&up), p.dot(&back))).collect();
        let Some(first) = local.first() else { return camera };
        // A point (x, y, z) is inside if |x - a| ≤ wide (d - z), so d ≥ z + |x - a| / wide; the best a makes
        // both sides equal.
        let (mut low, mut high) = (V3::repeat(f32::MIN), V3::repeat(f32::MIN));
        for p in &local {
            let reach = V3::new(p.x / wide, p.y / tall, 0.0);
            high = high.sup(&(reach + V3::repeat(p.z)));
            low = low.sup(&(V3::repeat(p.z) - reach));
        }
        let (a, b) = ((high.x - low.x) / 2.0 * wide, (high.y - low.y) / 2.0 * tall);
        let distance = ((high.x + low.x) / 2.0).max((high.y + low.y) / 2.0);
        let near = local.iter().map(|p| p.z).fold(first.z, f32::max);
        let distance = distance.max(near + 1e-3 * (1.0 + near.abs()).min(1.0));
        camera.eye = right * a + up * b + back * distance;
        camera
    }

    /// Sample coordinates, and 1 / distance; none behind the camera.
    fn project(&self, point: &V3, width: f32, height: f32) -> Option<[f32; 3]> {
        let p = point - self.eye;
        let distance = -p.dot(&self.back);
        if distance <= 1e-6 {
            return None;
        }
        let scale = height / (2.0 * self.half_height * distance);
        let x = width / 2.0 + p.dot(&self.right) * scale;
        let y = height / 2.0 - p.dot(&self.up) * scale;
        Some([x, y, 1.0 / distance])
    }
}

pub struct Picture {
    pub width: usize,
    pub height: usize,
    /// Red, green, blue, opacity; not premultiplied.
    pub pixels: Vec<u8>,
}

/// Draws `triangles` into the rows `rows` of a buffer: the nearest (largest third coordinate) wins, the first
/// among equals.
fn draw(
    triangles: &[[[f32; 3]; 3]],
    order: impl Iterator<Item = u32>,
    rows: std::ops::Range<usize>,
    width: usize,
    depth: &mut [f32],
    mut seen: Option<&mut [u32]>,
) {
    for index in order {
        let [a, b, c] = triangles[index as usize];
        let area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        if area == 0.0 || !area.is_finite() {
            continue;
        }
        let low = |k: usize| a[k].min(b[k]).min(c[k]);
        let high = |k: usize| a[k].max(b[k]).max(c[k]);
        let first_x = (low(0) - 0.5).ceil().max(0.0) as usize;
        let last_x = (high(0) - 0.5).floor().min(width as f32 - 1.0);
        let first_y = (low(1) - 0.5).ceil().max(rows.start as f32) as usize;
        let last_y = (high(1) - 0.5).floor().min(rows.end as f32 - 1.0);
        if last_x < 0.0 || last_y < 0.0 {
            continue;
        }
        let (last_x, last_y) = (last_x as usize, last_y as usize);
        for y in first_y..=last_y {
            let py = y as f32 + 0.5;
            let row = (y - rows.start) * width;
            for x in first_x..=last_x {
                let px = x as f32 + 0.5;
                let u = ((b[0] - px) * (c[1] - py) - (b[1] - py) * (c[0] - px)) / area;
                let v = ((c[0] - px) * (a[1] - py) - (c[1] - py) * (a[0] - px)) / area;
                let w = 1.0 - u - v;
                if u < 0.0 || v < 0.0 || w < 0.0 {
                    continue;
                }
                let z = u * a[2] + v * b[2] + w * c[2];
                if z > depth[row + x] {
                    depth[row + x] = z;
                    if let Some(seen) = &mut seen {
                        seen[row + x] = index;
                    }
                }
            }
        }
    }
}

/// What lies nearest to a far light, seen along parallel rays.
struct DepthMap {
    towards: V3,
    right: V3,
    up: V3,
    centre: V3,
    /// Cells per metre.
    scale: f32,
    size: usize,
    depth: Vec<f32>,
}

impl DepthMap {
    fn new(towards: V3, triangles: &[Triangle], centre: V3, radius: f32, size: usize) -> Self {
        let helper = if towards.z.abs() > 0.9 { V3::x() } else { V3::z() };
        let right = helper.cross(&towards).normalize();
        let up = towards.cross(&right);
        let scale = size as f32 / (2.0 * radius.max(1e-9));
        let mut map = Self { towards, right, up, centre, scale, size, depth: vec![f32::MIN; size * size] };
        let flat: Vec<[[f32; 3]; 3]> =
            triangles.iter().map(|triangle| triangle.corners.map(|corner| map.place(&corner))).collect();
        let mut depth = std::mem::take(&mut map.depth);
        draw(&flat, 0..flat.len() as u32, 0..size, size, &mut depth, None);
        map.depth = depth;
        map
    }

    fn place(&self, point: &V3) -> [f32; 3] {
        let p = point - self.centre;
        let half = self.size as f32 / 2.0;
        [p.dot(&self.right) * self.scale + half, p.dot(&self.up) * self.scale + half, p.dot(&self.towards)]
    }

    /// Whether light from there reaches a point. `slack` is in cells: a surface that the light grazes falls
    /// off steeply within one.
    fn reaches(&self, point: &V3, shift: [f32; 2], slack: f32) -> bool {
        let [x, y, z] = self.place(point);
        let (x, y) = ((x + shift[0]).floor(), (y + shift[1]).floor());
        let inside = |value: f32| value >= 0.0 && value < self.size as f32;
        !(inside(x) && inside(y)) || self.depth[y as usize * self.size + x as usize] <= z + slack / self.scale
    }
}

/// The light of a picture.
struct Lights {
    key: DepthMap,
    sky: Vec<DepthMap>,
    up: V3,
}

/// Directions over the hemisphere around `up`, evenly by solid angle (a Fibonacci spiral).
fn sky_directions(up: V3, count: usize) -> Vec<V3> {
    let helper = if up.x.abs() > 0.9 { V3::y() } else { V3::x() };
    let right = helper.cross(&up).normalize();
    let ahead = up.cross(&right);
    let golden = std::f32::consts::PI * (3.0 - 5.0f32.sqrt());
    (0..count)
        .map(|k| {
            let height = 1.0 - (k as f32 + 0.5) / count as f32 * 0.97;
            let (radius, angle) = ((1.0 - height * height).sqrt(), golden * k as f32);
            up * height + right * (radius * angle.cos()) + ahead * (radius * angle.sin())
        })
        .collect()
}

impl Lights {
    fn new(triangles: &[Triangle], camera: &Camera, up: V3) -> Self {
        let (mut low, mut high) = (V3::repeat(f32::MAX), V3::repeat(f32::MIN));
        for corner in triangles.iter().flat_map(|triangle| &triangle.corners) {
            (low, high) = (low.inf(corner), high.sup(corner));
        }
        let (centre, radius) = ((low + high) / 2.0, ((high - low).norm() / 2.0).max(1e-6));
        let casting: Vec<Triangle> = triangles
            .iter()
            .filter(|triangle| !triangle.one_sided || faces(triangle, camera))
            .copied()
            .collect();
        // From the upper left behind the camera.
        let level = (camera.back - up * camera.back.dot(&up)).try_normalize(1e-3).unwrap_or(camera.up);
        let side = up.cross(&level);
        let towards = (up * 1.0 + level * 0.35 - side * 0.62).normalize();
        // Many triangles make the maps slow to draw; fewer maps hardly show then.
        let count = (12_000_000 / casting.len().max(1)).clamp(12, 36);
        let sky = sky_directions(up, count)
            .into_par_iter()
            .map(|towards| DepthMap::new(towards, &casting, centre, radius, 640))
            .collect();
        Self { key: DepthMap::new(towards, &casting, centre, radius, 2048), sky, up }
    }

    /// Linear light that a point of a surface sends on, before its colour.
    fn at(&self, point: &V3, normal: &V3) -> [f32; 3] {
        let off = |map: &DepthMap| point + normal * (1.5 / map.scale);
        let slack = |cosine: f32| 0.5 + 0.4 / cosine.max(0.15);
        let (mut open, mut all) = (0.0f32, 1e-6f32);
        for map in &self.sky {
            let cosine = normal.dot(&map.towards);
            if cosine > 0.0 {
                all += cosine;
                open += if map.reaches(&off(map), [0.0; 2], slack(cosine)) { cosine } else { 0.0 };
            }
        }
        // A surface that faces down sees little sky, whatever covers it.
        let ambient = open / all * (0.62 + 0.38 * normal.dot(&self.up));
        let cosine = normal.dot(&self.key.towards).max(0.0);
        let mut sun = 0.0;
        if cosine > 0.0 {
            let place = off(&self.key);
            for k in 0..9 {
                let shift = [(k % 3) as f32 - 1.0, (k / 3) as f32 - 1.0].map(|step| 1.3 * step);
                sun += if self.key.reaches(&place, shift, slack(cosine) + 1.0) { cosine / 9.0 } else { 0.0 };
            }
        }
        // A warm sun, a slightly cool sky, and a little light from everywhere.
        [
            1.62 * sun + 0.80 * ambient + 0.05,
            1.52 * sun + 0.83 * ambient + 0.05,
            1.38 * sun + 0.90 * ambient + 0.055,
        ]
    }
}

fn faces(triangle: &Triangle, camera: &Camera) -> bool {
    let [a, b, c] = triangle.corners;
    (b - a).cross(&(c - a)).dot(&(camera.eye - a)) > 0.0
}

/// The index of the triangle seen at each sample, `SAMPLES` a pixel along each side, or `u32::MAX`.
fn visible(
    triangles: &[Triangle],
    camera: &Camera,
    width: usize,
    height: usize,
) -> (Vec<[[f32; 3]; 3]>, Vec<u32>) {
    let outside = [[f32::NAN; 3]; 3];
    let project = |triangle: &Triangle| {
        if triangle.one_sided && !faces(triangle, camera) {
            return outside;
        }
        let place = |corner: &V3| camera.project(corner, width as f32, height as f32);
        match [place(&triangle.corners[0]), place(&triangle.corners[1]), place(&triangle.corners[2])] {
            [Some(a), Some(b), Some(c)] => [a, b, c],
            _ => outside,
        }
    };
    let flat: Vec<[[f32; 3]; 3]> = triangles.par_iter().map(project).collect();
    let bands = height.div_ceil(BAND);
    let mut bins = vec![Vec::new(); bands];
    for (index, triangle) in flat.iter().enumerate() {
        let (low, high) =
            triangle.iter().fold((f32::MAX, f32::MIN), |(low, high), p| (low.min(p[1]), high.max(p[1])));
        if low.is_finite() && high >= 0.0 && low < height as f32 {
            let first = low.max(0.0) as usize / BAND;
            let last = (high.min(height as f32 - 1.0) as usize) / BAND;
            (first..=last.min(bands - 1)).for_each(|band| bins[band].push(index as u32));
        }
    }
    let mut seen = vec![NOTHING; width * height];
    seen.par_chunks_mut(BAND * width).zip(&bins).enumerate().for_each(|(band, (seen, bin))| {
        let rows = band * BAND..band * BAND + seen.len() / width;
        let mut depth = vec![0.0f32; seen.len()];
        draw(&flat, bin.iter().copied(), rows, width, &mut depth, Some(seen));
    });
    (flat, seen)
}

/// How many different owners are seen in a small picture; `owners` has one for each triangle, or none.
pub fn count_seen(
    triangles: &[Triangle],
    owners: &[Option<u32>],
    camera: &Camera,
    [width, height]: [usize; 2],
) -> usize {
    let (_, seen) = visible(triangles, camera, width, height);
    let owner = |&index: &u32| if index == NOTHING { None } else { owners[index as usize] };
    seen.iter().filter_map(owner).collect::<std::collections::BTreeSet<u32>>().len()
}

/// The picture that a camera takes; `up` is where the sky is.
pub fn render(triangles: &[Triangle], camera: &Camera, up: V3, width: usize, height: usize) -> Picture {
    let (wide, tall) = (width * SAMPLES, height * SAMPLES);
    let (flat, seen) = visible(triangles, camera, wide, tall);
    let lights = Lights::new(triangles, camera, up);
    let mut pixels = vec![0u8; 4 * width * height];
    pixels.par_chunks_mut(4 * width).enumerate().for_each(|(row, line)| {
        for (column, pixel) in line.chunks_exact_mut(4).enumerate() {
            pixel.copy_from_slice(&shade(triangles, &flat, &seen, &lights, [column, row], wide));
        }
    });
    Picture { width, height, pixels }
}

/// Every triangle in a pixel is lit once, at the mean of its samples.
fn shade(
    triangles: &[Triangle],
    flat: &[[[f32; 3]; 3]],
    seen: &[u32],
    lights: &Lights,
    [column, row]: [usize; 2],
    wide: usize,
) -> [u8; 4] {
    let mut samples = [(NOTHING, [0.0f32; 2]); SAMPLES * SAMPLES];
    for (k, sample) in samples.iter_mut().enumerate() {
        let (x, y) = (column * SAMPLES + k % SAMPLES, row * SAMPLES + k / SAMPLES);
        *sample = (seen[y * wide + x], [x as f32 + 0.5, y as f32 + 0.5]);
    }
    let (mut sum, mut covered) = ([0.0f32; 3], 0.0f32);
    for (k, &(index, _)) in samples.iter().enumerate() {
        if index == NOTHING || samples[..k].iter().any(|(before, _)| *before == index) {
            continue;
        }
        let own: Vec<[f32; 2]> =
            samples.iter().filter(|(other, _)| *other == index).map(|(_, place)| *place).collect();
        let weight = own.len() as f32;
        let middle = [0, 1].map(|axis| own.iter().map(|place| place[axis]).sum::<f32>() / weight);
        let (point, normal) = surface(&triangles[index as usize], &flat[index as usize], middle);
        let light = lights.at(&point, &normal);
        for axis in 0..3 {
            sum[axis] += weight * film(triangles[index as usize].colour[axis] * light[axis]);
        }
        covered += weight;
    }
    if covered == 0.0 {
        return [0; 4];
    }
    let [r, g, b] = sum.map(|part| (255.0 * part / covered).round().clamp(0.0, 255.0) as u8);
    [r, g, b, (255.0 * covered / (SAMPLES * SAMPLES) as f32).round() as u8]
}

/// The point and the normal that a sample sees, by perspective-correct weights.
fn surface(triangle: &Triangle, flat: &[[f32; 3]; 3], [x, y]: [f32; 2]) -> (V3, V3) {
    let [a, b, c] = flat;
    let area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    let u = (((b[0] - x) * (c[1] - y) - (b[1] - y) * (c[0] - x)) / area).clamp(0.0, 1.0);
    let v = (((c[0] - x) * (a[1] - y) - (c[1] - y) * (a[0] - x)) / area).clamp(0.0, 1.0 - u);
    let weights = [u * a[2], v * b[2], (1.0 - u - v) * c[2]];
    let all: f32 = weights.iter().sum();
    let mix = |vectors: &[V3; 3]| (0..3).map(|k| vectors[k] * (weights[k] / all)).sum::<V3>();
    let normal = mix(&triangle.normals);
    (mix(&triangle.corners), normal.try_normalize(1e-9).unwrap_or(triangle.normals[0]))
}

/// Linear light to sRGB, with a soft shoulder instead of a hard white.
fn film(light: f32) -> f32 {
    let soft = light * (1.0 + light / 6.25) / (1.0 + light);
    let scaled = (1.22 * soft).clamp(0.0, 1.0);
    if scaled <= 0.003_130_8 { 12.92 * scaled } else { 1.055 * scaled.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(z: f32, half: f32, colour: [f32; 3]) -> [Triangle; 2] {
        let corner = |x: f32, y: f32| V3::new(x * half, y * half, z);
        let [a, b, c, d] = [corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)];
        [Triangle::flat([a, b, c], colour), Triangle::flat([a, c, d], colour)]
    }

    fn from_above(triangles: &[Triangle]) -> Camera {
        let points: Vec<V3> = triangles.iter().flat_map(|triangle| triangle.corners).collect();
        Camera::around(&points, V3::z(), V3::y(), 1.0, 0.94)
    }

    fn pixel(picture: &Picture, x: usize, y: usize) -> [u8; 4] {
        let at = 4 * (y * picture.width + x);
        picture.pixels[at..at + 4].try_into().unwrap()
    }

    #[test]
    fn the_nearer_triangle_is_seen_and_the_rest_is_transparent() {
        let mut all = square(0.0, 1.0, [0.8, 0.1, 0.1]).to_vec();
        all.extend(square(0.5, 0.3, [0.1, 0.1, 0.8]));
        let camera = from_above(&all);
        let picture = render(&all, &camera, V3::z(), 64, 64);
        let [r, _, b, alpha] = pixel(&picture, 32, 32);
        assert!(b > r && alpha == 255);
        let [r, _, b, alpha] = pixel(&picture, 6, 6);
        assert!(r > b && alpha == 255);
        assert_eq!(pixel(&picture, 0, 0), [0; 4]);
        // Both drawing orders give the same picture.
        all.rotate_left(2);
        assert_eq!(render(&all, &camera, V3::z(), 64, 64).pixels, picture.pixels);
    }

    #[test]
    fn no_gap_and_no_overlap_along_a_shared_edge() {
        let all = square(0.0, 1.0, [1.0; 3]);
        let camera = from_above(&all);
        let (_, seen) = visible(&all, &camera, 101, 101);
        let inside: Vec<u32> = (0..101)
            .filter(|k| (8..93).contains(k))
            .flat_map(|y| seen[y * 101 + 8..y * 101 + 93].to_vec())
            .collect();
        assert!(inside.iter().all(|&index| index != NOTHING), "a sample on the diagonal is lost");
    }

    #[test]
    fn a_point_under_a_roof_is_darker() {
        let mut all = square(0.0, 1.0, [0.5; 3]).to_vec();
        let open = render(&all, &from_above(&all), V3::z(), 32, 32);
        let camera = from_above(&all);
        // A roof that does not hide the ground from a camera below it, but hides the sky from the ground.
        all.extend(square(50.0, 300.0, [0.5; 3]));
        let covered = render(&all, &camera, V3::z(), 32, 32);
        assert!(pixel(&open, 16, 16)[0] > pixel(&covered, 16, 16)[0] + 60);
    }

    #[test]
    fn walls_are_seen_from_their_front_only() {
        let mut wall = square(0.0, 1.0, [0.5; 3]);
        wall.iter_mut().for_each(|triangle| triangle.one_sided = true);
        let front = from_above(&wall);
        let mut back = front;
        (back.eye, back.back, back.right) = (-front.eye, -front.back, -front.right);
        let owners = [Some(1), Some(2)];
        assert_eq!(count_seen(&wall, &owners, &front, [20, 20]), 2);
        assert_eq!(count_seen(&wall, &[Some(1), None], &front, [20, 20]), 1);
        assert_eq!(count_seen(&wall, &owners, &back, [20, 20]), 0);
    }

    #[test]
    fn the_camera_sees_every_point_and_wastes_little() {
        let points: Vec<V3> = (0..200)
            .map(|k| {
                V3::new(
                    (k as f32 * 0.7).sin() * 3.0,
                    (k as f32 * 1.3).cos(),
                    (k as f32 * 0.37).sin() * 0.5 + 9.0,
                )
            })
            .collect();
        let camera = Camera::around(&points, V3::new(1.0, -1.6, 0.8), V3::z(), 1.5, 0.94);
        let (mut low, mut high) = ([f32::MAX; 2], [f32::MIN; 2]);
        for point in &points {
            let [x, y, _] = camera.project(point, 150.0, 100.0).unwrap();
            low = [low[0].min(x), low[1].min(y)];
            high = [high[0].max(x), high[1].max(y)];
        }
        assert!(low[0] >= 0.0 && high[0] <= 150.0 && low[1] >= 0.0 && high[1] <= 100.0);
        let fills = (high[0] - low[0]) / 150.0;
        assert!(fills.max((high[1] - low[1]) / 100.0) > 0.9, "{fills}");
        // Nothing to see is no reason to fail.
        let nothing = Camera::around(&[], V3::x(), V3::z(), 1.0, 0.94);
        assert!(render(&[], &nothing, V3::z(), 4, 4).pixels.iter().all(|&byte| byte == 0));
    }
}
