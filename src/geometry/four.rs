//! Vectors with a fourth number beside their three, so that the compiler can work on two or four at a time;
//! every number is rounded as it would be alone.

use super::Vec3;

pub type Four = [f64; 4];

pub fn with(vector: &Vec3, fourth: f64) -> Four {
    [vector.x, vector.y, vector.z, fourth]
}

#[inline(always)]
pub fn each(number: impl Fn(usize) -> f64) -> Four {
    let mut four = [0.0; 4];
    for (k, entry) in four.iter_mut().enumerate() {
        *entry = number(k);
    }
    four
}
