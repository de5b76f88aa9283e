//! What a run writes, and when it saves its state.

use crate::input::case::{Checkpoint, Output};
use crate::input::language::reader::TableReader;

pub(super) fn read_output(table: &TableReader, time_step: Option<f64>) -> Option<Output> {
    let intervals = ["interval", "series_interval", "force_check"];
    let [interval, series_interval, force_check] = intervals.map(|key| {
        let interval = table.number(key);
        if let (Some(interval), Some(time_step)) = (interval, time_step)
            && interval < time_step * (1.0 - 1e-9)
        {
            let message =
                format!("found {interval} s, expected at least simulation.time_step, {time_step} s");
            table.relation(key, message);
        }
        interval
    });
    let force_window = table.number("force_window");
    let force_accuracy = table.number("force_accuracy");
    let fields = table.field("fields").and_then(|field| field.choices());
    let contacts = table.choice("contacts");
    let spheres = table.choice("spheres");
    let sphere_refinement = table.count("sphere_refinement");
    let precision = table.choice("precision");
    let compression = table.count("compression");
    let on_write_error = table.choice("on_write_error");
    Some(Output {
        interval,
        series_interval,
        force_check,
        force_window: force_window?,
        force_accuracy: force_accuracy?,
        fields: fields?,
        contacts: contacts?,
        spheres: spheres?,
        sphere_refinement: sphere_refinement?,
        precision: precision?,
        compression: compression?,
        on_write_error: on_write_error?,
    })
}

pub(super) fn read_checkpoint(table: &TableReader) -> Option<Checkpoint> {
    let steps = table.count("steps");
    let (minutes, keep) = (table.number("minutes"), table.count("keep"));
    Some(Checkpoint { steps, minutes: minutes?, keep: keep? })
}
