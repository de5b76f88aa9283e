//! The page: one file of HTML with its style, its scripts, its pictures and its data inside.

use super::chart::{Chart, Place};
use super::encode::{base64, gzip};
use super::run::{Run, date};
use super::story::{Story, compose, grouped};
use super::svg::{self, number};
use super::{Image, Material};
use crate::commands::inspect::info::size;
use crate::commands::inspect::vtu::escaped;
use crate::commands::run::ForceError;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io;

const STYLE: &str = include_str!("assets/page.css");
const PLOT_SCRIPT: &str = include_str!("assets/plots.js");
const VIEW_SCRIPT: &str = include_str!("assets/view.js");

/// Only an error of the encoders can fail.
pub fn html(material: &Material) -> io::Result<String> {
    let run = &material.run;
    let story = compose(run);
    let directory =
        run.directory.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let title = run.word("title").filter(|title| !title.is_empty()).map_or(directory, String::from);
    let mut data = Map::new();
    let mut body = String::new();
    body += &top(material, &story, &title);
    body += &scene(material)?;
    body += &section("what-happened", "What happened", &charts(material, Place::Main, &mut data));
    body += &section("machines", "Machines", &charts(material, Place::Machines, &mut data));
    body += &folded("forces", "Forces, one by one", &charts(material, Place::Forces, &mut data));
    body += &section("errors", "How well forces are known", &force_errors(run));
    body += &section("time", "Where the time went", &phases(&run.summary));
    body += &section("case", "The case", &case(material));
    body += &folded("more", "More series", &charts(material, Place::More, &mut data));
    body += &section("files", "Files", &files(material));
    // A `<` could end the element that holds the data.
    let plots = Value::Object(data).to_string().replace('<', "\\u003c");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"generator\" content=\"breccia {}\"><title>{} · breccia</title>\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style></head>\n<body>\n{body}\
         <footer>Written by breccia {0}. This page is one file and needs no network.</footer>\n\
         <script type=\"application/json\" id=\"plots\">{plots}</script>\n<script>\n{PLOT_SCRIPT}</script>\n<script>\n{VIEW_SCRIPT}</script>\n\
         </body></html>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(&title),
    ))
}

fn section(id: &str, heading: &str, inside: &str) -> String {
    match inside.is_empty() {
        true => String::new(),
        false => format!("<section id=\"{id}\"><h2>{heading}</h2>\n{inside}</section>\n"),
    }
}

fn folded(id: &str, heading: &str, inside: &str) -> String {
    match inside.is_empty() {
        true => String::new(),
        false => format!(
            "<section id=\"{id}\"><details><summary><h2>{heading}</h2></summary>\n{inside}</details></section>\n"
        ),
    }
}

/// The first screen: did it work, what happened, the key numbers, and a picture of its end.
fn top(material: &Material, story: &Story, title: &str) -> String {
    let run = &material.run;
    let mut text = String::from("<header class=\"top\">");
    let version = run.word("version").map(|version| format!("breccia {version}"));
    let facts: Vec<String> =
        [version, run.written.map(date)].into_iter().flatten().map(|fact| escaped(&fact)).collect();
    let _ = write!(
        text,
        "<div class=\"bar\"><span>{}</span><button id=\"theme\" type=\"button\" aria-label=\"Switch between light and dark\">◐</button></div>",
        facts.join(" · ")
    );
    let _ = write!(text, "<div class=\"lead\"><div class=\"words\"><h1>{}</h1>", escaped(title));
    let _ =
        write!(text, "<p class=\"verdict {}\"><i></i>{}</p>", story.mood.class(), escaped(&story.verdict));
    for sentence in &story.sentences {
        let _ = write!(text, "<p>{}</p>", escaped(sentence));
    }
    text += "<dl class=\"numbers\">";
    for [value, what, remark] in &story.numbers {
        let _ = write!(
            text,
            "<div><dt>{}</dt><dd><b>{}</b><span>{}</span></dd></div>",
            escaped(what),
            escaped(value),
            escaped(remark)
        );
    }
    text += "</dl></div>";
    if let Some(hero) = &material.hero {
        let _ = write!(
            text,
            "<figure class=\"hero\">{}<figcaption>t = {} s</figcaption></figure>",
            picture(hero, "The scene at the end"),
            number(hero.time)
        );
    }
    text += "</div>";
    if !run.notes.is_empty() {
        let notes: String = run.notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
        let _ = write!(text, "<ul class=\"notes\">{notes}</ul>");
    }
    text + "</header>\n"
}

fn picture(image: &Image, what: &str) -> String {
    format!(
        "<img alt=\"{what}, t = {} s\" src=\"data:image/png;base64,{}\">",
        number(image.time),
        base64(&image.png)
    )
}

fn scene(material: &Material) -> io::Result<String> {
    let mut text = String::new();
    if let Some(view) = &material.view {
        let frames = material.stage.scenes.len();
        let packed = base64(&gzip(&view.body)?);
        let shown = match frames == material.stage.frames {
            true => format!("All {frames} frames"),
            false => format!("{frames} of {} frames", material.stage.frames),
        };
        let head = view.head.to_string().replace('<', "\\u003c");
        let _ = write!(
            text,
            "<figure class=\"view\" id=\"view\"><canvas tabindex=\"0\" aria-label=\"Interactive view of the scene in three dimensions. \
             Arrow keys turn it, plus and minus zoom.\"></canvas><p class=\"fallback\" hidden></p>\
             <div class=\"controls\"><button type=\"button\" class=\"play\" aria-label=\"Play\">▶</button>\
             <input type=\"range\" min=\"0\" max=\"{}\" step=\"0.01\" value=\"{0}\" aria-label=\"Time\"><output></output>\
             <label>colour <select><option value=\"own\">stones and tools</option><option value=\"speed\">speed</option></select></label>\
             <button type=\"button\" class=\"reset\">reset view</button></div>\
             <figcaption>Drag to turn, shift-drag to move, click and scroll to zoom. {shown}; positions to 1/65000 of the scene.</figcaption>\
             <script type=\"application/json\" class=\"head\">{head}</script>\
             <script type=\"text/plain\" class=\"body\">{packed}</script></figure>",
            frames - 1
        );
    }
    if material.row.len() > 1 {
        text += "<div class=\"row\">";
        for image in &material.row {
            let _ = write!(
                text,
                "<figure>{}<figcaption>t = {} s</figcaption></figure>",
                picture(image, "The scene"),
                number(image.time)
            );
        }
        text += "</div>";
    }
    Ok(section("scene", "The scene", &text))
}

/// A row for each force that was checked and acted, the largest first.
fn force_errors(run: &Run) -> String {
    let mut errors = run.force_errors();
    errors.retain(|error| error.mean > 0.0);
    errors.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let Some(checks) = errors.first().map(|error| error.checks) else { return String::new() };
    let digits = |value: f64| number(format!("{value:.2e}").parse().unwrap_or(value));
    let row = |error: &ForceError| {
        let cells = [error.mean, error.window_error, error.step_error].map(digits);
        let share = digits(100.0 * error.window_error / error.mean);
        let [mean, window, step] = cells;
        let name = escaped(&error.name);
        format!(
            "<tr><td>{name}</td><td>{mean}</td><td>± {window}</td><td>{share} %</td><td>± {step}</td></tr>"
        )
    };
    let rows: String = errors.iter().map(row).collect();
    format!(
        "<p>{checks} times the next steps were made again from the same state with contact problems solved to high accuracy. 95 % of the \
         differences that other steps would show are smaller than this (N or N m).</p>\
         <table><thead><tr><th>force</th><th>mean</th><th>means over windows</th><th>by the mean</th><th>single steps</th></tr></thead>\
         <tbody>{rows}</tbody></table>\n"
    )
}

fn charts(material: &Material, place: Place, data: &mut Map<String, Value>) -> String {
    let own: Vec<&Chart> = material
        .charts
        .iter()
        .filter(|chart| chart.place == place && chart.x_name.starts_with("time"))
        .collect();
    if own.is_empty() {
        return String::new();
    }
    let all: String = own.iter().map(|chart| figure(chart, data)).collect();
    format!("<div class=\"charts\">{all}</div>")
}

fn figure(chart: &Chart, data: &mut Map<String, Value>) -> String {
    let (drawing, own) = svg::plot(chart);
    data.insert(chart.id.clone(), own);
    let unit = if chart.unit.is_empty() {
        String::new()
    } else {
        format!(" <small>{}</small>", escaped(&chart.unit))
    };
    let mut legend = String::new();
    for (k, line) in chart.lines.iter().enumerate().filter(|_| chart.lines.len() > 1) {
        let _ = write!(legend, "<span class=\"key l{}\">{}</span>", k % 8, escaped(&line.name));
    }
    let note = if chart.note.is_empty() { String::new() } else { format!("<p>{}</p>", escaped(&chart.note)) };
    let [width, height] = svg::SIZE;
    format!(
        "<figure class=\"chart\" id=\"chart-{0}\" data-chart=\"{0}\"><figcaption><h3>{1}{unit}</h3>{note}<div class=\"legend\">{legend}</div></figcaption>\
         <svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{2}\">{drawing}</svg></figure>\n",
        chart.id,
        escaped(&chart.title),
        escaped(&in_words(chart))
    )
}

/// What a plot shows, for who cannot see it.
fn in_words(chart: &Chart) -> String {
    let mut text = format!("{} over {}", chart.title, chart.x_name);
    for line in &chart.lines {
        let finite = || line.y.iter().copied().filter(|y| y.is_finite());
        let (low, high) =
            (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        if let Some(last) = line.y.last().filter(|_| low <= high) {
            let _ = write!(
                text,
                "; {}: from {} to {}, {} at the end",
                line.name,
                number(low),
                number(high),
                number(*last)
            );
        }
    }
    text
}

/// Seconds by phase: a bar for the mean, a whisker from the fastest to the slowest rank.
fn phases(summary: &Value) -> String {
    let Some(phases) = summary.get("phases").and_then(Value::as_array).filter(|phases| !phases.is_empty())
    else {
        return String::new();
    };
    let part = |phase: &Value, name: &str| phase.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let total: f64 = summary.get("seconds_total").and_then(Value::as_f64).unwrap_or(0.0);
    let longest = phases.iter().map(|phase| part(phase, "max")).fold(1e-9, f64::max);
    let mut text = String::from(
        "<table class=\"phases\"><thead><tr><th>phase</th><th class=\"wide\"><span class=\"hidden\">bar</span></th><th>mean, s</th><th>share</th>\
         <th>waiting</th><th title=\"slowest rank by mean\">imbalance</th></tr></thead><tbody>",
    );
    for phase in phases {
        let (low, mean, high) = (part(phase, "min"), part(phase, "mean"), part(phase, "max"));
        let percent = |seconds: f64| 100.0 * seconds / longest;
        let share = if total > 0.0 { 100.0 * mean / total } else { 0.0 };
        let waiting = phase.pointer("/waiting/1").and_then(Value::as_f64);
        let waiting = waiting.map_or("–".into(), |seconds| format!("{seconds:.3} s"));
        let imbalance = if mean > 0.0 { high / mean } else { 1.0 };
        let _ = write!(
            text,
            "<tr><th scope=\"row\">{}</th><td class=\"wide\"><div class=\"bar\"><i style=\"width:{:.2}%\"></i>\
             <u style=\"left:{:.2}%;width:{:.2}%\"></u></div></td><td>{mean:.3}</td><td>{share:.1} %</td><td>{waiting}</td><td>{imbalance:.2}</td></tr>",
            escaped(phase.get("name").and_then(Value::as_str).unwrap_or("?")),
            percent(mean),
            percent(low),
            percent(high - low)
        );
    }
    let _ = write!(
        text,
        "</tbody></table><p class=\"quiet\">Bars are means over the ranks; the thin line reaches from the fastest to the slowest rank. \
         Imbalance is the slowest rank's time by the mean. In all {} s.</p>",
        number((1e3 * total).round() / 1e3)
    );
    text
}

fn case(material: &Material) -> String {
    let run = &material.run;
    let mut text = String::new();
    if let Some(groups) =
        run.summary.get("groups").and_then(Value::as_array).filter(|groups| !groups.is_empty())
    {
        text += "<table><thead><tr><th>bodies</th><th>kind</th><th>number</th><th>mass, kg</th><th>bounding radius, mm</th></tr></thead><tbody>";
        for group in groups {
            let word = |name: &str| escaped(group.get(name).and_then(Value::as_str).unwrap_or("?"));
            let mass = group
                .get("mass")
                .and_then(Value::as_f64)
                .map_or("–".into(), |mass| number((1e4 * mass).round() / 1e4));
            let radius = |k: usize| group.pointer(&format!("/bounding_radius/{k}")).and_then(Value::as_f64);
            let radius = match (radius(0), radius(1)) {
                (Some(a), Some(b)) if a == b => number((1e6 * a).round() / 1e3),
                (Some(a), Some(b)) => {
                    format!("{} to {}", number((1e4 * a).round() / 10.0), number((1e4 * b).round() / 10.0))
                }
                _ => "infinite".into(),
            };
            let bodies = group.get("bodies").and_then(Value::as_f64).unwrap_or(0.0);
            let _ = write!(
                text,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{mass}</td><td>{radius}</td></tr>",
                word("name"),
                word("kind"),
                grouped(bodies)
            );
        }
        text += "</tbody></table>";
    }
    let mut unused = Map::new();
    let gradings: String = material
        .charts
        .iter()
        .filter(|chart| !chart.x_name.starts_with("time"))
        .map(|chart| figure(chart, &mut unused))
        .collect();
    if !gradings.is_empty() {
        let _ =
            write!(text, "<div class=\"charts\">{}</div>", gradings.replace(" data-chart=", " data-still="));
    }
    if let Some((case, whence)) = &run.case {
        let _ = write!(
            text,
            "<details><summary>The case file, {}</summary><pre>{}</pre></details>",
            escaped(whence),
            escaped(case)
        );
    }
    text
}

fn files(material: &Material) -> String {
    let run = &material.run;
    let mut text = String::new();
    let facts = [
        ("directory", Some(run.directory.display().to_string())),
        ("case", run.word("case").map(String::from)),
        ("digest", run.word("digest").map(String::from)),
    ];
    text += "<dl class=\"facts\">";
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = write!(text, "<dt>{name}</dt><dd><code>{}</code></dd>", escaped(&value));
        }
    }
    text += "</dl><table><thead><tr><th>file</th><th>what</th><th>size</th></tr></thead><tbody>";
    let what = |name: &str| match name {
        "bodies.vtkhdf" => "bodies at each output time, for ParaView",
        "contacts.vtkhdf" => "the contact network, for ParaView",
        "series.csv" | "series.h5" => "time series",
        "machines.csv" | "machines.h5" => "coordinates and forces of machines",
        "final.h5" => "the final state, from which another case may start",
        "summary.json" => "numbers for scripts",
        _ => "",
    };
    for (name, bytes) in run.files.iter().filter(|(name, _)| name != "report.html") {
        let _ = write!(
            text,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            escaped(name),
            what(name),
            size(*bytes)
        );
    }
    text + "</tbody></table>"
}
