//! Performance profiles [Dolan2002]: for each solver, the share of problems that it solves within a multiple
//! τ of the time of the best solver for that problem. Drawn as SVG, with the times beside it as CSV.

use super::Row;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 60.0;
/// Distinct for the colour-blind.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
const DASHES: [&str; 4] = ["", "8 4", "2 3", "10 3 2 3"];

/// For each solver the ratios of its times to the best, of the problems that it solves, ascending.
fn ratios(rows: &[Row]) -> (usize, Vec<(&'static str, Vec<f64>)>) {
    let mut best = BTreeMap::<&Path, f64>::new();
    let time = |row: &Row| {
        let solved = row.result.as_ref().ok().filter(|solved| solved.converged)?;
        // Below a microsecond the clock decides.
        Some(solved.seconds.max(1e-6))
    };
    for row in rows {
        let entry = best.entry(&row.file).or_insert(f64::INFINITY);
        *entry = entry.min(time(row).unwrap_or(f64::INFINITY));
    }
    let mut solvers: Vec<(&'static str, Vec<f64>)> = Vec::new();
    for row in rows {
        let known = solvers.iter().position(|(name, _)| *name == row.solver);
        let index = known.unwrap_or_else(|| {
            solvers.push((row.solver, Vec::new()));
            solvers.len() - 1
        });
        if let Some(time) = time(row) {
            solvers[index].1.push(time / best[row.file.as_path()]);
        }
    }
    for (_, list) in &mut solvers {
        list.sort_by(f64::total_cmp);
    }
    (best.len(), solvers)
}

pub fn write(path: &Path, rows: &[Row]) -> std::io::Result<()> {
    std::fs::write(path, drawing(rows))?;
    std::fs::write(path.with_extension("csv"), numbers(rows))
}

fn numbers(rows: &[Row]) -> String {
    let mut text = String::from("problem,solver,contacts,solved,error,sweeps,newton_steps,seconds\n");
    for row in rows {
        let Ok(solved) = &row.result else { continue };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\"{}\",{},{},{},{:e},{},{},{:e}",
            row.file.display().to_string().replace('"', "\"\""),
            row.solver,
            solved.contacts,
            solved.converged,
            solved.error,
            solved.sweeps,
            solved.newton_steps,
            solved.seconds
        );
    }
    text
}

fn drawing(rows: &[Row]) -> String {
    let (problems, solvers) = ratios(rows);
    let most = solvers.iter().flat_map(|(_, list)| list.last().copied()).fold(2.0, f64::max);
    let doublings = (most.log2() + 0.5).ceil();
    let x = |ratio: f64| LEFT + (WIDTH - LEFT - RIGHT) * ratio.log2() / doublings;
    let y = |share: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share);
    let (right, floor) = (x(doublings.exp2()), y(0.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for quarter in 0..=4 {
        let (share, at) = (25 * quarter, y(f64::from(quarter) / 4.0));
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{share} %</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
    let spacing = (doublings / 8.0).ceil().max(1.0) as usize;
    for power in (0..=doublings as usize).step_by(spacing) {
        let at = x((power as f64).exp2());
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{floor:.1}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"black\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            floor + 5.0,
            floor + 20.0,
            1u64 << power.min(60)
        );
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{LEFT},{TOP} {LEFT},{floor:.1} {right:.1},{floor:.1}\" fill=\"none\" stroke=\"black\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time over that of the best solver</text>\
         <text x=\"{LEFT}\" y=\"{:.1}\">share of {problems} problems solved</text>",
        0.5 * (LEFT + right),
        HEIGHT - 15.0,
        TOP - 12.0
    );
    for (index, (name, list)) in solvers.iter().enumerate() {
        let (colour, dashes) = (COLOURS[index % COLOURS.len()], DASHES[index % DASHES.len()]);
        let mut points = format!("{:.1},{floor:.1}", x(1.0));
        let mut share = 0.0;
        for (count, &ratio) in list.iter().enumerate() {
            let next = (count + 1) as f64 / problems.max(1) as f64;
            let _ = write!(points, " {:.1},{:.1} {:.1},{:.1}", x(ratio), y(share), x(ratio), y(next));
            share = next;
        }
        let _ = write!(points, " {right:.1},{:.1}", y(share));
        let label = TOP + 20.0 * (index as f64 + 1.0);
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <line x1=\"{:.1}\" y1=\"{label}\" x2=\"{:.1}\" y2=\"{label}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            right + 15.0,
            right + 45.0,
            right + 50.0,
            label + 4.0
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::super::Solved;
    use super::*;

    fn row(file: &str, solver: &'static str, seconds: f64, converged: bool) -> Row {
        let solved = Solved {
            form: "local",
            dimension: 3,
            contacts: 1,
            blocks: 1,
            converged,
            error: 0.0,
            sweeps: 1,
            newton_steps: 0,
            other_start: None,
            seconds,
            seconds_assembly: 0.0,
            nanoseconds_per_sweep_and_contact: None,
        };
        Row { file: file.into(), solver, result: Ok(solved) }
    }

    #[test]
    fn ratios_are_those_of_the_definition() {
        let rows = [
            row("a", "fast", 1.0, true),
            row("a", "slow", 4.0, true),
            row("b", "fast", 0.1, false),
            row("b", "slow", 3.0, true),
        ];
        let (problems, solvers) = ratios(&rows);
        assert_eq!(problems, 2);
        assert_eq!(solvers, vec![("fast", vec![1.0]), ("slow", vec![1.0, 4.0])]);
        let svg = drawing(&rows);
        assert_eq!(svg.matches("<polyline").count(), 3, "an axis and two solvers");
        assert!(numbers(&rows).lines().count() == 5);
    }
}
