//! The columns of `machines.csv`: coordinates, forces, quantities and phase of each machine, and what its
//! joints, cuts and contacts carry. Forces are means over the step before the row.

use super::Value::{Integer, Real, Vector};
use super::{At, Entry, Group, Layout, entry, numbered, single};
use crate::multibody::{BodyIndex, Model};

pub(super) static COMMON: [Group; 1] = [single(&[
    entry("step", "", "steps made", Integer(|now, _| now.report.step)),
    entry("time", "s", "at the end of the step", Real(|now, _| now.report.time)),
])];

fn model<'a>(layout: &Layout<'a>, at: At) -> &'a Model {
    layout.machine(at).multibody.model()
}

/// Of every machine, under its name.
pub(super) static EACH: [Group; 8] = [
    Group {
        members: |layout, at| {
            let model = model(layout, at);
            numbered((0..model.nv()).map(|column| model.coordinate_name(column)))
        },
        entries: &[
            Entry {
                // A quaternion has none of its own.
                applies: |layout, at| model(layout, at).position_index(at.member).is_some(),
                ..entry(
                    "NAME",
                    "m or rad",
                    "each coordinate of a joint",
                    Real(|now, at| {
                        let multibody = &now.machine(at).multibody;
                        let position = multibody.model().position_index(at.member);
                        position.map_or(f64::NAN, |position| multibody.coordinates().q[position])
                    }),
                )
            },
            entry(
                "NAME.velocity",
                "m/s or rad/s",
                "its velocity",
                Real(|now, at| now.machine(at).multibody.coordinates().v[at.member]),
            ),
        ],
    },
    Group {
        members: |layout, at| numbered(model(layout, at).force_names()),
        entries: &[entry(
            "force.NAME",
            "N or N m",
            "of each force element",
            Real(|now, at| now.machine(at).multibody.force_values()[at.member]),
        )],
    },
    Group {
        members: |layout, at| numbered(model(layout, at).force_names()),
        entries: &[entry(
            "power.NAME",
            "W",
            "that it puts in; negative where it takes up",
            Real(|now, at| now.loads(at).powers[at.member]),
        )],
    },
    Group {
        members: |layout, at| numbered(layout.machine(at).controller.quantities().map(|(name, _)| name)),
        entries: &[entry(
            "quantity.NAME",
            "as defined",
            "each quantity and kept value of the controller",
            Real(|now, at| {
                let mut quantities = now.machine(at).controller.quantities();
                quantities.nth(at.member).map_or(f64::NAN, |(_, value)| value)
            }),
        )],
    },
    single(&[
        entry(
            "phase",
            "",
            "number of the phase, from 0",
            Integer(|now, at| now.machine(at).controller.state().phase as u64),
        ),
        entry("kinetic_energy", "J", "of its bodies", Real(|now, at| now.loads(at).energies[0])),
        entry("potential_energy", "J", "of their weight", Real(|now, at| now.loads(at).energies[1])),
        entry("spring_energy", "J", "of its springs", Real(|now, at| now.loads(at).energies[2])),
        entry(
            "closure_error",
            "m or rad",
            "largest error of its loops",
            Real(|now, at| {
                let closure = now.machine(at).multibody.closure();
                closure.error.max(closure.redundant_error)
            }),
        ),
    ]),
    Group {
        members: |layout, at| {
            let model = model(layout, at);
            let rows = |cut: &'_ str| {
                let rows = model.cut_rows(cut).unwrap_or_default();
                rows.enumerate().map(|(number, row)| (format!("{cut}.{number}"), row)).collect::<Vec<_>>()
            };
            model.cut_names().flat_map(rows).collect()
        },
        entries: &[entry(
            "cut.NAME",
            "N or N m",
            "what each equation of a cut carries, as CUT.ROW",
            Real(|now, at| now.loads(at).cuts[at.member]),
        )],
    },
    Group {
        members: |layout, at| {
            let model = model(layout, at);
            numbered((0..model.body_count()).map(|body| model.joint_name(BodyIndex(body))))
        },
        entries: &[
            entry(
                "joint.NAME.force",
                "N",
                "of each joint on its body, world axes",
                Vector(|now, at| now.loads(at).joints[at.member][0]),
            ),
            entry(
                "joint.NAME.moment",
                "N m",
                "about the joint, world axes",
                Vector(|now, at| now.loads(at).joints[at.member][1]),
            ),
        ],
    },
    Group {
        members: |layout, at| {
            let model = model(layout, at);
            numbered(layout.machine(at).contact_shapes().map(|shape| model.body_name(shape.body)))
        },
        entries: &[
            entry(
                "contact.NAME.force",
                "N",
                "of contacts on each body, world axes",
                Vector(|now, at| now.loads(at).contacts[at.member][0]),
            ),
            entry(
                "contact.NAME.moment",
                "N m",
                "about the origin of the body's frame, world axes",
                Vector(|now, at| now.loads(at).contacts[at.member][1]),
            ),
        ],
    },
];
