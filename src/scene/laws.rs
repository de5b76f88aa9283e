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

/// The springs of a contact point: along the normal with a damper, force `-k (g + τ V_n)`, never pulling; in
/// the tangent plane, force `-k_t ξ`, where the stretch ξ follows what points of both bodies have moved along
/// each other, less what they have slipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stiffness {
    pub normal: Normal,
    /// k_t by k, ≥ 0; zero for rigid in the tangent plane.
    pub tangential_ratio: f64,
    /// τ ≥ 0, s.
    pub dissipation: f64,
    pub spring_at: SpringAt,
}

/// k > 0 of a contact point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Normal {
    /// The same everywhere, N/m.
    Given(f64),
    /// From Young's modulus E, Pa, and the sizes of the bodies.
    Modulus(f64),
}

/// The springs of one contact: a [`Stiffness`] between two bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spring {
    /// k > 0, N/m.
    pub normal: f64,
    /// k_t ≥ 0, N/m; zero for rigid in the tangent plane.
    pub tangential: f64,
    /// τ ≥ 0, s.
    pub dissipation: f64,
    pub spring_at: SpringAt,
}

impl Stiffness {
    /// Between bodies of these sizes, m; none for a body that does not give way, and none where neither does.
    ///
    /// By its modulus a body of size d gives way like a cube of that edge which is pressed over a face,
    /// `k = E d`; the two of a contact stand one behind the other.
    pub fn between(&self, sizes: impl Fn(usize) -> Option<f64>) -> Option<Spring> {
        let normal = match self.normal {
            Normal::Given(stiffness) => stiffness,
            Normal::Modulus(modulus) => {
                let yielding: f64 = (0..2).filter_map(sizes).map(|size| 1.0 / size).sum();
                if yielding == 0.0 {
                    return None;
                }
                modulus / yielding
            }
        };
        let &Stiffness { tangential_ratio, dissipation, spring_at, .. } = self;
        Some(Spring { normal, tangential: tangential_ratio * normal, dissipation, spring_at })
    }
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
    /// Of a contact with this spring.
    pub fn kind(&self, spring: Option<&Spring>) -> Kind {
        match spring {
            Some(spring) if spring.tangential > 0.0 => Kind::Stretched,
            _ => Kind::Coulomb,
        }
    }

    /// Whether it gives way in the tangent plane.
    pub fn is_stretched(&self) -> bool {
        self.stiffness.is_some_and(|stiffness| stiffness.tangential_ratio > 0.0)
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
