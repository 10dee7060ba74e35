//! Finds the files of a change that programs run by themselves, by the patterns of a data file.

use std::collections::BTreeSet;
use std::path::{Component, Path};
use std::sync::LazyLock;

use serde_json::Value;

use super::Error;
use crate::git::bare_shape;
use crate::git::merge::Scratch;
use crate::model::digest::Oid;

/// The most links that a path is followed through.
const MOST_LINKS: usize = 32;

/// The lines of the data file.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let lines = include_str!("run_by_itself.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Rule::read).collect()
});

/// One line of the data file.
struct Rule {
    parts: Vec<&'static str>,
    /// True if everything below the folder counts.
    is_folder: bool,
    /// The keys of a JSON file that count, or empty for the whole file.
    keys: Vec<&'static str>,
}

impl Rule {
    fn read(line: &'static str) -> Self {
        let mut words = line.split_whitespace();
        let pattern = words.next().unwrap_or_default();
        let parts = pattern.trim_end_matches('/').split('/').collect();
        Self { parts, is_folder: pattern.ends_with('/'), keys: words.collect() }
    }

    /// Returns true if the first parts of the pattern match the end of a path.
    fn ends(&self, path: &[&str], parts: usize) -> bool {
        let from = path.len().checked_sub(parts);
        from.is_some_and(|from| path[from..].iter().zip(&self.parts).all(|(name, part)| matches(name, part)))
    }

    /// Returns true if it matches a path.
    fn fits(&self, path: &[&str]) -> bool {
        let all = self.parts.len();
        self.ends(path, all) || self.is_folder && (all..path.len()).any(|end| self.ends(&path[..end], all))
    }

    /// Returns true if it matches a path, or something below a link at that path.
    fn fits_link(&self, path: &[&str]) -> bool {
        self.fits(path) || (1..self.parts.len()).any(|parts| self.ends(path, parts))
    }
}

/// Returns the paths of changes between two trees that a program runs by itself. `by_git` are the
/// places that git's configuration names. A removed file runs nothing.
pub(super) fn find(
    scratch: &Scratch,
    before: Oid,
    after: Oid,
    changes: &[(char, String)],
    by_git: &BTreeSet<String>,
) -> Result<BTreeSet<String>, Error> {
    let changed: Vec<&str> = changes.iter().filter(|(kind, _)| *kind != 'D').map(|(_, path)| path.as_str()).collect();
    if changed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut found = BTreeSet::new();
    for path in &changed {
        let parts: Vec<&str> = path.split('/').collect();
        for rule in RULES.iter().filter(|rule| rule.fits(&parts)) {
            if rule.keys.is_empty() || is_value_changed(scratch, before, after, path, &rule.keys)? {
                found.insert((*path).to_owned());
            }
        }
    }
    let links: BTreeSet<String> = scratch.links(after)?.into_iter().collect();
    for link in &links {
        let parts: Vec<&str> = link.split('/').collect();
        if !RULES.iter().any(|rule| rule.fits_link(&parts)) {
            continue;
        }
        let mut places = vec![link.clone()];
        places.extend(targets(scratch, after, link, &links)?);
        found.extend(changed.iter().filter(|path| is_near(path, &places)).map(ToString::to_string));
    }
    for place in by_git {
        let mut places = vec![place.clone()];
        places.extend(targets(scratch, after, place, &links)?);
        found.extend(changed.iter().filter(|path| is_near(path, &places)).map(ToString::to_string));
    }
    for path in &changed {
        let setting = bare_shape::find_setting(&|| scratch.git(), (before, after), Path::new(path))?;
        found.extend(setting.map(|setting| setting.display().to_string()));
    }
    Ok(found)
}

/// Returns true if a path is at or below one of the places, or a link or file above it.
fn is_near(path: &str, places: &[String]) -> bool {
    places.iter().any(|place| Path::new(path).starts_with(place) || Path::new(place).starts_with(path))
}

/// Returns the places of a tree that a path leads to through links at it or above it.
fn targets(scratch: &Scratch, tree: Oid, path: &str, links: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let (mut places, mut at) = (Vec::new(), path.to_owned());
    for _ in 0..MOST_LINKS {
        let ancestors = Path::new(&at).ancestors().filter_map(Path::to_str);
        let Some(link) = ancestors.filter(|above| !above.is_empty()).find(|above| links.contains(*above)) else {
            break;
        };
        let content = scratch.file(tree, link)?.unwrap_or_default();
        let Some(target) = led(link, &String::from_utf8_lossy(&content)) else { break };
        let rest = at[link.len()..].trim_start_matches('/');
        at = if rest.is_empty() { target } else { format!("{target}/{rest}") };
        places.push(at.clone());
    }
    Ok(places)
}

/// Returns the path in the tree that a link leads to, or `None` if it leads out of it.
fn led(link: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Returns true if one of the keys of a JSON file has another value than before, or the file cannot
/// be read as JSON.
fn is_value_changed(scratch: &Scratch, before: Oid, after: Oid, path: &str, keys: &[&str]) -> Result<bool, Error> {
    let read = |tree| -> Result<Option<Value>, Error> {
        Ok(scratch.file(tree, path)?.map(|bytes| serde_json::from_slice(&bytes).unwrap_or(Value::Bool(true))))
    };
    let (old, new) = (read(before)?, read(after)?);
    if !new.as_ref().is_some_and(Value::is_object) {
        return Ok(true);
    }
    Ok(keys.iter().any(|key| {
        let now = value_at(new.as_ref(), key);
        now.is_some() && now != value_at(old.as_ref(), key)
    }))
}

/// Returns the value of a document below a key.
fn value_at<'v>(document: Option<&'v Value>, key: &str) -> Option<&'v Value> {
    document?.pointer(&format!("/{}", key.replace('.', "/")))
}

/// Returns true if a name matches a pattern with at most one `*`, in any case.
fn matches(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.to_lowercase(), pattern.to_lowercase());
    match pattern.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        RULES.iter().any(|rule| rule.fits(&parts))
    }

    #[test]
    fn a_pattern_matches_the_end_of_a_path_in_any_folder_and_any_case() {
        for (path, expected) in [
            (".claude/settings.json", true),
            (".claude/settings.local.json", true),
            ("web/.Claude/Settings.JSON", true),
            (".claude/hooks/a/b.sh", true),
            ("x.claude/settings.json", false),
            ("settings.json", false),
            ("sub/.envrc", true),
            (".envrc.example", false),
            (".vscode/tasks.json", true),
            (".husky/_/pre-commit", true),
            ("docs/husky/x", false),
            ("team.code-workspace", true),
            ("src/package.json", true),
            ("package.json.md", false),
            (".cargo/config.toml", true),
            ("cargo/config.toml", false),
            ("src/main.rs", false),
        ] {
            assert_eq!(fits(path), expected, "{path}");
        }
    }

    #[test]
    fn a_link_matches_where_something_below_it_would() {
        assert!([".claude", "sub/.vscode", ".mcp.json", "gradle"].into_iter().all(is_ruled));
        assert!(!["claude", "src"].into_iter().any(is_ruled));
    }

    fn is_ruled(path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        RULES.iter().any(|rule| rule.fits_link(&parts))
    }

    #[test]
    fn a_link_leads_to_a_path_of_the_tree_or_out_of_it() {
        let cases = [
            (".claude/settings.json", "../tools/claude.json", Some("tools/claude.json")),
            (".claude", "./agent", Some("agent")),
            (".claude", "../out", None),
            (".claude", "/etc", None),
        ];
        for (link, target, expected) in cases {
            assert_eq!(led(link, target).as_deref(), expected, "{link} -> {target}");
        }
    }
}
