//! Names that cannot stand side by side in one folder.

use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization as _;

/// The name with letter case aside: two names with the same fold are the same file to some systems.
pub fn fold(name: &str) -> String {
    name.nfc().collect::<String>().to_lowercase().nfc().collect()
}

/// The pairs of names of which one is, letter case aside, the other or a folder above the other.
///
/// The pairs come in the order of `names`, each name once with the first equal one and once with
/// each name that would have to be a folder above it.
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
