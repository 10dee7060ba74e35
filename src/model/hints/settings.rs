//! Hints about settings.

use std::path::Path;

use super::{Hint, quoted, setting};

/// A setting is unknown: rename or remove it in its file.
pub fn rename_setting(key: &str, origin: Option<&Path>, nearest: Option<&str>) -> Hint {
    let Some(file) = origin else { return setting(key) };
    let (about, key) = (key, quoted(key));
    let config = format!("git config --file {}", quoted(&file.display().to_string()));
    let line = match nearest {
        // A key that lacks its name can only be written again.
        Some(name) if !name.contains('<') => {
            format!("{config} --add {} \"$({config} {key})\" && {config} --unset {key}", quoted(name))
        }
        _ => format!("{config} --unset-all {key}"),
    };
    Hint::new("rename_setting", &[about], line)
}

/// Workers can edit the files of their check: protect those that exist.
#[cfg(feature = "core")]
pub fn protect(pathspecs: &[String]) -> Hint {
    let line = match pathspecs {
        [one] => format!("git config --add handoff.protect {}", quoted(one)),
        several => {
            let words: Vec<String> = several.iter().map(|pathspec| quoted(pathspec)).collect();
            format!("for path in {}; do git config --add handoff.protect \"$path\"; done", words.join(" "))
        }
    };
    Hint::new(
        "protect",
        &pathspecs.iter().map(String::as_str).collect::<Vec<_>>(),
        format!("{line}   # restored while the check runs; a change to one makes the item red"),
    )
}

/// A secret was found. A declared secret cannot be allowed.
#[cfg(feature = "core")]
pub fn allow_secret(secret: &crate::model::credential::gate::Secret) -> Hint {
    if secret.shape == crate::model::credential::gate::GIVEN || secret.line.is_none() {
        let line = "take it out; a secret reaches a worker by handoff.subagent.NAME.secretEnv";
        return Hint::new("allow_secret", &[], line.to_owned());
    }
    let allowed = quoted(&format!("{}:{}", secret.shape, secret.file));
    let line = format!("git config --add handoff.secrets.allow {allowed}   # if it is none, or may be known");
    Hint::new("allow_secret", &[&secret.file], line)
}
