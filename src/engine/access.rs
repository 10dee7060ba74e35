//! Describes for the manifest the places that settings let a worker reach besides its worktree,
//! without a path that tells about a person.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::model::confinement::{Home, RealHome};
use crate::model::manifest::Manifest;
use crate::model::plan::Item;

use super::command::Resolved;
use super::machine::Machine;

impl Machine {
    /// Sets what an attempt's worker can reach. Unconfined, it can reach everything, and only
    /// what its worktree has counts.
    pub(super) fn describe_access(&self, item: &Item, resolved: &Resolved, is_confined: bool, manifest: &mut Manifest) {
        if item.is_claimed() {
            return;
        }
        let settings = &resolved.settings;
        if is_confined {
            let executor = match &resolved.subagent {
                Some(name) => format!("handoff.subagent.{name}"),
                None => format!("handoff.executor.{}", item.executor),
            };
            manifest.claims.home = (settings.home == Some(Home::Real)).then_some(RealHome::Real);
            manifest.claims.readable = self.public_names(settings.readable.iter(), &format!("{executor}.readable"));
            manifest.claims.writable = self.public_names(settings.writable.iter(), &format!("{executor}.writable"));
        }
        let (linked, copied) = (to_paths(&self.config.workspace_link), to_paths(&self.config.workspace_copy));
        manifest.claims.linked = self.public_names(linked.iter(), "handoff.workspace.link");
        manifest.claims.copied = self.public_names(copied.iter(), "handoff.workspace.copy");
    }

    /// Names paths of a setting, sorted. Each path that cannot be named itself is counted by the
    /// name of the setting.
    fn public_names<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>, setting: &str) -> Vec<String> {
        let mut private = 0;
        let paths: BTreeSet<&PathBuf> = paths.collect();
        let names = paths.into_iter().map(|path| {
            self.public_name(path).unwrap_or_else(|| {
                private += 1;
                if private == 1 { setting.to_owned() } else { format!("{setting} ({private})") }
            })
        });
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns a path below the home directory as `~/…`, and one below the top of the repository
    /// from there; or `None` for any other.
    fn public_name(&self, path: &Path) -> Option<String> {
        if path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        if !path.is_absolute() {
            return path.to_str().map(str::to_owned);
        }
        if let Ok(below) = path.strip_prefix(&self.top) {
            return below.to_str().map(|below| if below.is_empty() { ".".to_owned() } else { below.to_owned() });
        }
        let below = path.strip_prefix(self.home.as_ref()?).ok()?.to_str()?;
        Some(if below.is_empty() { "~".to_owned() } else { format!("~/{below}") })
    }
}

fn to_paths(patterns: &[String]) -> Vec<PathBuf> {
    patterns.iter().map(PathBuf::from).collect::<Vec<_>>()
}
