//! The run in sentences and key numbers: did it work, what happened, what did it cost.

use super::run::{Run, duration};
use super::svg::number;
use crate::commands::run::WORRYING;

/// How the run ended, for the eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Good,
    Careful,
    Bad,
}

impl Mood {
    pub fn class(self) -> &'static str {
        match self {
            Mood::Good => "good",
            Mood::Careful => "careful",
            Mood::Bad => "bad",
        }
    }
}

pub struct Story {
    pub mood: Mood,
    /// A few words.
    pub verdict: String,
    pub sentences: Vec<String>,
    /// Value, what it is, and a remark.
    pub numbers: Vec<[String; 3]>,
}

/// Last, largest and where it was, and mean of a column.
struct ColumnSummary {
    last: f64,
    largest: f64,
    at: f64,
    mean: f64,
}

fn summarize(run: &Run, column: &str) -> Option<ColumnSummary> {
    let table = run.series.as_ref()?;
    let (time, y) = (table.column("time")?, table.column(column)?);
    let last = *y.last()?;
    let (place, largest) =
        y.iter().copied().enumerate().filter(|(_, y)| y.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(ColumnSummary { last, largest, at: time[place], mean: y.iter().sum::<f64>() / y.len() as f64 })
}

pub fn compose(run: &Run) -> Story {
    let (mood, verdict) = verdict(run);
    let mut sentences = vec![what(run)];
    sentences.extend(movement(run));
    sentences.extend(run.word("message").map(|message| format!("It ended early: {message}.")));
    Story { mood, verdict, sentences, numbers: numbers(run) }
}

fn verdict(run: &Run) -> (Mood, String) {
    let missed = run.number("not_converged").unwrap_or_else(|| {
        let converged = run.series.as_ref().and_then(|table| table.column("converged"));
        converged.map_or(0.0, |steps| steps.iter().filter(|step| **step == 0.0).count() as f64)
    });
    let steps = steps(run).unwrap_or(0.0);
    let all_met = match missed {
        0.0 if steps > 0.0 => "every step met its tolerance".to_string(),
        0.0 => "no steps were made".to_string(),
        missed => format!("{} of {} steps missed the tolerance", grouped(missed), grouped(steps)),
    };
    let overlap = run.number("worst_overlap_share").unwrap_or(0.0);
    let deep = overlap > WORRYING;
    let all_met = match deep {
        true => format!(
            "{all_met}; overlaps of up to {:.0} % of the size of a body, in {} steps more than a tenth",
            100.0 * overlap,
            grouped(run.number("overlapping_steps").unwrap_or(0.0))
        ),
        false => all_met,
    };
    let good = if missed == 0.0 && !deep { Mood::Good } else { Mood::Careful };
    match run.word("status") {
        Some("finished") => (good, format!("Finished; {all_met}")),
        Some("stopped") => (Mood::Careful, format!("Stopped before its end; {all_met}")),
        Some("failed") => (Mood::Bad, "Failed".into()),
        Some("running") => {
            (Mood::Careful, format!("No end recorded: under way, or killed; so far {all_met}"))
        }
        _ => (Mood::Careful, "How it ended is not recorded".into()),
    }
}

fn steps(run: &Run) -> Option<f64> {
    let rows = || run.series.as_ref()?.column("step")?.last().copied();
    run.number("steps").or_else(rows)
}

/// The steps that the times in the summary are those of: the last ones, if the run was restarted.
fn timed_steps(run: &Run) -> Option<f64> {
    Some(steps(run)? - run.number("restarted_from").unwrap_or(0.0)).filter(|steps| *steps > 0.0)
}

fn what(run: &Run) -> String {
    let mut text = match (run.number("free_bodies"), run.number("bodies")) {
        (Some(1.0), _) => "One free body was followed".to_string(),
        (Some(free), Some(all)) if free > 0.0 && all > free => {
            format!("{} free bodies among {} were followed", grouped(free), grouped(all))
        }
        (Some(free), _) if free > 0.0 => format!("{} free bodies were followed", grouped(free)),
        (Some(_), _) => "A scene without free bodies was followed".to_string(),
        (None, _) => "The scene was followed".to_string(),
    };
    let time = run.series.as_ref().and_then(|table| table.column("time")?.last().copied());
    if let Some(time) = run.number("time").or(time) {
        text += &format!(" to t = {} s", number(time));
    }
    if let Some(steps) = steps(run) {
        text += &format!(" in {} {}", grouped(steps), if steps == 1.0 { "step" } else { "steps" });
    }
    if let (Some(ranks), Some(threads)) = (run.number("ranks"), run.number("threads")) {
        let plural =
            |count: f64, noun: &str| format!("{count} {noun}{}", if count == 1.0 { "" } else { "s" });
        text += &format!(" on {} with {}", plural(ranks, "rank"), plural(threads, "thread"));
        text += if ranks > 1.0 { " each" } else { "" };
    }
    if let Some(seconds) = run.number("seconds_total") {
        text += &match (timed_steps(run), run.number("restarted_from")) {
            (Some(last), Some(_)) => {
                format!(", the last {} after a restart in {}", grouped(last), duration(seconds))
            }
            _ => format!(", in {}", duration(seconds)),
        };
    }
    text + "."
}

fn movement(run: &Run) -> Option<String> {
    let kinetic = summarize(run, "kinetic_energy").filter(|kinetic| kinetic.largest > 0.0)?;
    let share = kinetic.last / kinetic.largest;
    let peak = format!("{} J at t = {} s", short(kinetic.largest), number(rounded(kinetic.at)));
    Some(if kinetic.largest < 1e-12 {
        format!("Nothing moves: the kinetic energy is never more than {} J.", short(kinetic.largest))
    } else if share < 1e-6 {
        format!(
            "It has come to rest: the kinetic energy peaked with {peak}, and {} J are left.",
            short(kinetic.last)
        )
    } else if share < 0.999 {
        format!(
            "Things still move at the end: the kinetic energy peaked with {peak}; {} J are left, {} % of that.",
            short(kinetic.last),
            number(rounded(100.0 * share))
        )
    } else {
        format!("The kinetic energy is largest at the end: {} J.", short(kinetic.last))
    })
}

fn numbers(run: &Run) -> Vec<[String; 3]> {
    let mut all = Vec::new();
    let mut add = |value: String, what: &str, remark: String| all.push([value, what.to_string(), remark]);
    if let Some(seconds) = run.number("seconds_total") {
        let each = timed_steps(run).map(|steps| format!("{} a step", duration_fine(seconds / steps)));
        let what = if run.number("restarted_from").is_some() { "wall time, restart" } else { "wall time" };
        add(duration(seconds), what, each.unwrap_or_default());
    } else if let Some(steps) = steps(run) {
        add(grouped(steps), "steps", String::new());
    }
    let contacts = summarize(run, "contact_points");
    let most = run.number("contact_points/max").or(contacts.as_ref().map(|summary| summary.largest));
    if let Some(mean) = run.number("contact_points/mean").or(contacts.map(|summary| summary.mean)) {
        let shown = if mean < 10.0 { number((100.0 * mean).round() / 100.0) } else { grouped(mean.round()) };
        add(shown, "contact points, mean", format!("at most {}", grouped(most.unwrap_or(mean))));
    }
    let sweeps = summarize(run, "sweeps");
    let most = run.number("sweeps/max").or(sweeps.as_ref().map(|summary| summary.largest));
    if let Some(mean) = run.number("sweeps/mean").or(sweeps.map(|summary| summary.mean)) {
        add(
            number((10.0 * mean).round() / 10.0),
            "sweeps per step, mean",
            format!("at most {}", grouped(most.unwrap_or(mean))),
        );
    }
    if let Some(worst) =
        run.number("residual/max").or(summarize(run, "residual").map(|summary| summary.largest))
    {
        let remark = run.tolerance().map(|tolerance| format!("tolerance {}", number(tolerance)));
        add(short(worst), "worst residual", remark.unwrap_or_default());
    }
    if let Some(depth) = run
        .number("worst_penetration/max")
        .or(summarize(run, "worst_penetration").map(|summary| summary.largest))
    {
        let last = run
            .number("worst_penetration/last")
            .or(summarize(run, "worst_penetration").map(|summary| summary.last));
        add(
            length(depth),
            "deepest penetration",
            last.map(|last| format!("{} at the end", length(last))).unwrap_or_default(),
        );
    }
    if let Some(each) = run.number("nanoseconds_per_contact_point_and_sweep") {
        let memory = run
            .summary
            .get("peak_memory")
            .and_then(|list| list.as_array()?.iter().filter_map(|b| b.as_u64()).max());
        let remark = memory.map(|bytes| format!("{} on a rank", crate::commands::inspect::info::size(bytes)));
        add(
            format!("{} ns", number((10.0 * each).round() / 10.0)),
            "per contact and sweep",
            remark.unwrap_or_default(),
        );
    }
    all
}

/// Three digits.
fn short(value: f64) -> String {
    number(rounded(value))
}

fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn duration_fine(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{} µs", short(1e6 * s)),
        s if s < 1.0 => format!("{} ms", short(1e3 * s)),
        s => duration(s),
    }
}

/// Metres in a unit that reads well.
fn length(metres: f64) -> String {
    match metres.abs() {
        0.0 => "0".into(),
        m if m < 1e-10 => format!("{} m", short(metres)),
        m if m < 1e-6 => format!("{} nm", short(1e9 * metres)),
        m if m < 1e-3 => format!("{} µm", short(1e6 * metres)),
        m if m < 1.0 => format!("{} mm", short(1e3 * metres)),
        _ => format!("{} m", short(metres)),
    }
}

/// 12 345 with thin spaces, as tables have it.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("−{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::inspect::text_table::TextTable;
    use serde_json::{Value, json};

    fn run(summary: Value, series: &str) -> Run {
        Run {
            directory: ".".into(),
            summary,
            series: TextTable::parse(series).ok(),
            tables: Vec::new(),
            frames: None,
            case: None,
            written: None,
            files: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_finished_and_a_killed_run_tell_their_stories() {
        let series = "step,time,sweeps,converged,kinetic_energy\n1,0.1,4,1,2.0\n2,0.2,6,0,1e-9\n";
        let summary = json!({"status": "finished", "steps": 2, "time": 0.2, "free_bodies": 12345, "bodies": 12346,
            "ranks": 2, "threads": 1, "seconds_total": 3.0, "not_converged": 0});
        let story = compose(&run(summary, series));
        assert_eq!(
            (story.mood, story.verdict.as_str()),
            (Mood::Good, "Finished; every step met its tolerance")
        );
        let first = "12\u{2009}345 free bodies among 12\u{2009}346 were followed to t = 0.2 s in 2 steps on 2 ranks with 1 thread each, in 3.0 s.";
        assert_eq!(story.sentences[0], first);
        assert!(story.sentences[1].starts_with("It has come to rest"), "{}", story.sentences[1]);
        let restarted = json!({"status": "finished", "steps": 2, "restarted_from": 1, "seconds_total": 3.0});
        let story = compose(&run(restarted, series));
        assert!(
            story.sentences[0].ends_with("in 2 steps, the last 1 after a restart in 3.0 s."),
            "{:?}",
            story.sentences
        );
        assert_eq!(story.numbers[0][2], "3.0 s a step");
        let story = compose(&run(json!({"status": "running"}), series));
        assert_eq!(story.mood, Mood::Careful);
        assert!(story.verdict.ends_with("1 of 2 steps missed the tolerance"), "{}", story.verdict);
        assert!(story.numbers.iter().any(|[value, what, _]| value == "5" && what.starts_with("sweeps")));
        let story = compose(&run(Value::Null, ""));
        assert!(story.numbers.is_empty() && story.sentences[0] == "The scene was followed.");
        let failed = compose(&run(json!({"status": "failed", "message": "body 3 is lost"}), series));
        assert!(failed.mood == Mood::Bad && failed.sentences.last().unwrap().contains("body 3"));
    }

    #[test]
    fn large_numbers_have_thin_spaces() {
        assert_eq!(
            [0.0, 999.0, 1643.0, 1234567.0].map(grouped),
            ["0", "999", "1643", "1\u{2009}234\u{2009}567"]
        );
    }
}
