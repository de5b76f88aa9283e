//! What holds between two materials.

use crate::law::Kind;

crate::words::choices! {
    /// When a contact acts. `predictive` is `0 ≤ g/h + V_n ⊥ r_n ≥ 0`.
    #[derive(Default)]
    pub enum Activation {
        #[default]
        GapActivated = "gap-activated",
            "a contact acts once the gap at mid-step is closed, with restitution [Docquier2020, eq. 32]";
        Predictive = "predictive",
            "a contact acts as soon as the gap would close within the step: no penetration, no restitution";
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ContactLaw {
    /// μ ≥ 0.
    pub friction: f64,
    /// e in [0, 1]; above 0 only with [`Activation::GapActivated`].
    pub restitution: f64,
    pub activation: Activation,
}

impl ContactLaw {
    /// What an impulse of such a contact consists of.
    pub fn kind(&self) -> Kind {
        Kind::Coulomb
    }
}

/// A law for each pair of materials, symmetric.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LawTable {
    materials: usize,
    laws: Vec<Option<ContactLaw>>,
}

impl LawTable {
    pub fn new(materials: usize) -> Self {
        Self { materials, laws: vec![None; materials * materials] }
    }

    pub fn set(&mut self, first: usize, second: usize, law: ContactLaw) {
        self.laws[first * self.materials + second] = Some(law);
        self.laws[second * self.materials + first] = Some(law);
    }

    /// All that there are; those of two different materials twice.
    pub fn iter(&self) -> impl Iterator<Item = &ContactLaw> {
        self.laws.iter().flatten()
    }

    /// `None` for materials that were declared never to meet.
    pub fn between(&self, first: u32, second: u32) -> Option<&ContactLaw> {
        self.laws[first as usize * self.materials + second as usize].as_ref()
    }
}
