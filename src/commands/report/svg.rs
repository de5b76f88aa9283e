//! Line plots as SVG: axes with round numbers, linear or logarithmic, long series thinned without losing a
//! peak.

use super::chart::Chart;
use crate::commands::inspect::vtu::escaped;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The whole drawing, and the rectangle of the plot in it: left, top, width, height.
pub const SIZE: [f64; 2] = [640.0, 240.0];
pub const PLOT: [f64; 4] = [58.0, 12.0, 570.0, 190.0];
/// Buckets along x; each keeps its lowest and its highest value.
const BUCKETS: usize = 570;

/// What an axis spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub log: bool,
}

impl Axis {
    /// Around some values; a logarithmic axis covers those above zero only.
    pub fn around(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let fits = |value: &f64| value.is_finite() && (!log || *value > 0.0);
        let (low, high) =
            values.filter(fits).fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            return Self { low: if log { 0.1 } else { 0.0 }, high: 1.0, log };
        }
        if log {
            // Whole decades, no more than 14: what lies below is rest.
            let top = high.log10().ceil().max(-300.0);
            let bottom = low.log10().floor().max(top - 14.0).min(top - 1.0);
            return Self { low: 10f64.powf(bottom), high: 10f64.powf(top), log };
        }
        let room = if high > low { 0.04 * (high - low) } else { 0.5 * high.abs().max(1e-12) };
        // Zero is a better end than a number close to it.
        let low = if low >= 0.0 && low < 0.4 * high { 0.0 } else { low - room };
        Self { low, high: high + room, log }
    }

    /// 0 at the low end, 1 at the high one; none if the value has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = match self.log {
            true if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            true => return None,
            false => (value - self.low) / (self.high - self.low),
        };
        place.is_finite().then_some(place)
    }

    /// Round numbers inside, at most about `most`.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        if self.log {
            let (first, last) = (self.low.log10().round() as i32, self.high.log10().round() as i32);
            let stride = ((last - first) as usize).div_ceil(most.max(1)).max(1);
            return (first..=last).rev().step_by(stride).map(|power| 10f64.powi(power)).collect();
        }
        let rough = (self.high - self.low) / most.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * power)
            .into_iter()
            .find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last.min(first + 50)).map(|k| k as f64 * step).collect()
    }
}

/// A number as an axis or a hover shows it.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e5).contains(&size) {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return if digits == "1" { format!("1e{power}") } else { format!("{digits}e{power}") };
    }
    let decimals = (4 - size.log10().floor() as i32).clamp(0, 7) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Indices of the points that a plot needs: of each bucket the first, lowest, highest and last.
fn thinned(y: &[f64]) -> Vec<usize> {
    if y.len() <= 3 * BUCKETS {
        return (0..y.len()).collect();
    }
    let mut kept = Vec::new();
    for bucket in 0..BUCKETS {
        let range = bucket * y.len() / BUCKETS..(bucket + 1) * y.len() / BUCKETS;
        let by = |a: &usize, b: &usize| y[*a].total_cmp(&y[*b]);
        let finite = || range.clone().filter(|&k| y[k].is_finite());
        let mut own = vec![range.start];
        own.extend(finite().min_by(by));
        own.extend(finite().max_by(by));
        own.sort_unstable();
        kept.extend(own);
    }
    kept.push(y.len() - 1);
    kept.dedup();
    kept
}

/// The axes of a chart.
fn axes(chart: &Chart) -> (Axis, Axis) {
    let mut x = Axis::around(chart.x.iter().copied(), false);
    let ends = chart.x.iter().copied().filter(|value| value.is_finite());
    let (low, high) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if high > low {
        let low = if low > 0.0 && low < 0.05 * high { 0.0 } else { low };
        x = Axis { low, high, log: false };
    }
    let level = chart.level.iter().map(|(level, _)| *level);
    let y = Axis::around(chart.lines.iter().flat_map(|line| line.y.iter().copied()).chain(level), chart.log);
    (x, y)
}

/// The drawing, and what the page needs to answer where the pointer is.
pub fn plot(chart: &Chart) -> (String, Value) {
    let (x, y) = axes(chart);
    let [left, top, width, height] = PLOT;
    let across = |value: f64| x.place(value).map(|place| left + place * width);
    let upward = |value: f64| y.place(value).map(|place| top + (1.0 - place.clamp(-0.5, 1.5)) * height);
    let mut text = String::new();
    // Writing to a String cannot fail.
    for tick in y.ticks(5) {
        if let Some(at) = upward(tick) {
            let label = if chart.log { decade(tick) } else { number(tick) };
            let _ = write!(
                text,
                "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left + width,
                left - 7.0,
                at + 4.0
            );
        }
    }
    for tick in x.ticks(8) {
        if let Some(at) = across(tick) {
            let _ = write!(
                text,
                "<text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                top + height + 17.0,
                number(tick)
            );
        }
    }
    let _ = write!(
        text,
        "<line class=\"axis\" x1=\"{left}\" x2=\"{}\" y1=\"{1}\" y2=\"{1}\"/>\
         <text class=\"tick\" x=\"{0}\" y=\"{2}\" text-anchor=\"end\">{3}</text>",
        left + width,
        top + height,
        top + height + 33.0,
        escaped(&chart.x_name)
    );
    if let Some((at, (level, name))) =
        chart.level.as_ref().and_then(|level| upward(level.0).map(|at| (at, level)))
    {
        let _ = write!(
            text,
            "<line class=\"level\" x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{0}\" y=\"{:.1}\" text-anchor=\"end\">{} {}</text>",
            left + width,
            at - 5.0,
            escaped(name),
            number(*level)
        );
    }
    let lines = draw_lines(chart, &across, &upward, &mut text);
    let data = json!({
        "x": [x.low, x.high], "y": [y.low, y.high], "log": y.log, "unit": chart.unit, "xname": chart.x_name, "lines": lines,
    });
    (text, data)
}

/// Lines with their bands; the numbers behind them.
fn draw_lines(
    chart: &Chart,
    across: &dyn Fn(f64) -> Option<f64>,
    upward: &dyn Fn(f64) -> Option<f64>,
    text: &mut String,
) -> Vec<Value> {
    let mut lines = Vec::new();
    for (k, line) in chart.lines.iter().enumerate() {
        let kept = thinned(&line.y);
        if chart.band > 0.0 {
            let edge = band(chart, &line.y, &kept, across, upward);
            let _ = write!(text, "<polygon class=\"band l{}\" points=\"{edge}\"/>", k % 8);
        }
        let _ = write!(
            text,
            "<path class=\"line l{}\" d=\"{}\"/>",
            k % 8,
            path(chart, &line.y, &kept, across, upward)
        );
        let rounded = |value: f64| {
            if value.is_finite() {
                json!(format!("{value:.5e}").parse().unwrap_or(value))
            } else {
                Value::Null
            }
        };
        lines.push(json!({
            "name": line.name,
            "x": kept.iter().map(|&k| rounded(chart.x[k])).collect::<Vec<Value>>(),
            "y": kept.iter().map(|&k| rounded(line.y[k])).collect::<Vec<Value>>(),
        }));
    }
    lines
}

fn decade(value: f64) -> String {
    let power = value.log10().round() as i32;
    match power {
        -2..=3 => number(value),
        _ => format!("10<tspan dy=\"-5\" font-size=\"8\">{power}</tspan>"),
    }
}

/// There along the upper edge of a line's band and back along the lower one.
fn band(
    chart: &Chart,
    y: &[f64],
    kept: &[usize],
    across: &dyn Fn(f64) -> Option<f64>,
    upward: &dyn Fn(f64) -> Option<f64>,
) -> String {
    let point = |k: usize, by: f64| {
        let (x, y) = (across(chart.x[k])?, upward(y[k] + by)?);
        Some(format!("{x:.1},{y:.1}"))
    };
    let there = kept.iter().filter_map(|&k| point(k, chart.band));
    let back = kept.iter().rev().filter_map(|&k| point(k, -chart.band));
    there.chain(back).collect::<Vec<String>>().join(" ")
}

fn path(
    chart: &Chart,
    y: &[f64],
    kept: &[usize],
    across: &dyn Fn(f64) -> Option<f64>,
    upward: &dyn Fn(f64) -> Option<f64>,
) -> String {
    let mut text = String::new();
    let mut down = false;
    for &k in kept {
        match (across(chart.x[k]), upward(y[k])) {
            (Some(x), Some(y)) => {
                let _ = write!(text, "{}{x:.1} {y:.1}", if down { "L" } else { "M" });
                down = true;
            }
            // A gap in the numbers is a gap in the line.
            _ => down = false,
        }
    }
    // A single point shows as a dot: the ends of lines are round.
    if kept.len() == 1 && down {
        text.push_str("h0.01");
    }
    text
}

/// A whole file with its own title, legend and colours.
pub fn file(chart: &Chart) -> String {
    let (drawing, _) = plot(chart);
    let [width, height] = SIZE;
    let unit = if chart.unit.is_empty() { String::new() } else { format!(" ({})", chart.unit) };
    let mut legend = String::new();
    let mut at = PLOT[0];
    for (k, line) in chart.lines.iter().enumerate().filter(|_| chart.lines.len() > 1) {
        let _ = write!(
            legend,
            "<path class=\"line l{}\" d=\"M{at} -12h14\"/><text class=\"tick\" x=\"{}\" y=\"-8\">{}</text>",
            k % 8,
            at + 18.0,
            escaped(&line.name)
        );
        at += 34.0 + 6.5 * line.name.chars().count() as f64;
    }
    let (tall, title) = (height + 52.0, escaped(&chart.title));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -52 {width} {tall}\" width=\"{width}\" height=\"{tall}\" \
         role=\"img\" aria-label=\"{title}\"><style>{STYLE}</style>\
         <rect class=\"paper\" x=\"0\" y=\"-52\" width=\"{width}\" height=\"{tall}\"/>\
         <text class=\"title\" x=\"{}\" y=\"-30\">{title}{}</text>{legend}{drawing}</svg>\n",
        PLOT[0],
        escaped(&unit)
    )
}

const STYLE: &str = ".paper{fill:#fff}text{font-family:system-ui,sans-serif}.title{font-size:15px;font-weight:600;fill:#222}\
.tick{font-size:11px;fill:#666}.grid{stroke:#e6e4df}.axis{stroke:#999}.level{stroke:#888;stroke-dasharray:5 4}\
.band{fill-opacity:.18;stroke:none!important}.band.l0{fill:#2a6fb0}.band.l1{fill:#d0682a}.band.l2{fill:#3b8a5a}\
.line{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}.l0{stroke:#2a6fb0}.l1{stroke:#d0682a}.l2{stroke:#3b8a5a}.l3{stroke:#a5437c}\
.l4{stroke:#7565b0}.l5{stroke:#8b7d2f}.l6{stroke:#3596a5}.l7{stroke:#b0443a}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::report::chart::{Line, Place};

    fn chart(x: Vec<f64>, y: Vec<f64>, log: bool) -> Chart {
        Chart {
            id: "a".into(),
            title: "A & B".into(),
            note: String::new(),
            unit: "m".into(),
            x_name: "time (s)".into(),
            log,
            x,
            lines: vec![Line { name: "y".into(), y }],
            level: None,
            band: 0.0,
            place: Place::Main,
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis { low: 0.0, high: 1.5, log: false };
        assert_eq!(axis.ticks(5), [0.0, 0.5, 1.0, 1.5]);
        let axis = Axis { low: 1e-9, high: 1e2, log: true };
        assert_eq!(axis.ticks(5).len(), 4);
        for (low, high) in [(-3.7, 12.9), (1e-9, 2e-9), (-1e12, 1e12), (5.0, 5.1)] {
            let axis = Axis { low, high, log: false };
            let ticks = axis.ticks(6);
            assert!((2..=8).contains(&ticks.len()), "{low} {high}: {ticks:?}");
            assert!(ticks.iter().all(|tick| (low - 1e-9..=high * (1.0 + 1e-9) + 1e-9).contains(tick)));
        }
    }

    #[test]
    fn axes_of_odd_values_are_still_axes() {
        for values in [vec![], vec![f64::NAN], vec![0.0; 3], vec![7.0], vec![-1e-300, 1e300]] {
            for log in [false, true] {
                let axis = Axis::around(values.iter().copied(), log);
                assert!(
                    axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite(),
                    "{values:?} {axis:?}"
                );
                assert!(!axis.ticks(5).is_empty());
            }
        }
    }

    #[test]
    fn a_long_series_keeps_its_peak() {
        let mut y: Vec<f64> = (0..100_000).map(|k| (k as f64 * 0.001).sin()).collect();
        y[77_777] = 50.0;
        y[33_333] = -50.0;
        let kept = thinned(&y);
        assert!(kept.len() < 4 * BUCKETS && kept.contains(&77_777) && kept.contains(&33_333));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn gaps_and_single_points_are_drawn_as_such() {
        let (text, _) = plot(&chart(vec![0.0, 1.0, 2.0, 3.0], vec![1.0, f64::NAN, 2.0, 3.0], false));
        assert_eq!(text.matches('M').count(), 2);
        let (text, data) = plot(&chart(vec![0.5], vec![1.0], false));
        assert!(text.contains("h0.01") && data["lines"][0]["y"][0] == 1.0);
        let (text, _) = plot(&chart(vec![0.0, 1.0], vec![0.0, 1e-3], true));
        assert_eq!(text.matches('M').count(), 1);
        let whole = file(&chart(vec![0.0, 1.0], vec![0.0, 1e-3], false));
        assert!(whole.starts_with("<svg") && whole.contains("A &amp; B (m)") && !whole.contains("NaN"));
        assert!(whole.contains("height=\"292\""), "{whole}");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1.5, 0.30000000000000004, 1234.5678, 1e-7, 2.5e9, -0.002, 100.0].map(number);
        assert_eq!(shown, ["0", "1.5", "0.3", "1234.6", "1e-7", "2.5e9", "-0.002", "100"]);
    }
}
