//! Chooses the folder for our own temporary files.
//!
//! They never lie in the work tree, where they would become part of what is recorded.

use std::path::{Path, PathBuf};

use git_handoff::git::temporary::is_writable;
use git_handoff::repository::Environment;

/// The folder of temporary files of the system.
const SYSTEM: &str = "/tmp";

/// Makes temporary files go to `TMPDIR`, or if it cannot be used, to another folder. Returns a
/// warning if a folder that `TMPDIR` names is not used.
///
/// As for git, an empty `TMPDIR` is `/tmp`.
pub(super) fn choose(environment: &Environment) -> Option<String> {
    let configured = environment.variable("TMPDIR").map(PathBuf::from);
    let top = configured
        .as_ref()
        .and_then(|_| environment.store().ok().flatten()?.work_dir())
        .and_then(|top| top.canonicalize().ok());
    let is_outside = |folder: &Path| {
        let real = folder.canonicalize();
        real.is_ok_and(|real| top.as_ref().is_none_or(|top| !real.starts_with(top)))
    };
    let why_not = match &configured {
        Some(folder) if !folder.is_absolute() => Some("is not an absolute path"),
        Some(folder) if !is_writable(folder) => Some("is no folder that can be written to"),
        Some(folder) if !is_outside(folder) => Some("is in the work tree"),
        Some(_) => return None,
        None if is_writable(Path::new(SYSTEM)) => {
            tempfile::env::override_temp_dir(Path::new(SYSTEM)).ok()?;
            return None;
        }
        None => Some("is not set, and /tmp is no folder that can be written to"),
    };
    let cache = || {
        let folder = environment
            .variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(environment.variable("HOME")?).join(".cache")))?;
        Some(folder.join("git-handoff/tmp"))
    };
    let system = || configured.as_ref().filter(|folder| is_outside(folder) || !folder.exists()).map(|_| SYSTEM.into());
    let created = |folder: PathBuf| std::fs::create_dir_all(&folder).is_ok().then_some(folder);
    let others: [&dyn Fn() -> Option<PathBuf>; 3] =
        [&cache, &|| Some(environment.store().ok().flatten()?.common_dir().join("handoff/tmp")), &system];
    let mut usable = others.iter().filter_map(|other| created(other()?)).filter(|folder| is_writable(folder));
    let chosen = usable.next()?;
    tempfile::env::override_temp_dir(&chosen).ok()?;
    let value = configured.map(|folder| format!(" ({})", folder.display())).unwrap_or_default();
    Some(format!("TMPDIR {}{value}; temporary files go to {}", why_not?, chosen.display()))
}
