//! Finds the places of the work tree whose files git runs or reads as configuration. `apply`
//! refuses to change them: git would run the files of a worker with the rights of the user.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::git::program;
use crate::git::store::Store;

/// The last parts of keys whose values name programs or folders of programs.
const RUN: [&str; 16] = [
    "hookspath",
    "fsmonitor",
    "editor",
    "pager",
    "sshcommand",
    "askpass",
    "program",
    "command",
    "textconv",
    "external",
    "driver",
    "clean",
    "smudge",
    "process",
    "helper",
    "difffilter",
];

/// Programs that run the file that follows their name.
const INTERPRETERS: [&str; 7] = ["sh", "bash", "python", "python3", "node", "perl", "ruby"];

/// Returns the files and folders of the work tree, from its top, that git's configuration or a link
/// among its hooks names.
pub(super) fn places(store: &Store) -> Result<BTreeSet<String>, program::Error> {
    let Some(top) = store.work_dir().map(|top| real(&top)) else { return Ok(BTreeSet::new()) };
    let mut found = BTreeSet::new();
    let listed = store.git().args(["config", "--list", "--show-origin", "-z"]).run()?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut fields = listed.split('\0');
    while let (Some(origin), Some(setting)) = (fields.next(), fields.next()) {
        // Commands of ours run in a sandbox.
        let Some((key, value)) = setting.split_once('\n').filter(|(key, _)| !key.starts_with("handoff.")) else {
            continue;
        };
        let last = key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        if last == "path" && key.to_ascii_lowercase().starts_with("include") {
            let file = origin.strip_prefix("file:").map(|file| top.join(file));
            let folder = file.as_deref().and_then(Path::parent).unwrap_or(&top);
            found.extend(below(&top, &folder.join(value)));
        } else if RUN.contains(&last.as_str()) {
            let words: Vec<&str> = value.split(|c: char| c.is_whitespace() || "'\"!;|&()<>=".contains(c)).collect();
            for (at, word) in words.iter().enumerate() {
                let is_script = at.checked_sub(1).is_some_and(|before| is_interpreter(words[before]));
                if !word.is_empty() && (word.contains('/') || is_script || last == "hookspath") {
                    found.extend(below(&top, &top.join(word)));
                }
            }
        }
    }
    let hooks = std::fs::read_dir(store.common_dir().join("hooks")).into_iter().flatten().flatten();
    let links = hooks.filter_map(|hook| Some((hook.path(), std::fs::read_link(hook.path()).ok()?)));
    found.extend(links.filter_map(|(hook, target)| below(&top, &hook.parent()?.join(target))));
    found.remove("");
    Ok(found)
}

fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or_default())
}

/// Returns a path from the top of the work tree, or `None` if it lies outside. Resolves `..` by its
/// words, because the file may not exist yet.
fn below(top: &Path, path: &Path) -> Option<String> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    let folder = plain.parent().map(real).zip(plain.file_name()).map(|(folder, name)| folder.join(name));
    let plain = folder.unwrap_or(plain);
    Some(plain.strip_prefix(top).ok()?.to_str()?.to_owned())
}

/// Resolves a path, or returns it as it is if that fails.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
