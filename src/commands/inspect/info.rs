//! `breccia info`: what a file is and what is in it, for people and, with `--json`, for scripts.

use super::InspectError;
use super::text_table::TextTable;
use crate::output::StateFile;
use crate::output::StateHeader;
use crate::output::reader::{CellKind, Contents, DatasetInfo, FrameFile, is_hdf5, is_state};
use clap::Args;
use decomposition::Solo;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Says what result files are and what is in them.
///
/// Knows frames, contacts, series, states (final.h5 and checkpoints, with a check of their seal), FCLib
/// problems and summaries; of other HDF5 files it lists the datasets. A directory stands for all result files
/// in it.
///
/// Exit codes: 0 all files are whole; 4 one of them cannot be read or is damaged.
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct InfoArguments {
    /// Result files, or directories of runs.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// For scripts: a list of objects.
    #[arg(long)]
    pub json: bool,
    /// Lists every dataset with its type, size and compression.
    #[arg(long)]
    pub datasets: bool,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Frames,
    Contacts,
    Series,
    State,
    Summary,
    FclibProblem,
    Packing,
    /// HDF5, but nothing that breccia knows.
    ForeignHdf5,
    /// Not HDF5 and not a table.
    Foreign,
    /// It cannot be read at all.
    Unreadable,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Frames => "frames of bodies",
            Kind::Contacts => "frames of contacts",
            Kind::Series => "time series",
            Kind::State => "state",
            Kind::Summary => "summary of a run",
            Kind::FclibProblem => "FCLib problem",
            Kind::Packing => "packing of another program",
            Kind::ForeignHdf5 => "HDF5 file of another program",
            Kind::Foreign => "not a result file",
            Kind::Unreadable => "unreadable",
        }
    }
}

/// What is known about a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileInfo {
    pub path: PathBuf,
    pub kind: Kind,
    pub bytes: u64,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// Name and value, in the order in which people want to read them.
    #[serde(serialize_with = "as_map")]
    pub facts: Vec<(&'static str, Value)>,
    pub datasets: Vec<DatasetInfo>,
}

fn as_map<S: serde::Serializer>(facts: &[(&'static str, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(facts.iter().map(|(name, value)| (name, value)))
}

/// What `breccia info` says, and whether all files are whole.
pub fn info(arguments: &InfoArguments) -> Result<(String, bool), InspectError> {
    let mut all = Vec::new();
    for path in &arguments.files {
        for file in files(path)? {
            all.push(inspect(&file));
        }
    }
    let whole = all.iter().all(|file| file.problem.is_none());
    if arguments.json {
        let text = serde_json::to_string_pretty(&all).unwrap_or_else(|error| error.to_string());
        return Ok((text, whole));
    }
    let texts: Vec<String> = all.iter().map(|file| file.text(arguments.datasets)).collect();
    Ok((texts.join("\n"), whole))
}

/// The file itself, or all result files of a directory and of the directories right inside it.
fn files(path: &Path) -> Result<Vec<PathBuf>, InspectError> {
    if !path.is_dir() {
        std::fs::metadata(path).map_err(InspectError::io(path, "open"))?;
        return Ok(vec![path.to_path_buf()]);
    }
    let list = |directory: &Path| -> Result<Vec<PathBuf>, InspectError> {
        let entries = std::fs::read_dir(directory).map_err(InspectError::io(directory, "list"))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    };
    let is_result = |path: &Path| {
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let known = ["vtkhdf", "h5", "hdf5", "csv"].contains(&extension.as_str());
        known || path.file_name().is_some_and(|name| name == "summary.json")
    };
    let mut found = Vec::new();
    for entry in list(path)? {
        if entry.is_dir() && entry.file_name().is_none_or(|name| name != "report") {
            found.extend(list(&entry)?.into_iter().filter(|inner| inner.is_file() && is_result(inner)));
        } else if entry.is_file() && is_result(&entry) {
            found.push(entry);
        }
    }
    if found.is_empty() {
        return Err(InspectError::unfit(path, "has no result files"));
    }
    Ok(found)
}

/// What is known about one file. Never fails: what is wrong is part of the answer.
pub fn inspect(path: &Path) -> FileInfo {
    let bytes = std::fs::metadata(path).map_or(0, |data| data.len());
    let mut file = FileInfo {
        path: path.to_path_buf(),
        kind: Kind::Unreadable,
        bytes,
        problem: None,
        facts: Vec::new(),
        datasets: Vec::new(),
    };
    if let Err(error) = file.fill() {
        // The path stands in the heading already.
        let text = error.to_string();
        let own = format!("{}: ", path.display());
        file.problem = Some(text.strip_prefix(&own).unwrap_or(&text).to_string());
    }
    file
}

impl FileInfo {
    fn fact(&mut self, name: &'static str, value: impl Into<Value>) {
        self.facts.push((name, value.into()));
    }

    fn fill(&mut self) -> Result<(), InspectError> {
        let path = self.path.clone();
        let io = || InspectError::io(&path, "read");
        if is_state(&path).map_err(io())? {
            return self.state(&path);
        }
        if !is_hdf5(&path).map_err(io())? {
            return self.table_or_summary(&path);
        }
        let contents = Contents::read(&path)?;
        self.datasets.clone_from(&contents.datasets);
        let fclib = ["fclib_local", "fclib_global"].into_iter().find(|name| contents.has(name));
        if let Some(group) = fclib {
            self.fclib(&contents, group);
            Ok(())
        } else if contents.has("VTKHDF")
            && contents.text_attribute("VTKHDF", "Type").as_deref() == Some("PolyData")
        {
            self.frames(&path, &contents)
        } else if contents.has("series") {
            self.series(&contents);
            Ok(())
        } else if contents.has("verts") && contents.has("pos0") {
            self.kind = Kind::Packing;
            let bodies = contents.dataset("verts").and_then(|verts| verts.shape.first().copied());
            self.fact("bodies", bodies.unwrap_or(0));
            Ok(())
        } else {
            self.kind = Kind::ForeignHdf5;
            Ok(())
        }
    }

    fn frames(&mut self, path: &Path, contents: &Contents) -> Result<(), InspectError> {
        self.kind = Kind::Frames;
        let file = FrameFile::open(path)?;
        if file.arrays().any(|(name, _)| name == "body_ids") {
            self.kind = Kind::Contacts;
        }
        let times = file.times();
        self.fact("steps", times.len());
        if let (Some(&first), Some(&last)) = (times.first(), times.last()) {
            self.fact("first_time", first);
            self.fact("last_time", last);
            let (points, cells) = file.sizes(times.len() - 1)?;
            let in_all: usize =
                (0..times.len()).map(|step| file.sizes(step).map_or(0, |(count, _)| count as usize)).sum();
            self.fact("points_in_last_step", points);
            self.fact("points_in_all_steps", in_all);
            let kinds = [CellKind::Vertices, CellKind::Lines, CellKind::Polygons];
            let named =
                kinds.map(|kind| format!("{} {}", cells[kind as usize], format!("{kind:?}").to_lowercase()));
            self.fact("cells_in_last_step", named.join(", "));
        }
        let mut fields = Vec::new();
        for (name, components) in file.arrays() {
            let kind = contents.dataset(&format!("VTKHDF/PointData/{name}")).map_or("", |info| &info.kind);
            fields.push(json!({ "name": name, "type": kind, "components": components }));
        }
        self.fact("fields", fields);
        if let Some(points) = contents.dataset("VTKHDF/Points") {
            self.fact("precision", points.kind.clone());
        }
        self.packing();
        self.run_beside();
        Ok(())
    }

    fn series(&mut self, contents: &Contents) {
        self.kind = Kind::Series;
        let columns: Vec<&DatasetInfo> =
            contents.datasets.iter().filter(|dataset| dataset.name.starts_with("series/")).collect();
        let names: Vec<String> =
            columns.iter().map(|column| column.name.trim_start_matches("series/").to_string()).collect();
        self.fact(
            "rows",
            columns.iter().filter_map(|column| column.shape.first()).min().copied().unwrap_or(0),
        );
        self.fact("columns", names);
        self.packing();
        self.run_beside();
    }

    fn fclib(&mut self, contents: &Contents, group: &str) {
        self.kind = Kind::FclibProblem;
        self.fact("formulation", group.trim_start_matches("fclib_"));
        let size = |name: &str| contents.dataset(&format!("{group}/{name}")).map(DatasetInfo::length);
        if let Some(contacts) = size("vectors/mu") {
            self.fact("contacts", contacts);
        }
        if let Some(unknowns) = size("vectors/q").or_else(|| size("vectors/f")) {
            self.fact("unknowns", unknowns);
        }
        let guesses = contents.datasets.iter().any(|dataset| dataset.name.starts_with("guesses/"));
        let solution = contents.datasets.iter().any(|dataset| dataset.name.starts_with("solution/"));
        self.fact("guesses", guesses);
        self.fact("solution", solution);
        self.packing();
    }

    fn state(&mut self, path: &Path) -> Result<(), InspectError> {
        self.kind = Kind::State;
        // The seal is checked first: HDF5 may crash on a damaged file.
        let file = match StateFile::open(path, &Solo) {
            Ok(file) => file,
            Err(error) => {
                self.fact("seal", "broken");
                return Err(error.into());
            }
        };
        self.fact("seal", "whole");
        let header = file.header().clone();
        self.fact("step", header.step);
        self.fact("time", header.time);
        self.fact("bodies", file.body_count());
        self.fact("impulses", file.impulse_count());
        self.fact("code_version", header.code_version.clone());
        // Open twice at a time, with and without a lock, HDF5 refuses.
        drop(file);
        self.case(&header);
        self.fact("groups", header.groups.clone());
        self.fact("materials", header.materials.clone());
        self.datasets = Contents::read(path)?.datasets;
        self.packing();
        Ok(())
    }

    /// Title, hash and machines of the case that a state keeps.
    fn case(&mut self, header: &StateHeader) {
        let hash = xxhash_rust::xxh3::xxh3_128(header.case.as_bytes());
        self.fact("case_hash", format!("{hash:032x}"));
        let own = header.case.split("\n# include ").next().unwrap_or_default();
        let Ok(case) = own.parse::<toml::Table>() else { return };
        if let Some(title) = case.get("title").and_then(|title| title.as_str()) {
            self.fact("case_title", title);
        }
        let machines = case.get("machine").and_then(|machines| machines.as_array());
        let name =
            |machine: &toml::Value| machine.get("name").and_then(|name| name.as_str()).map(String::from);
        if let Some(machines) = machines {
            self.fact("machines", machines.iter().filter_map(name).collect::<Vec<String>>());
        }
    }

    fn table_or_summary(&mut self, path: &Path) -> Result<(), InspectError> {
        if path.extension().is_some_and(|extension| extension == "json") {
            return self.summary(path);
        }
        let table = TextTable::read(path);
        let Ok(table) = table else {
            self.kind = Kind::Foreign;
            return Err(InspectError::unfit(path, "is neither HDF5 nor a table of numbers"));
        };
        self.kind = Kind::Series;
        self.fact("rows", table.rows());
        let time = table.column("time").unwrap_or_default();
        if let (Some(&first), Some(&last)) = (time.first(), time.last()) {
            self.fact("first_time", first);
            self.fact("last_time", last);
        }
        if table.torn > 0 {
            self.fact("torn_lines", table.torn);
        }
        self.fact("columns", table.names);
        self.run_beside();
        Ok(())
    }

    fn summary(&mut self, path: &Path) -> Result<(), InspectError> {
        let text = std::fs::read_to_string(path).map_err(InspectError::io(path, "read"))?;
        let summary: Value = serde_json::from_str(&text)
            .map_err(|error| InspectError::unfit(path, format!("is not JSON: {error}")))?;
        if summary.get("status").is_none() || summary.get("version").is_none() {
            self.kind = Kind::Foreign;
            return Err(InspectError::unfit(path, "is not the summary of a run"));
        }
        self.kind = Kind::Summary;
        let names = [
            "status",
            "message",
            "title",
            "case",
            "version",
            "ranks",
            "threads",
            "steps",
            "last_step",
            "time",
            "bodies",
            "free_bodies",
            "not_converged",
            "seconds_total",
            "digest",
        ];
        for name in names {
            match summary.get(name) {
                None | Some(Value::Null) => {}
                Some(value) => self.fact(name, value.clone()),
            }
        }
        Ok(())
    }

    /// How the datasets are packed, all together.
    fn packing(&mut self) {
        let packed: u64 = self.datasets.iter().map(|dataset| dataset.bytes).sum();
        let unpacked: u64 = self.datasets.iter().map(|dataset| dataset.bytes_unpacked).sum();
        let mut methods: Vec<&str> =
            self.datasets.iter().map(|dataset| dataset.compression.as_str()).collect();
        methods.sort_unstable();
        methods.dedup();
        methods.retain(|method| !method.is_empty());
        let methods = if methods.is_empty() { "none".to_string() } else { methods.join(", ") };
        self.fact("compression", methods);
        self.fact("datasets_packed", packed);
        self.fact("datasets_unpacked", unpacked);
    }

    /// The run that the file belongs to, from the summary beside it.
    fn run_beside(&mut self) {
        let Some(text) = std::fs::read_to_string(self.path.with_file_name("summary.json")).ok() else {
            return;
        };
        let Ok(summary) = serde_json::from_str::<Value>(&text) else { return };
        let word = |name: &str| summary.get(name).and_then(Value::as_str).unwrap_or("?").to_string();
        let number = |name: &str| summary.get(name).and_then(Value::as_u64).unwrap_or(0);
        let run = format!(
            "{}, {}, breccia {}, {} ranks x {} threads",
            word("title"),
            word("status"),
            word("version"),
            number("ranks"),
            number("threads")
        );
        self.fact("run", run);
    }

    fn text(&self, all_datasets: bool) -> String {
        // Writing to a String cannot fail.
        let mut text = format!("{}: {}, {}\n", self.path.display(), self.kind.words(), size(self.bytes));
        for (name, value) in &self.facts {
            let value =
                if name.starts_with("datasets_") { size(value.as_u64().unwrap_or(0)) } else { shown(value) };
            let _ = writeln!(text, "  {:<22}{value}", name.replace('_', " "));
        }
        if let Some(problem) = &self.problem {
            let _ = writeln!(text, "  {:<22}{problem}", "problem");
        }
        if all_datasets || self.kind == Kind::ForeignHdf5 {
            for dataset in &self.datasets {
                let shape: Vec<String> = dataset.shape.iter().map(usize::to_string).collect();
                let packing = if dataset.compression.is_empty() {
                    String::new()
                } else {
                    format!(", {}", dataset.compression)
                };
                let _ = writeln!(
                    text,
                    "  {:<44} {} [{}]  {}{packing}",
                    dataset.name,
                    dataset.kind,
                    shape.join(", "),
                    size(dataset.bytes)
                );
            }
        }
        text
    }
}

impl DatasetInfo {
    fn length(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A value as people read it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<String>>().join(", "),
        Value::Object(item) => {
            let word = |name: &str| item.get(name).map(shown).unwrap_or_default();
            let count = item.get("components").or(item.get("count")).and_then(Value::as_u64).unwrap_or(1);
            let times = if count == 1 { String::new() } else { format!(" x {count}") };
            format!("{} ({}{times})", word("name"), word("type"))
        }
        other => other.to_string(),
    }
}

/// Bytes as people read them.
pub fn size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_words() {
        assert_eq!(shown(&json!(["a", "b"])), "a, b");
        assert_eq!(shown(&json!({"name": "velocity", "type": "f32", "components": 3})), "velocity (f32 x 3)");
        assert_eq!(shown(&json!(0.5)), "0.5");
        assert_eq!(size(2_460_000), "2.5 MB");
    }
}
