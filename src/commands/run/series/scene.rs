//! The columns of `series.csv`: the solve of each step, energies and momenta, forces on walls and tools,
//! watched regions.

use super::Value::{Integer, Real, Vector};
use super::{Group, entry, numbered, single};

pub(super) static GROUPS: [Group; 3] = [
    single(&[
        entry("step", "", "steps made", Integer(|now, _| now.report.step)),
        entry("time", "s", "at the end of the step", Real(|now, _| now.report.time)),
        entry("manifolds", "", "pairs of bodies in contact", Integer(|now, _| now.report.manifolds)),
        entry("contact_points", "", "of all pairs", Integer(|now, _| now.report.contact_points)),
        entry("sweeps", "", "that the solve took", Integer(|now, _| now.report.sweeps as u64)),
        entry(
            "converged",
            "",
            "1 if it met the tolerance, 0 otherwise",
            Integer(|now, _| u64::from(now.report.converged)),
        ),
        entry(
            "residual",
            "",
            "natural map, in the measure of the case",
            Real(|now, _| now.report.residual.natural_map),
        ),
        entry(
            "worst_velocity_error",
            "m/s",
            "largest violation of the contact law at a point",
            Real(|now, _| now.report.residual.worst_velocity),
        ),
        entry(
            "worst_approach",
            "m/s",
            "fastest approach at a closed point, beyond what its law lets pass",
            Real(|now, _| now.report.residual.worst_approach),
        ),
        entry(
            "unbalanced_force",
            "",
            "mean of mass times acceleration of free bodies, by the mean force between two bodies in contact; 1 if none press on each other",
            Real(|now, _| now.observed.unbalanced),
        ),
        entry("worst_penetration", "m", "deepest overlap", Real(|now, _| now.report.worst_penetration)),
        entry(
            "worst_overlap_share",
            "",
            "deepest overlap where contacts were found, by the size of the smaller body",
            Real(|now, _| now.report.overlap.share),
        ),
        entry("kinetic_energy", "J", "of all free bodies", Real(|now, _| now.observed.kinetic_energy)),
        entry(
            "potential_energy",
            "J",
            "of their weight, zero at the origin",
            Real(|now, _| now.observed.potential_energy),
        ),
        entry("machine_kinetic_energy", "J", "of all machines", Real(|now, _| now.observed.machines[0])),
        entry(
            "machine_potential_energy",
            "J",
            "of their weight, zero at the origin",
            Real(|now, _| now.observed.machines[1]),
        ),
        entry("spring_energy", "J", "of the springs of machines", Real(|now, _| now.observed.machines[2])),
        entry(
            "contact_energy",
            "J",
            "of the springs of contacts, where contacts were found",
            Real(|now, _| now.observed.contact_energy),
        ),
        entry(
            "work_of_motions",
            "J",
            "of prescribed joints, kinematic bodies and gravity that changes in time, since the start",
            Real(|now, _| now.observed.work[0]),
        ),
        entry(
            "work_of_forces",
            "J",
            "of actuators, dampers and other forces of machines, since the start; what springs store is left out",
            Real(|now, _| now.observed.work[1]),
        ),
        entry(
            "work_of_corrections",
            "J",
            "of grains and machines that corrections of overlap have lifted, and of springs that they stretched, since the start",
            Real(|now, _| now.observed.work[2]),
        ),
        entry(
            "energy_balance",
            "J",
            "all energy less that of the start and the work since: what contacts have taken up is negative",
            Real(|now, _| now.observed.balance),
        ),
        entry("momentum", "kg m/s", "of all free bodies", Vector(|now, _| now.observed.momentum)),
        entry(
            "angular_momentum",
            "kg m²/s",
            "about the origin",
            Vector(|now, _| now.observed.angular_momentum),
        ),
    ]),
    Group {
        members: |layout, _| {
            let statics = &layout.scene.state.statics;
            numbered(statics.iter().map(|body| layout.scene.model.groups[body.group as usize].as_str()))
        },
        entries: &[entry(
            "force/NAME",
            "N",
            "of contacts on each fixed or kinematic body, mean over the step",
            Vector(|now, at| now.observed.forces[at.member]),
        )],
    },
    Group {
        members: |layout, _| numbered(layout.case.regions.iter().map(|region| region.name.as_str())),
        entries: &[
            entry(
                "region/NAME.solid_fraction",
                "",
                "volume of grains by volume of the region",
                Real(|now, at| now.observed.regions[at.member].solid_fraction),
            ),
            entry(
                "region/NAME.coordination",
                "",
                "bodies that press on a grain, mean over its grains",
                Real(|now, at| now.observed.regions[at.member].coordination),
            ),
            entry(
                "region/NAME.grains",
                "",
                "grains whose centres are in the region",
                Integer(|now, at| now.observed.regions[at.member].grains),
            ),
        ],
    },
];
