//! `--max-time`: a run ends in good time before, by what its steps and checkpoints have taken so far.

use std::time::{Duration, Instant};

/// For closing files, the summary and the end of the program: s, and besides a share of the time allowed, up
/// to so many seconds. A busy machine takes longer than two seconds to end MPI.
const CLOSING: f64 = 2.0;
const CLOSING_SHARE: f64 = 0.01;
const CLOSING_MOST: f64 = 30.0;
/// Steps and checkpoints may take longer than those before.
const MARGIN: f64 = 2.0;
/// Share of the longest step that is kept from step to step: what was long ago need not come again.
const FADING: f64 = 0.99;

/// On every rank; by the clock of rank 0, which decides for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimit {
    ends_by: Option<Instant>,
    /// What is kept for the end, s.
    closing: f64,
    /// When a checkpoint is written to know how long one takes, if none was written before.
    half: Option<Instant>,
    /// Longest of the last ones, with all that is done between steps, s.
    step: f64,
    /// Longest, s.
    save: Option<f64>,
    last: Instant,
}

impl TimeLimit {
    pub fn new(ends_by: Option<Instant>) -> Self {
        let now = Instant::now();
        let allowed = ends_by.map_or(Duration::ZERO, |end| end.saturating_duration_since(now));
        let half = ends_by.map(|_| now + allowed / 2);
        let closing = CLOSING + (CLOSING_SHARE * allowed.as_secs_f64()).min(CLOSING_MOST);
        Self { ends_by, closing, half, step: 0.0, save: None, last: now }
    }

    /// A step has been made.
    pub fn stepped(&mut self) {
        let now = Instant::now();
        self.step = (self.step * FADING).max((now - self.last).as_secs_f64());
        self.last = now;
    }

    /// A checkpoint has been written; its time is not that of a step.
    pub fn saved(&mut self, seconds: f64) {
        self.save = Some(self.save.unwrap_or(0.0).max(seconds));
        self.last = Instant::now();
    }

    /// Whether a checkpoint is due only because it is not known how long one takes.
    pub fn wants_measure(&self) -> bool {
        self.save.is_none() && self.half.is_some_and(|half| Instant::now() >= half)
    }

    /// Whether one more step might leave too little time for the checkpoint.
    pub fn is_near(&self) -> bool {
        let needed = MARGIN * (self.step + self.save.unwrap_or(0.0)) + self.closing;
        let left = |end: Instant| end.saturating_duration_since(Instant::now()).as_secs_f64();
        self.ends_by.is_some_and(|end| left(end) < needed)
    }
}

/// A duration as people and schedulers write it: `3h50m`, `90s`, `1.5h`, or seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: expected one like 3h50m, 90s or 600 (seconds)");
    let (mut seconds, mut rest, mut largest) = (0.0, text.trim(), f64::INFINITY);
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        let unit = match (rest[end..].chars().next(), largest == f64::INFINITY) {
            (Some('d'), _) => 86400.0,
            (Some('h'), _) => 3600.0,
            (Some('m'), _) => 60.0,
            (Some('s'), _) | (None, true) => 1.0,
            _ => return Err(wrong()),
        };
        // Each unit once, the largest first.
        if unit >= largest {
            return Err(wrong());
        }
        largest = unit;
        seconds += number * unit;
        rest = rest[end..].get(1..).unwrap_or_default();
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let read = |text: &str| parse_duration(text).map(|duration| duration.as_secs_f64());
        for (text, seconds) in [
            ("3h50m", 13800.0),
            ("90s", 90.0),
            ("1.5h", 5400.0),
            ("600", 600.0),
            ("0", 0.0),
            ("1d2h3m4s", 93784.0),
        ] {
            assert_eq!(read(text), Ok(seconds), "{text}");
        }
        for text in ["", "h", "3x", "3h50", "5m3h", "3h3h", "-3s", "1e9h", "..s", "3:50:00", "3h 50m"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_run_ends_in_good_time() {
        let limit = |seconds: u64| TimeLimit::new(Some(Instant::now() + Duration::from_secs(seconds)));
        assert!(!TimeLimit::new(None).is_near() && !TimeLimit::new(None).wants_measure());
        assert!(limit(0).is_near() && limit(0).wants_measure());
        let mut long = limit(1000);
        assert!(!long.is_near() && !long.wants_measure());
        long.saved(300.0);
        long.step = 100.0;
        assert!(!long.is_near(), "twice 400 s and twelve fit");
        long.step = 250.0;
        assert!(long.is_near());
        for _ in 0..200 {
            long.stepped();
        }
        assert!(long.step < 250.0 * 0.15 && !long.is_near(), "a long step is forgotten in time");
    }
}
