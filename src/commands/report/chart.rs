//! Which plots a run's tables make: known columns first, then whatever else is there, grouped by the
//! beginnings of its names.

use crate::commands::inspect::text_table::TextTable;
use crate::commands::run::ForceError;

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    /// As long as the chart's `x`.
    pub y: Vec<f64>,
}

/// Where in the page a chart stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Always open.
    Main,
    Forces,
    Machines,
    /// Folded at the end.
    More,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// For file names and anchors.
    pub id: String,
    pub title: String,
    /// One sentence on what is shown.
    pub note: String,
    pub unit: String,
    pub x_name: String,
    pub log: bool,
    pub x: Vec<f64>,
    pub lines: Vec<Line>,
    /// A level to compare with, and what it is.
    pub level: Option<(f64, String)>,
    /// How far the lines may be from the truth, up and down; 0 if nobody has asked.
    pub band: f64,
    pub place: Place,
}

impl Chart {
    pub fn new(title: &str, unit: &str, x: &[f64], lines: Vec<Line>) -> Self {
        Self {
            id: slug(title),
            title: title.into(),
            note: String::new(),
            unit: unit.into(),
            x_name: "time (s)".into(),
            log: false,
            x: x.to_vec(),
            lines,
            level: None,
            band: 0.0,
            place: Place::Main,
        }
    }

    /// Gives small and large numbers a unit in which they read well.
    fn scaled(mut self) -> Self {
        let largest = self
            .lines
            .iter()
            .flat_map(|line| &line.y)
            .filter(|y| y.is_finite())
            .fold(0.0f64, |a, y| a.max(y.abs()));
        let steps = [
            (1e-6, "n", 1e9),
            (1e-3, "µ", 1e6),
            (1.0, "m", 1e3),
            (2e4, "", 1.0),
            (2e7, "k", 1e-3),
            (f64::MAX, "M", 1e-6),
        ];
        let prefixed = ["m", "J", "N"].contains(&self.unit.as_str());
        if let Some((_, prefix, factor)) =
            steps.iter().find(|(below, ..)| largest < *below).filter(|_| prefixed && largest > 0.0)
        {
            self.unit = format!("{prefix}{}", self.unit);
            self.lines.iter_mut().flat_map(|line| &mut line.y).for_each(|y| *y *= factor);
            self.band *= factor;
            if let Some((level, _)) = &mut self.level {
                *level *= factor;
            }
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        self.x.is_empty() || self.lines.iter().all(|line| line.y.iter().all(|y| !y.is_finite()))
    }
}

/// Letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    let kept: String =
        text.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    kept.split('-').filter(|word| !word.is_empty()).collect::<Vec<&str>>().join("-")
}

fn line(name: &str, y: &[f64]) -> Line {
    Line { name: name.into(), y: y.to_vec() }
}

/// Charts of `series.csv`. `tolerance` is the solver's, if known, `errors` are those of forces that were
/// checked.
pub fn of_series(table: &TextTable, tolerance: Option<f64>, errors: &[ForceError]) -> Vec<Chart> {
    let Some(time) = table.column("time") else { return Vec::new() };
    let mut used = vec!["step", "time", "converged", "manifolds"];
    let mut charts = Vec::new();
    let mut single = |column: &'static str, chart: fn(&[f64], &[f64]) -> Chart| {
        used.push(column);
        charts.extend(table.column(column).map(|y| chart(time, y)));
    };
    single("kinetic_energy", |time, y| {
        let mut chart = Chart::new("Kinetic energy", "J", time, vec![line("kinetic", y)]);
        (chart.log, chart.note) =
            (true, "How much the bodies move; on a logarithmic scale rest shows as a fall.".into());
        chart
    });
    single("contact_points", |time, y| {
        let mut chart = Chart::new("Contacts", "", time, vec![line("contact points", y)]);
        chart.note = "Points in which bodies touch or are about to.".into();
        chart
    });
    single("sweeps", |time, y| {
        let mut chart = Chart::new("Sweeps per step", "", time, vec![line("sweeps", y)]);
        chart.note = "Gauss–Seidel sweeps until the residual met the tolerance.".into();
        chart
    });
    single("residual", |time, y| {
        let mut chart = Chart::new("Residual", "", time, vec![line("natural-map error", y)]);
        (chart.log, chart.note) = (true, "Natural-map error at the end of each step.".into());
        chart
    });
    single("worst_penetration", |time, y| {
        let mut chart = Chart::new("Deepest penetration", "m", time, vec![line("depth", y)]).scaled();
        chart.note = "The deepest overlap of two bodies found in a step.".into();
        chart
    });
    used.push("potential_energy");
    charts.extend(energy(table, time));
    if let (Some(chart), Some(tolerance)) =
        (charts.iter_mut().find(|chart| chart.title == "Residual"), tolerance)
    {
        chart.level = Some((tolerance, "tolerance".into()));
    }
    charts.sort_by_key(|chart| {
        let order = [
            "Energy balance",
            "Kinetic energy",
            "Contacts",
            "Deepest penetration",
            "Sweeps per step",
            "Residual",
        ];
        order.iter().position(|title| *title == chart.title)
    });
    charts.extend(regions(table, time));
    charts.extend(forces(table, time, errors));
    let shown =
        |name: &str| used.contains(&name) || name.starts_with("force/") || name.starts_with("region/");
    charts.extend(others(table, time, "", shown));
    charts
}

/// Kinetic and potential energy and their sum, from the lowest potential on.
fn energy(table: &TextTable, time: &[f64]) -> Option<Chart> {
    let (kinetic, potential) = (table.column("kinetic_energy")?, table.column("potential_energy")?);
    let lowest = potential.iter().copied().filter(|y| y.is_finite()).fold(f64::INFINITY, f64::min);
    let potential: Vec<f64> = potential.iter().map(|y| y - lowest).collect();
    let total: Vec<f64> = kinetic.iter().zip(&potential).map(|(a, b)| a + b).collect();
    let lines = vec![line("kinetic", kinetic), line("potential", &potential), line("sum", &total)];
    let mut chart = Chart::new("Energy balance", "J", time, lines).scaled();
    chart.note = "Potential energy counts from its lowest value. The sum falls by friction and impacts; tools and moving walls add to it.".into();
    Some(chart)
}

/// `region/NAME.WHAT`: one chart for solid fractions and one for coordination numbers.
fn regions(table: &TextTable, time: &[f64]) -> Vec<Chart> {
    let kinds = [
        ("solid_fraction", "Solid fraction", "Volume of grains by volume of the region."),
        ("coordination", "Coordination number", "Bodies that press on a grain, on average over the region."),
    ];
    let mut charts = Vec::new();
    for (what, title, note) in kinds {
        let named = table.names.iter().zip(&table.columns).filter_map(|(name, y)| {
            let region = name.strip_prefix("region/")?.strip_suffix(what)?.strip_suffix('.')?;
            Some(line(region, y))
        });
        let lines: Vec<Line> = named.collect();
        if !lines.is_empty() {
            let mut chart = Chart::new(title, "", time, lines);
            chart.note = note.into();
            charts.push(chart);
        }
    }
    charts
}

/// `force/NAME/{x,y,z}`: the magnitudes of all in one chart, and one chart for each.
fn forces(table: &TextTable, time: &[f64], errors: &[ForceError]) -> Vec<Chart> {
    let named = table.names.iter().filter_map(|name| name.strip_prefix("force/")?.strip_suffix("/x"));
    let mut magnitudes = Vec::new();
    let mut charts = Vec::new();
    for name in named {
        let part = |axis: &str| table.column(&format!("force/{name}/{axis}")).map(<[f64]>::to_vec);
        let (Some(x), Some(y), Some(z)) = (part("x"), part("y"), part("z")) else { continue };
        let length = |k: usize| (x[k] * x[k] + y[k] * y[k] + z[k] * z[k]).sqrt();
        magnitudes.push(Line { name: name.into(), y: (0..time.len()).map(length).collect() });
        let lines = [("x", x), ("y", y), ("z", z)].map(|(axis, y)| Line { name: axis.into(), y }).to_vec();
        let mut chart = Chart::new(&format!("Force on {name}"), "N", time, lines);
        if let Some(error) = errors.iter().find(|error| error.name.strip_prefix("force/") == Some(name)) {
            chart.band = error.step_error;
            chart.note = format!(
                "The band: by {} steps that were solved again to high accuracy, 95 % of all lie within it.",
                error.checks
            );
        }
        let mut chart = chart.scaled();
        chart.place = Place::Forces;
        charts.push(chart);
    }
    // The heaviest loaded first, and no more than can be distinguished.
    let peak = |line: &Line| line.y.iter().copied().filter(|y| y.is_finite()).fold(0.0, f64::max);
    magnitudes.sort_by(|a, b| peak(b).total_cmp(&peak(a)));
    let all = magnitudes.len();
    magnitudes.truncate(8);
    if !magnitudes.is_empty() {
        let mut chart = Chart::new("Force on walls and tools", "N", time, magnitudes).scaled();
        chart.note = match all > 8 {
            true => format!("Magnitude of the mean contact force over a step; the 8 most loaded of {all}."),
            false => "Magnitude of the mean contact force over a step.".into(),
        };
        charts.insert(0, chart);
    }
    charts
}

/// Charts of a table beside the series, such as `machines.csv`.
pub fn of_table(file: &str, table: &TextTable) -> Vec<Chart> {
    let Some(time) = table.column("time") else { return Vec::new() };
    if file != "machines" {
        return others(table, time, file, |name| name == "step" || name == "time");
    }
    super::machine_charts::of_machines(table, time)
}

/// Every column that is left, grouped by what stands before the last `/` or the first `.`.
fn others(table: &TextTable, time: &[f64], file: &str, known: impl Fn(&str) -> bool) -> Vec<Chart> {
    let mut groups: Vec<(String, Vec<Line>)> = Vec::new();
    for (name, y) in table.names.iter().zip(&table.columns).filter(|(name, _)| !known(name)) {
        let cut = name.rsplit_once('/').or(name.split_once('.'));
        let (group, own) = cut.unwrap_or((name, name));
        match groups.iter_mut().find(|(known, _)| known == group) {
            Some((_, lines)) => lines.push(line(own, y)),
            None => groups.push((group.into(), vec![line(own, y)])),
        }
    }
    let mut charts = Vec::new();
    for (name, lines) in groups {
        for (k, some) in lines.chunks(8).enumerate() {
            let number = if k == 0 { String::new() } else { format!(" ({})", k + 1) };
            let words = name.replace(['_', '/'], " ");
            let title =
                if file.is_empty() { format!("{words}{number}") } else { format!("{file}: {words}{number}") };
            let mut chart = Chart::new(&capital(&title), "", time, some.to_vec());
            chart.place = Place::More;
            charts.push(chart);
        }
    }
    charts
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// The grading curve that stones have come to, beside the wanted one.
pub fn of_grading(grains: &str, sieves: &[f64], passing: &[f64], wanted: &[f64]) -> Chart {
    let millimetres: Vec<f64> = sieves.iter().map(|sieve| 1e3 * sieve).collect();
    let lines = vec![line("achieved", passing), line("wanted", wanted)];
    let mut chart = Chart::new(&format!("Grading of {grains}"), "% by mass", &millimetres, lines);
    chart.x_name = "sieve (mm)".into();
    chart.note = "Share of the mass that passes each sieve.".into();
    chart
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> TextTable {
        TextTable::parse(text).unwrap()
    }

    #[test]
    fn every_column_of_a_series_is_in_some_chart() {
        let text = "step,time,contact_points,sweeps,converged,residual,worst_penetration,kinetic_energy,potential_energy,momentum/x,momentum/y,\
                    force/a wall/x,force/a wall/y,force/a wall/z,strange\n1,0.1,3,4,1,1e-4,2e-5,1,-5,1,2,3,4,12,7\n2,0.2,3,4,1,1e-4,2e-5,2,-9,1,2,0,0,0,7\n";
        let charts = of_series(&table(text), Some(1e-3), &[]);
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        let expected = [
            "Energy balance",
            "Kinetic energy",
            "Contacts",
            "Deepest penetration",
            "Sweeps per step",
            "Residual",
            "Force on walls and tools",
            "Force on a wall",
            "Worst velocity error",
            "Momentum",
            "Strange",
        ];
        let expected: Vec<&str> =
            expected.into_iter().filter(|title| *title != "Worst velocity error").collect();
        assert_eq!(titles, expected);
        assert_eq!(charts[0].lines[1].y, [4.0, 0.0]);
        assert_eq!(charts[3].unit, "µm");
        assert!((charts[3].lines[0].y[0] - 20.0).abs() < 1e-9);
        assert_eq!(charts[5].level, Some((1e-3, "tolerance".into())));
        assert_eq!(charts[6].lines[0].y, [13.0, 0.0]);
        assert_eq!(charts[7].id, "force-on-a-wall");
        assert!(of_series(&table("a,b\n1,2\n"), None, &[]).is_empty());
    }

    #[test]
    fn other_tables_are_grouped_by_the_beginnings_of_names() {
        let other = of_table("probes", &table("time,probe.a,probe.b,depth\n0,1,2,3\n"));
        let found: Vec<(&str, usize)> =
            other.iter().map(|chart| (chart.title.as_str(), chart.lines.len())).collect();
        assert_eq!(found, [("Probes: probe", 2), ("Probes: depth", 1)]);
        assert!(of_table("probes", &table("a,b\n0,1\n")).is_empty());
    }
}
