//! `breccia report`: the story of a run as one page that opens from the disk, with plots and pictures beside
//! it.
//!
//! The page needs no network and no other file: pictures, the data of plots and of the interactive view are
//! inside.

mod chart;
mod encode;
mod machine_charts;
mod page;
mod pictures;
mod raster;
mod run;
mod stage;
mod story;
mod svg;
mod view;

use crate::commands::inspect::InspectError;
use crate::commands::inspect::poses::References;
use crate::commands::inspect::rows::{RowColumn, Rows};
use crate::output::reader::Numbers;
use chart::Chart;
use clap::Args;
use run::Run;
use serde_json::Value;
use stage::Stage;
use std::path::{Path, PathBuf};

/// Frames in the interactive view at most, and poses in all of them.
const MOST_FRAMES: usize = 90;
const MOST_POSES: usize = 700_000;
/// Small pictures in a row.
const SMALL_PICTURES: usize = 4;

/// Writes a page about a run.
///
/// One HTML file that opens from the disk, without a network: how the run ended, its numbers, time series as
/// plots, pictures of the scene and an interactive 3D view, where the time went, the case. Plots (SVG and
/// CSV) and pictures (PNG) also go into a directory beside it. It works for runs that are under way, were
/// interrupted, or wrote no frames.
///
///   breccia report out/ballast-box        writes out/ballast-box/report.html and out/ballast-box/report/
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct ReportArguments {
    /// The directory of a run.
    pub directory: PathBuf,
    /// The page; DIR/report.html if not given. Plots and pictures go into a directory of the same name
    /// without .html.
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
}

/// A file to embed, and its bytes.
pub(crate) struct Image {
    pub time: f64,
    pub step: usize,
    pub png: Vec<u8>,
}

/// All that the page shows.
pub(crate) struct Material {
    pub run: Run,
    pub charts: Vec<Chart>,
    pub stage: Stage,
    pub hero: Option<Image>,
    pub row: Vec<Image>,
    pub view: Option<view::View>,
}

/// Runs `breccia report`; returns the path of the page.
pub fn report(arguments: &ReportArguments) -> Result<PathBuf, InspectError> {
    let page = arguments.out.clone().unwrap_or_else(|| arguments.directory.join("report.html"));
    let beside = page.with_extension("");
    if beside == page {
        return Err(InspectError::unfit(&page, "needs an extension, such as .html"));
    }
    let material = gather(&arguments.directory, &page)?;
    std::fs::create_dir_all(&beside).map_err(InspectError::io(&beside, "create"))?;
    for chart in &material.charts {
        write(&beside.join(format!("{}.svg", chart.id)), svg::file(chart).as_bytes())?;
        write(&beside.join(format!("{}.csv", chart.id)), &csv(chart))?;
    }
    if let Some(hero) = &material.hero {
        write(&beside.join("scene.png"), &hero.png)?;
    }
    for image in &material.row {
        write(&beside.join(format!("scene-{:06}.png", image.step)), &image.png)?;
    }
    let text = page::html(&material).map_err(InspectError::io(&page, "encode"))?;
    write(&page, text.as_bytes())?;
    Ok(page)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), InspectError> {
    std::fs::write(path, bytes).map_err(InspectError::io(path, "write"))
}

fn csv(chart: &Chart) -> Vec<u8> {
    let name = chart.x_name.split(' ').next().unwrap_or("x");
    let mut columns = vec![RowColumn::new(name, 1, Numbers::Double(chart.x.clone()))];
    let unit = if chart.unit.is_empty() { String::new() } else { format!(" ({})", chart.unit) };
    let column = |line: &chart::Line| {
        RowColumn::new(format!("{}{unit}", line.name), 1, Numbers::Double(line.y.clone()))
    };
    columns.extend(chart.lines.iter().map(column));
    let rows = Rows { columns };
    let mut text = Vec::new();
    // Writing to a vector cannot fail.
    let _ = rows.write_heading(&[], &mut text).and_then(|()| rows.write_rows("", &mut text));
    text
}

fn gather(directory: &Path, page: &Path) -> Result<Material, InspectError> {
    let mut run = Run::read(directory)?;
    let charts = charts(&run);
    let up = run.up();
    let mut stage = Stage::default();
    if let Some(frames) = &run.frames {
        let mut references = References::find(directory);
        match Stage::read(frames, &mut references, &run.groups(), MOST_FRAMES, MOST_POSES) {
            Ok(read) => stage = read,
            Err(error) => run.notes.push(format!("The frames cannot be read: {error}.")),
        }
    }
    run.notes.append(&mut stage.notes);
    let shots = pictures::take(&stage, up, SMALL_PICTURES);
    let image = |shot: pictures::Shot| {
        let png = encode::png(&shot.picture).map_err(InspectError::io(page, "encode a picture for"))?;
        Ok::<_, InspectError>(Image { time: shot.time, step: shot.step, png })
    };
    let (hero, row) = match shots {
        Some((large, small)) => {
            (Some(image(large)?), small.into_iter().map(image).collect::<Result<_, _>>()?)
        }
        None => (None, Vec::new()),
    };
    let mut view = view::pack(&stage, up);
    run.notes.extend(view.iter_mut().flat_map(|view| std::mem::take(&mut view.notes)));
    Ok(Material { run, charts, stage, hero, row, view })
}

fn charts(run: &Run) -> Vec<Chart> {
    let mut charts = run
        .series
        .as_ref()
        .map_or(Vec::new(), |table| chart::of_series(table, run.tolerance(), &run.force_errors()));
    charts.extend(run.tables.iter().flat_map(|(name, table)| chart::of_table(name, table)));
    charts.extend(gradings(run));
    charts.retain(|chart| !chart.is_empty());
    // Two of one name must not write one file.
    let mut seen = std::collections::BTreeSet::new();
    for chart in &mut charts {
        let plain = if chart.id.is_empty() { "plot".to_string() } else { chart.id.clone() };
        let mut number = 1;
        chart.id.clone_from(&plain);
        while !seen.insert(chart.id.clone()) {
            number += 1;
            chart.id = format!("{plain}-{number}");
        }
    }
    charts
}

/// The charts of `gradings` in the summary.
fn gradings(run: &Run) -> Vec<Chart> {
    let all = run.summary.get("gradings").and_then(Value::as_array).cloned().unwrap_or_default();
    let curve = |grading: &Value| {
        let points = |name: &str, part: &str| -> Option<Vec<f64>> {
            grading.get(name)?.as_array()?.iter().map(|point| point.get(part)?.as_f64()).collect()
        };
        let name = grading.get("grains")?.as_str()?;
        let (sieves, passing) = (points("passing", "sieve")?, points("passing", "percent")?);
        let wanted = points("wanted", "percent").filter(|wanted| wanted.len() == sieves.len())?;
        Some(chart::of_grading(name, &sieves, &passing, &wanted))
    };
    all.iter().filter_map(curve).collect()
}
