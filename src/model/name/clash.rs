//! Names that cannot be in the same folder.

use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization as _;

/// Folds case: two names with the same fold are the same file on some systems.
pub fn fold(name: &str) -> String {
    // Most names by far, and one run may have 262,144 of them.
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.nfc().collect::<String>().to_lowercase().nfc().collect()
}

/// Returns the pairs of names where one equals the other or is its parent folder, ignoring case.
///
/// In the order of `names`, each name is paired with the first equal one and with each parent.
pub fn clashes<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let names: Vec<(&str, String)> = names.map(|name| (name, fold(name))).collect();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, (_, folded)) in names.iter().enumerate() {
        first.entry(folded).or_insert(at);
    }
    let mut pairs = Vec::new();
    for (at, (name, folded)) in names.iter().enumerate() {
        let above = folded.match_indices('/').map(|(end, _)| &folded[..end]);
        let whole = Some(folded.as_str()).filter(|whole| first[whole] != at);
        for other in above.chain(whole).filter_map(|key| first.get(key)) {
            pairs.push((names[*other].0.to_owned(), (*name).to_owned()));
        }
    }
    pairs
}
