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

crate::words::choices! {
    /// From which gap the force of a contact's spring follows; see [`Stiffness`].
    #[derive(Default)]
    pub enum SpringAt {
        #[default]
        End = "end", "the gap that the step leads to: stable for any stiffness, takes up what the step does not resolve";
        Middle = "middle", "the mean over the step: keeps energy where the step resolves the contact, rings where it does not";
    }
}

/// The spring and damper of a contact point, along the normal: force `-k (g + τ V_n)`, never pulling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stiffness {
    /// k > 0, N/m.
    pub normal: f64,
    /// τ ≥ 0, s.
    pub dissipation: f64,
    pub spring_at: SpringAt,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ContactLaw {
    /// μ ≥ 0.
    pub friction: f64,
    /// e in [0, 1]; above 0 only with [`Activation::GapActivated`].
    pub restitution: f64,
    pub activation: Activation,
    /// Rigid if none; only with [`Activation::Predictive`].
    pub stiffness: Option<Stiffness>,
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
