//! "Did you mean …?": the known word that is nearest to what was written.

/// The candidate with the fewest single-character edits (insert, delete, replace, swap of neighbours) from
/// `word`, if it is near enough to be meant: at most a third of the letters wrong. The first of equals wins.
pub(crate) fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).take(64).collect();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).take(64).collect();
        let edits = distance(&letters, &other);
        let allowed = (letters.len().max(other.len()) / 3).max(1);
        if edits <= allowed && edits < other.len() && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Names that are listed in full; of more, only the nearest [`NEAREST`].
const FEW: usize = 8;
const NEAREST: usize = 5;

/// "one of …": what could have been meant by `word`. All names in their order if they are few, otherwise the
/// nearest ones and the number of the others.
pub(crate) fn one_of<'a>(
    word: &str,
    names: impl Iterator<Item = &'a str>,
    written: impl Fn(&str) -> String,
) -> String {
    let mut names: Vec<&str> = names.collect();
    let all = names.len();
    if all > FEW {
        let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).take(64).collect();
        names.sort_by_cached_key(|name| {
            let other: Vec<char> = name.chars().flat_map(char::to_lowercase).take(64).collect();
            // A part of a name is nearer than its length makes it.
            let part = !word.is_empty() && name.contains(word);
            if part { 1 } else { distance(&letters, &other) }
        });
        names.truncate(NEAREST);
    }
    let list = names.iter().map(|name| written(name)).collect::<Vec<_>>().join(", ");
    match all - names.len() {
        0 => format!("one of {list}"),
        others => format!("one of {list} or {others} others"),
    }
}

/// Optimal string alignment distance, three rows at a time.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i; right.len() + 1];
        for j in 1..=right.len() {
            let replaced = above[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let count =
            |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("raduis", "radius", 1),
            ("abc", "abc", 0),
        ] {
            assert_eq!(count(a, b), expected, "{a} {b}");
            assert_eq!(count(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn of_many_names_the_nearest_are_listed() {
        let quoted = |name: &str| format!("{name:?}");
        let few = ["b", "a"];
        assert_eq!(one_of("x", few.into_iter(), quoted), "one of \"b\", \"a\"");
        let many: Vec<String> =
            (0..75).map(|k| format!("arm{k}.position")).chain(["lift.velocity".into()]).collect();
        let listed = one_of("lift.velocty", many.iter().map(String::as_str), str::to_string);
        assert!(listed.starts_with("one of lift.velocity, arm0.position, "), "{listed}");
        assert!(listed.ends_with(" or 71 others"), "{listed}");
    }

    #[test]
    fn only_near_words_are_meant() {
        let words = ["tolerance", "maximum_sweeps", "theta"];
        assert_eq!(closest("tolerence", words.into_iter()), Some("tolerance"));
        assert_eq!(closest("Theta", words.into_iter()), Some("theta"));
        assert_eq!(closest("banana", words.into_iter()), None);
        assert_eq!(closest("q", ["x"].into_iter()), None);
    }
}
