//! "Did you mean …?": the known word that is nearest to what was written.

/// The candidate with the fewest single-character edits (insert, delete, replace, swap of neighbours) from `word`, if it
/// is near enough to be meant: at most a third of the letters wrong. The first of equals wins.
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
    fn only_near_words_are_meant() {
        let words = ["tolerance", "maximum_sweeps", "theta"];
        assert_eq!(closest("tolerence", words.into_iter()), Some("tolerance"));
        assert_eq!(closest("Theta", words.into_iter()), Some("theta"));
        assert_eq!(closest("banana", words.into_iter()), None);
        assert_eq!(closest("q", ["x"].into_iter()), None);
    }
}
