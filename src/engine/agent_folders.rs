//! Finds the folders and files of which an executor's workers get private copies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::repository::Environment;
use crate::repository::config::{AgentFolder, Executor};
use crate::sandbox::PrivateCopy;

/// Returns the copies that the settings `private` and `login` ask for. A path that `readable` or
/// `writable` names too is given as these say.
pub(super) fn copies(
    settings: &Executor,
    environment: &Environment,
    resolve: &impl Fn(&PathBuf) -> PathBuf,
) -> Vec<PrivateCopy> {
    let chosen: Vec<PathBuf> = settings.readable.iter().chain(&settings.writable).map(resolve).collect();
    let is_chosen = |copy: &PrivateCopy| {
        let usual = environment.expand(&Path::new("~").join(&copy.below));
        chosen.iter().any(|path| copy.from.starts_with(path) || usual.starts_with(path))
    };
    let mut copies: Vec<PrivateCopy> = Vec::new();
    for path in &settings.private {
        let copy = copy_of(path, environment, resolve);
        // A part of a folder that is copied in part. What has a place of its own is none.
        let is_known = AgentFolder::at(&usual(path, environment)).is_some();
        let around = copies.iter_mut().filter(|_| !is_known).find_map(|around| {
            let part = copy.from.strip_prefix(&around.from).ok().filter(|part| !part.as_os_str().is_empty())?;
            Some((part.to_owned(), around))
        });
        if let Some((part, around)) = around {
            around.parts.iter_mut().for_each(|parts| {
                parts.insert(part.clone());
            });
            continue;
        }
        if !is_chosen(&copy) && !copies.iter().any(|known| known.below == copy.below) {
            copies.push(copy);
        }
    }
    for path in &settings.login {
        add_login(path, environment, resolve, &mut copies);
    }
    copies
}

fn copy_of(path: &Path, environment: &Environment, resolve: &impl Fn(&PathBuf) -> PathBuf) -> PrivateCopy {
    let path = usual(path, environment);
    match AgentFolder::at(&path) {
        Some(folder) => of_agent(folder, environment),
        None => PrivateCopy {
            below: path.strip_prefix("~").map(Path::to_owned).unwrap_or_default(),
            from: resolve(&path),
            ..PrivateCopy::default()
        },
    }
}

/// Returns the copy of a known agent's folder.
fn of_agent(folder: &AgentFolder, environment: &Environment) -> PrivateCopy {
    let from = environment.place_of(folder);
    let is_file = folder.parts().next().is_none() && folder.login.is_empty() && folder.checked.is_empty();
    PrivateCopy {
        below: folder.path.strip_prefix("~").map(Path::to_owned).unwrap_or_default(),
        from,
        parts: (!is_file).then(|| folder.parts().cloned().collect()),
        logins: folder.login.clone(),
        checked: folder.checked.clone(),
        moved: folder.variable().map(|(name, below)| (name.to_owned(), PathBuf::from(below))),
    }
}

/// Adds a login to the copy of the folder around it, or as a folder with nothing else in it.
fn add_login(
    path: &Path,
    environment: &Environment,
    resolve: &impl Fn(&PathBuf) -> PathBuf,
    copies: &mut Vec<PrivateCopy>,
) {
    let path = usual(path, environment);
    let real = resolve(&path);
    let around = copies.iter_mut().find_map(|copy| Some((real.strip_prefix(&copy.from).ok()?.to_owned(), copy)));
    if let Some((file, copy)) = around {
        if !copy.logins.contains(&file) && !copy.checked.contains(&file) {
            copy.logins.push(file);
        }
        return;
    }
    let below = path.strip_prefix("~").ok().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    let (from, file) = (real.parent().unwrap_or(&real).to_owned(), real.file_name().map(PathBuf::from));
    copies.push(PrivateCopy {
        below,
        from,
        parts: Some(BTreeSet::new()),
        logins: file.into_iter().collect(),
        ..PrivateCopy::default()
    });
}

/// Returns a path of the home directory in the form that begins with `~/`.
fn usual(path: &Path, environment: &Environment) -> PathBuf {
    let home = environment.variable("HOME").map(PathBuf::from);
    let below = home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned));
    below
        .filter(|below| !below.as_os_str().is_empty())
        .map_or_else(|| path.to_owned(), |below| Path::new("~").join(below))
}
