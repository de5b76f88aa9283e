//! What holds between two materials: the keys of `[[contact]]`, and their reading.

use super::case::ContactPair;
use super::language::keys::Need::{Default, Optional, Required};
use super::language::keys::{Kind, Namespace, Range, Section};
use super::language::names::Names;
use super::language::reader::TableReader;
use super::sections::{key, plain};
use crate::scene::{Activation, ContactLaw, Normal, SpringAt, Stiffness};
use crate::words::Choose;
use std::collections::BTreeSet;

pub static CONTACT: Section = plain(
    "What holds between two materials.",
    &[
        key(
            "materials",
            Kind::ReferencePair(Namespace::Material),
            "",
            Required,
            "The two, in any order; twice the same for contacts within one material.",
        ),
        key("friction", Kind::Number(Range::NOT_NEGATIVE), "", Required, "Coulomb's coefficient."),
        key(
            "restitution",
            Kind::Number(Range::within(0.0, 1.0)),
            "",
            Default("0.0"),
            "Newton's coefficient: speed after by speed before an impact. Above 0 only with the law \"gap-activated\".",
        ),
        key(
            "law",
            Kind::Choice(Activation::CHOICES),
            "",
            Default("\"gap-activated\""),
            "When a contact acts.",
        ),
        key(
            "stiffness",
            Kind::Number(Range::POSITIVE),
            "N/m",
            Optional("rigid"),
            "Of each contact point along the normal. Contacts then give way: the law is \"predictive\", and restitution follows from dissipation.",
        ),
        key(
            "young_modulus",
            Kind::Number(Range::POSITIVE),
            "Pa",
            Optional("none"),
            "In place of stiffness, which then follows from the sizes of the bodies: a free body gives way like a cube of edge d pressed over a face, by young_modulus times d, others do not; the two of a contact stand one behind the other. d is the edge of the cube that is as hard to turn as the body: d² is twice the sum of the principal moments by the mass, 1.55 radii of a sphere.",
        ),
        key(
            "tangential_stiffness",
            Kind::Number(Range::within(0.0, 10.0)),
            "",
            Default("0.0"),
            "Of each contact point in the tangent plane, by that along the normal (2/3 to 1 for round contacts); 0 is rigid. Points that stick give way, and slip where friction is overcome.",
        ),
        key(
            "dissipation",
            Kind::Number(Range::NOT_NEGATIVE),
            "s",
            Default("0.0"),
            "How long the damper beside the spring takes to relax: the force is stiffness times (overlap + dissipation times approach speed).",
        ),
        key(
            "spring_at",
            Kind::Choice(SpringAt::CHOICES),
            "",
            Default("\"end\""),
            "From which gap the force of the spring follows.",
        ),
    ],
);

pub fn read_contacts(tables: &[TableReader], materials: &Names) -> Option<Vec<ContactPair>> {
    let pairs: Vec<_> = tables.iter().map(|table| read_contact(table, materials)).collect();
    let mut seen = BTreeSet::new();
    for (table, pair) in tables.iter().zip(&pairs) {
        if let Some(pair) = pair
            && !seen.insert(pair.materials)
        {
            let [first, second] = pair.materials.map(|index| &materials.list[index]);
            table.relation(
                "materials",
                format!("found {first:?} with {second:?} once more, expected each pair once"),
            );
        }
    }
    pairs.into_iter().collect()
}

fn read_contact(table: &TableReader, materials: &Names) -> Option<ContactPair> {
    let pair = materials.reference_pair(table, "materials");
    let friction = table.number("friction");
    let restitution = table.number("restitution");
    let activation = table.choice::<Activation>("law");
    if let (Some(restitution), Some(Activation::Predictive)) = (restitution, activation)
        && restitution > 0.0
    {
        let message = format!(
            "found {restitution} with the law \"predictive\", expected 0, or law = \"gap-activated\""
        );
        table.relation("restitution", message);
    }
    let stiffness = read_stiffness(table, restitution);
    // With a spring the gap law is the predictive one, with its sign.
    let activation = if stiffness.is_some() { Some(Activation::Predictive) } else { activation };
    let [first, second] = pair?;
    Some(ContactPair {
        materials: [first.min(second), first.max(second)],
        law: ContactLaw {
            friction: friction?,
            restitution: restitution?,
            activation: activation?,
            stiffness,
        },
    })
}

fn read_stiffness(table: &TableReader, restitution: Option<f64>) -> Option<Stiffness> {
    let given = |key: &str| table.entry(key).is_some();
    if !given("stiffness") && !given("young_modulus") {
        let keys = ["tangential_stiffness", "dissipation", "spring_at"];
        for key in keys.into_iter().filter(|key| given(key)) {
            table.relation(
                key,
                "found without a stiffness, expected stiffness or young_modulus beside it".into(),
            );
        }
        return None;
    }
    if given("stiffness") && given("young_modulus") {
        table.relation("young_modulus", "found beside stiffness, expected one of the two".into());
    }
    if restitution.is_some_and(|restitution| restitution > 0.0) {
        let message = "found with a stiffness, expected 0: bodies that give way rebound by their stiffness, less by dissipation";
        table.relation("restitution", message.into());
    }
    if table.entry("law").is_some() && table.choice::<Activation>("law") == Some(Activation::GapActivated) {
        table.relation(
            "law",
            "found \"gap-activated\" with a stiffness, expected \"predictive\" or nothing".into(),
        );
    }
    Some(Stiffness {
        normal: if given("stiffness") {
            Normal::Given(table.number("stiffness")?)
        } else {
            Normal::Modulus(table.number("young_modulus")?)
        },
        tangential_ratio: table.number("tangential_stiffness")?,
        dissipation: table.number("dissipation")?,
        spring_at: table.choice::<SpringAt>("spring_at")?,
    })
}
