//! The language of case files: documents with lines, keys with kinds and units, and what is made of the lists
//! of keys.

pub(super) mod document;
pub(super) mod errors;
pub(super) mod keys;
pub(super) mod listing;
pub(super) mod manual;
pub(super) mod names;
pub(super) mod reader;
pub(super) mod schema;
mod suspicion;
pub(super) mod units;
pub(super) mod values;
