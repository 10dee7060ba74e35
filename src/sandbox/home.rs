//! Chooses the links in a worker's private home directory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::access_map::{Access, AccessMap};
use super::policy::Surroundings;
use super::tools::TOOLS;

/// Returns the places in a private home directory with their targets. Replaces a folder around
/// caches by its entries without the caches: the private home has its own folders there, in which
/// tools create what is missing.
pub(super) fn at_home(
    map: &AccessMap,
    around: &Surroundings,
    home: &Path,
    caches: &BTreeSet<PathBuf>,
) -> Vec<(PathBuf, PathBuf)> {
    let reached = map.places().filter(|(_, access)| *access != Access::Hidden);
    let links = map.links().map(|(link, _)| link.to_owned()).filter(|link| {
        // A link in the home directory to something reachable.
        fs::canonicalize(link).is_ok_and(|real| map.access(&real) != Access::Hidden)
    });
    let all = reached.map(|(place, _)| place.to_owned()).chain(links);
    let moved = moved(map, around);
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    for path in all {
        let Some(below) = around.usual(&path).or_else(|| path.strip_prefix(home).ok().map(Path::to_owned)) else {
            continue;
        };
        if !below.as_os_str().is_empty() && !moved.iter().any(|(tool, _)| below.starts_with(tool)) {
            found.push((below, path));
        }
    }
    found.extend(moved);
    // A path moved by an XDG variable replaces the one at the usual place.
    found.sort_by_cached_key(|(below, path)| (below.clone(), around.usual(path).is_none()));
    found.dedup_by(|(later, _), (first, _)| later == first);
    // A linked folder includes everything below it.
    let tops: Vec<PathBuf> = found.iter().map(|(below, _)| below.clone()).collect();
    found.retain(|(below, _)| !tops.iter().any(|top| top != below && below.starts_with(top)));
    let mut parts = Vec::new();
    for (below, path) in found {
        take_apart(map, below, path, caches, &mut parts);
    }
    parts
}

/// Returns the tools that a variable moves along with their caches. Workers get that variable with
/// the tool's usual place in their own home.
fn moved(map: &AccessMap, around: &Surroundings) -> Vec<(PathBuf, PathBuf)> {
    TOOLS
        .tools
        .iter()
        .filter(|tool| {
            let name = tool.variable.map(|(name, _)| name);
            name.is_some()
                && TOOLS.caches.iter().any(|cache| cache.variable.map(|(variable_name, _)| variable_name) == name)
        })
        .filter_map(|tool| {
            let moved = tool.moved(|name| around.variable(name)).next()?;
            let is_given = fs::canonicalize(&moved).is_ok_and(|real| map.access(&real) != Access::Hidden);
            is_given.then(|| (PathBuf::from(tool.path), moved))
        })
        .collect()
}

/// Adds a place below a home directory, or its entries if a cache lies below it.
fn take_apart(
    map: &AccessMap,
    below: PathBuf,
    path: PathBuf,
    caches: &BTreeSet<PathBuf>,
    parts: &mut Vec<(PathBuf, PathBuf)>,
) {
    if caches.contains(&below) {
        return;
    }
    let holds_cache = caches.range(below.clone()..).next().is_some_and(|cache| cache.starts_with(&below));
    let is_read = fs::canonicalize(&path).is_ok_and(|real| map.access(&real) == Access::Read);
    match fs::read_dir(&path) {
        Ok(entries) if holds_cache && is_read => {
            for entry in entries.flatten() {
                let (below, child) = (below.join(entry.file_name()), entry.path());
                if fs::canonicalize(&child).is_ok_and(|real| map.access(&real) != Access::Hidden) {
                    take_apart(map, below, child, caches, parts);
                }
            }
        }
        _ => parts.push((below, path)),
    }
}
