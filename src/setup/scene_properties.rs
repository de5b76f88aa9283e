//! Mass, moments and triangles that a scene file gives beside the vertices of its bodies: compared with what
//! the vertices give, or taken in place of it.

use super::solids::Solid;
use crate::geometry::{Pose, Shape};
use crate::output::SceneRow;
use nalgebra::Matrix3;

/// Relative difference that is let pass: files of other engines round, or integrate coarsely.
pub(super) const TOLERANCE: f64 = 0.01;

/// An error unless the triangles enclose the volume of the hull.
pub(super) fn check_volume(row: &SceneRow, hull: f64) -> Result<(), String> {
    match row.volume {
        Some(found) if (found / hull - 1.0).abs() > TOLERANCE => {
            Err(format!("tris enclose {found:e} m³, the hull of verts {hull:e} m³"))
        }
        _ => Ok(()),
    }
}

/// An error where mass or moments of the file are not those of the vertices and the density.
pub(super) fn compare(row: &SceneRow, solid: &Solid) -> Result<(), String> {
    const ADVICE: &str = "take the density of the file, or say properties = \"file\" or \"shape\"";
    if let Some(mass) = row.mass.filter(|mass| (mass / solid.mass - 1.0).abs() > TOLERANCE) {
        return Err(format!("mass is {mass} kg, verts and the density give {} kg; {ADVICE}", solid.mass));
    }
    let Some(inertia) = row.inertia else { return Ok(()) };
    // In the frame of the file: R diag(I) Rᵀ.
    let turn = solid.frame.rotation.to_rotation_matrix();
    let own = turn.matrix() * Matrix3::from_diagonal(&solid.inertia) * turn.matrix().transpose();
    let difference = (own - Matrix3::from_diagonal(&inertia)).abs().max();
    if difference > TOLERANCE * solid.inertia.max() {
        let (found, own) = (inertia.as_slice(), own.diagonal());
        return Err(format!(
            "inertia is {found:?} kg m², verts and the density give {:?} kg m²; {ADVICE}",
            own.as_slice()
        ));
    }
    Ok(())
}

/// A body with the mass of the file, and its moments if it has them: about the axes of its frame.
pub(super) fn taken(row: &SceneRow, shape: &Shape, density: f64) -> Result<Solid, String> {
    let mass = row.mass.ok_or("the file has no mass, which properties = \"file\" asks for")?;
    match row.inertia {
        Some(inertia) => Ok(Solid { shape: shape.clone(), frame: Pose::identity(), mass, inertia }),
        None => Solid::new(shape, density, Some(mass)).map_err(|problem| problem.to_string()),
    }
}
