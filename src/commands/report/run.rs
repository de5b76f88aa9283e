//! Everything that a directory holds about its run. What is missing or damaged becomes a note, not a failure.

use crate::commands::inspect::InspectError;
use crate::commands::inspect::poses::newest_state;
use crate::commands::inspect::text_table::TextTable;
use crate::commands::run::ForceError;
use crate::geometry::Vec3;
use crate::output::reader::FrameFile;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub struct Run {
    pub directory: PathBuf,
    /// `Null` if there is none.
    pub summary: Value,
    pub series: Option<TextTable>,
    /// Other tables with a column `time`, by the stems of their names.
    pub tables: Vec<(String, TextTable)>,
    pub frames: Option<FrameFile>,
    /// The text of the case, and where it was found.
    pub case: Option<(String, String)>,
    /// When the summary was last written, s since 1970.
    pub written: Option<u64>,
    /// Names and sizes of the files.
    pub files: Vec<(String, u64)>,
    pub notes: Vec<String>,
}

impl Run {
    pub fn read(directory: &Path) -> Result<Self, InspectError> {
        let entries = std::fs::read_dir(directory).map_err(InspectError::io(directory, "list"))?;
        let mut names: Vec<(String, u64)> = entries
            .flatten()
            .filter(|entry| entry.path().is_file())
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, entry.metadata().map_or(0, |data| data.len()))
            })
            .collect();
        names.sort();
        let mut run = Run {
            directory: directory.to_path_buf(),
            summary: Value::Null,
            series: None,
            tables: Vec::new(),
            frames: None,
            case: None,
            written: None,
            files: names,
            notes: Vec::new(),
        };
        run.read_summary();
        run.read_tables();
        if run.has("bodies.vtkhdf") {
            run.frames = match FrameFile::open(&directory.join("bodies.vtkhdf")) {
                Ok(frames) => Some(frames),
                Err(error) => {
                    run.notes.push(format!("The frames cannot be read: {error}."));
                    None
                }
            };
        }
        if run.summary.is_null() && run.series.is_none() && run.frames.is_none() {
            let problem = "holds no results of a run: neither summary.json nor series.csv nor bodies.vtkhdf can be read there";
            return Err(InspectError::unfit(directory, problem));
        }
        run.read_case();
        Ok(run)
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|(own, _)| own == name)
    }

    /// How well forces are known; nothing if they were not checked.
    pub fn force_errors(&self) -> Vec<ForceError> {
        let table = self.tables.iter().find(|(stem, _)| stem == "force_errors");
        table.map_or(Vec::new(), |(_, table)| ForceError::of_table(table))
    }

    fn read_summary(&mut self) {
        let path = self.directory.join("summary.json");
        let Ok(text) = std::fs::read_to_string(&path) else {
            self.notes.push("There is no summary.json; what it would tell is missing here.".into());
            return;
        };
        match serde_json::from_str(&text) {
            Ok(summary) => self.summary = summary,
            Err(error) => self.notes.push(format!("summary.json cannot be read: {error}.")),
        }
        let written = std::fs::metadata(&path).and_then(|data| data.modified()).ok();
        let since = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        self.written = since.map(|since| since.as_secs());
    }

    fn read_tables(&mut self) {
        let stems: Vec<String> =
            self.files.iter().filter_map(|(name, _)| name.strip_suffix(".csv").map(String::from)).collect();
        for stem in stems {
            match TextTable::read(&self.directory.join(format!("{stem}.csv"))) {
                Ok(table) => {
                    if table.torn > 0 {
                        self.notes.push(format!(
                            "{stem}.csv ends in a torn line, as a run that was killed leaves it."
                        ));
                    }
                    if stem == "series" {
                        self.series = Some(table);
                    } else if table.column("time").is_some() {
                        self.tables.push((stem, table));
                    }
                }
                Err(error) if stem == "series" => {
                    self.notes.push(format!("The series cannot be read: {error}."))
                }
                // A table of somebody else's is no part of the story.
                Err(_) => {}
            }
        }
    }

    /// From the newest state, which keeps the case as it was run; else from the file that the summary names.
    fn read_case(&mut self) {
        if let Some((path, file)) = newest_state(&self.directory) {
            let name = path.strip_prefix(&self.directory).unwrap_or(&path).display().to_string();
            self.case = Some((file.header().case.clone(), format!("as kept in {name}")));
            return;
        }
        let Some(path) = self.summary.get("case").and_then(Value::as_str) else { return };
        if let Ok(text) = std::fs::read_to_string(path) {
            self.case = Some((text, format!("{path}, as it is now")));
        }
    }

    pub fn word(&self, name: &str) -> Option<&str> {
        self.summary.get(name).and_then(Value::as_str)
    }

    /// A number of the summary; `/` leads into objects.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.summary.pointer(&format!("/{name}")).and_then(Value::as_f64)
    }

    fn toml(&self) -> Option<toml::Table> {
        let (text, _) = self.case.as_ref()?;
        text.split("\n# include ").next()?.parse().ok()
    }

    /// A number that `--set KEY=VALUE` gave, as the kept case says.
    fn set_on_command_line(&self, key: &str) -> Option<f64> {
        let (text, _) = self.case.as_ref()?;
        let prefix = format!("# --set {key}=");
        text.lines().rev().find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok())
    }

    pub fn tolerance(&self) -> Option<f64> {
        let written = || self.toml()?.get("solver")?.get("tolerance")?.as_float();
        self.set_on_command_line("solver.tolerance").or_else(written)
    }

    /// Against gravity, along the axis nearest to it; z if nobody says.
    pub fn up(&self) -> Vec3 {
        let gravity = || {
            let simulation = self.toml()?;
            let list = simulation.get("simulation")?.get("gravity")?.as_array()?.clone();
            let part =
                |value: &toml::Value| value.as_float().or(value.as_integer().map(|number| number as f64));
            let parts: Option<Vec<f64>> = list.iter().map(part).collect();
            parts.filter(|parts| parts.len() == 3).map(|parts| Vec3::from_column_slice(&parts))
        };
        let Some(gravity) = gravity().filter(|gravity| gravity.norm() > 0.0) else { return Vec3::z() };
        let axis = gravity.iamax();
        let mut up = Vec3::zeros();
        up[axis] = -gravity[axis].signum();
        // A tilted gravity is a trick to tilt the ground: z stays up as long as it points there at all.
        if gravity.z < -0.3 * gravity.norm() { Vec3::z() } else { up }
    }

    /// Name and kind of each group.
    pub fn groups(&self) -> Vec<(String, String)> {
        let groups = self.summary.get("groups").and_then(Value::as_array).cloned().unwrap_or_default();
        let word =
            |group: &Value, name: &str| group.get(name).and_then(Value::as_str).unwrap_or("").to_string();
        groups.iter().map(|group| (word(group, "name"), word(group, "kind"))).collect()
    }
}

/// `2026-11-16 06:15 UTC` for seconds since 1970.
pub fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years, so that the leap day comes last.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) =
        (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", 1e3 * s),
        s if s < 99.5 => format!("{s:.1} s"),
        s if s < 5940.0 => format!("{:.0} min {:.0} s", (s / 60.0).floor(), s % 60.0),
        s => format!("{:.0} h {:.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_durations() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_794_809_700), "2026-11-16 06:15 UTC");
        assert_eq!(
            [0.25, 27.99, 200.0, 7500.0].map(duration),
            ["250 ms", "28.0 s", "3 min 20 s", "2 h 5 min"]
        );
    }
}
