//! What `breccia solve` prints.

use super::{Row, SolveArguments, Solved};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Prints rows as they come, so that a long list of problems can be watched.
pub struct Printer {
    json: bool,
    name_width: usize,
    /// A table; otherwise some lines about the only problem.
    table: bool,
    header_due: bool,
}

impl Printer {
    pub fn new(arguments: &SolveArguments) -> Self {
        let names = arguments.files.iter().map(|file| short_name(file).chars().count());
        Self {
            json: arguments.json,
            name_width: names.max().unwrap_or(0).max("problem".len()),
            table: arguments.files.len() > 1 || arguments.profile.is_some(),
            header_due: true,
        }
    }

    pub fn print(&mut self, row: &Row) {
        match &row.result {
            Err(message) => {
                let _ = writeln!(std::io::stderr(), "error: {message}");
            }
            Ok(_) if self.json => {}
            Ok(solved) if self.table => self.line(row, solved),
            Ok(solved) => say(&paragraph(row, solved)),
        }
    }

    fn line(&mut self, row: &Row, solved: &Solved) {
        let width = self.name_width;
        if std::mem::take(&mut self.header_due) {
            say(&format!(
                "{:width$}  {:9}  {:>8}  {:11}  {:>7}  {:>6}  {:>8}  {:>9}  {:>24}",
                "problem",
                "form",
                "contacts",
                "solver",
                "sweeps",
                "newton",
                "error",
                "time s",
                "ns per sweep and contact"
            ));
        }
        say(&format!(
            "{:width$}  {:9}  {:>8}  {:11}  {:>7}  {:>6}  {:>8.1e}  {:>9.4}  {:>24}{}",
            short_name(&row.file),
            format!("{} {}D", solved.form, solved.dimension),
            solved.contacts,
            row.solver,
            solved.sweeps,
            solved.newton_steps,
            solved.error,
            solved.seconds,
            visit(solved),
            if solved.converged { "" } else { "  not solved" },
        ));
        if let Some(other) = &solved.other_start {
            say(&format!(
                "{:width$}  from another start: impulses differ by {:.1e}, relative velocities by {:.1e}{}",
                "",
                other.impulses_differ_by,
                other.velocities_differ_by,
                if other.converged { "" } else { "  not solved" },
            ));
        }
    }

    pub fn finish(&self, rows: &[Row]) {
        if self.json {
            let list: Vec<Value> = rows.iter().map(object).collect();
            say(&format!("{:#}", Value::from(list)));
        }
    }
}

/// Newton's time cannot be separated, so only sweeps alone have a time of their own.
fn visit(solved: &Solved) -> String {
    let alone = solved.nanoseconds_per_sweep_and_contact.filter(|_| solved.newton_steps == 0);
    alone.map_or("-".to_string(), |time| format!("{time:.0}"))
}

fn paragraph(row: &Row, solved: &Solved) -> String {
    let newton = match solved.newton_steps {
        0 => String::new(),
        steps => format!(", {steps} Newton steps"),
    };
    let each = match visit(solved).as_str() {
        "-" => String::new(),
        time => format!(", {time} ns per sweep and contact"),
    };
    let other = solved.other_start.as_ref().map_or(String::new(), |other| {
        format!(
            "\nfrom another start ({}): impulses differ by {:.1e}, relative velocities by {:.1e}, of their norms",
            if other.converged { "solved" } else { "not solved" },
            other.impulses_differ_by,
            other.velocities_differ_by
        )
    });
    format!(
        "{}: {} problem in {}D, {} contacts, {} blocks\n{} by {}: {} sweeps{newton}, error {:.3e}, {:.4} s{each}{other}",
        row.file.display(),
        solved.form,
        solved.dimension,
        solved.contacts,
        solved.blocks,
        if solved.converged { "solved" } else { "not solved" },
        row.solver,
        solved.sweeps,
        solved.error,
        solved.seconds,
    )
}

/// One file and solver, for scripts.
fn object(row: &Row) -> Value {
    let mut value = match &row.result {
        // Numbers and words only: it cannot fail. An infinite error becomes null.
        Ok(solved) => serde_json::to_value(solved).unwrap_or(Value::Null),
        Err(message) => json!({ "failure": message }),
    };
    value["file"] = row.file.display().to_string().into();
    value["solver"] = row.solver.into();
    value
}

fn short_name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A reader that has gone (`| head`) is no failure.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
