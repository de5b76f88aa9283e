//! Formulas of a machine with every name resolved to the number that it stands for.

use super::variable::{MachineLaw, MachineVariable};
use crate::formula::Expression;
use crate::multibody::{Law, LawInput, Model, Multibody, PointRef};
use smallvec::SmallVec;

/// Where the value of a variable comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    Time,
    PhaseTime,
    Own,
    OwnRate,
    /// Entry of `q`.
    Position(usize),
    /// Entry of `v`.
    Velocity(usize),
    Point {
        point: PointRef,
        axis: usize,
        rate: bool,
    },
    Quantity(usize),
    /// A name that the model does not know, which reading has excluded: not a number.
    Unknown,
}

/// A formula of just the variables that it reads, and where they come from.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    expression: Expression,
    places: Vec<Place>,
}

impl Formula {
    pub fn new(expression: &Expression, model: &Model) -> Self {
        let expression = expression.compact();
        let places = expression.variables().iter().map(|name| place(name, model)).collect();
        Self { expression, places }
    }

    pub fn evaluate(&self, read: impl Fn(&Place) -> f64) -> f64 {
        let values: SmallVec<[f64; 8]> = self.places.iter().map(read).collect();
        self.expression.evaluate(&values)
    }
}

fn place(name: &str, model: &Model) -> Place {
    let column = |coordinate: &str| model.coordinate(coordinate);
    let found = match MachineVariable::named(name) {
        MachineVariable::Time => Some(Place::Time),
        MachineVariable::PhaseTime => Some(Place::PhaseTime),
        MachineVariable::Own => Some(Place::Own),
        MachineVariable::OwnRate => Some(Place::OwnRate),
        MachineVariable::Position(coordinate) => {
            column(coordinate).and_then(|column| model.position_index(column)).map(Place::Position)
        }
        MachineVariable::Velocity(coordinate) => column(coordinate).map(Place::Velocity),
        MachineVariable::Point { point, axis, rate } => {
            model.point(point).map(|point| Place::Point { point, axis, rate })
        }
        MachineVariable::Quantity(quantity) => model.quantity(quantity).map(Place::Quantity),
    };
    found.unwrap_or(Place::Unknown)
}

/// A law of the machine room; `phase` gives where the phase and its start stand among the quantities.
pub(crate) fn law(law: &MachineLaw, model: &Model, phase: [usize; 2]) -> Law {
    if let [only] = &law.0[..]
        && let Some(value) = only.as_constant()
    {
        return Law::Constant(value);
    }
    let formulas: Vec<Formula> = law.0.iter().map(|formula| Formula::new(formula, model)).collect();
    Law::function(move |input| {
        let index = if formulas.len() == 1 { 0 } else { input.quantities[phase[0]] as usize };
        let read = |place: &Place| law_value(place, input, phase[1]);
        formulas.get(index).map_or(f64::NAN, |formula| formula.evaluate(read))
    })
}

fn law_value(place: &Place, input: &LawInput, phase_start: usize) -> f64 {
    match *place {
        Place::Time => input.time,
        Place::PhaseTime => input.time - input.quantities[phase_start],
        Place::Own => input.value,
        Place::OwnRate => input.rate,
        Place::Position(index) => input.positions[index],
        Place::Velocity(index) => input.velocities[index],
        Place::Quantity(index) => input.quantities[index],
        Place::Point { .. } | Place::Unknown => f64::NAN,
    }
}

/// What a formula that is evaluated once per step reads: the machine as it stands, and the values of
/// quantities.
pub(crate) fn machine_value(
    place: &Place,
    machine: &Multibody,
    time: f64,
    phase_start: f64,
    quantities: &[f64],
) -> f64 {
    match *place {
        Place::Time => time,
        Place::PhaseTime => time - phase_start,
        Place::Position(index) => machine.coordinates().q[index],
        Place::Velocity(index) => machine.coordinates().v[index],
        Place::Quantity(index) => quantities[index],
        Place::Point { point, axis, rate } => {
            let world = machine.data().world_point(&point);
            match (rate, point.body) {
                (false, _) => world[axis],
                (true, Some(body)) => machine.body_twist(body, &world).linear[axis],
                (true, None) => 0.0,
            }
        }
        Place::Own | Place::OwnRate | Place::Unknown => f64::NAN,
    }
}
