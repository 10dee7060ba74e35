//! The findings of git's object check that the user permits with `fetch.fsck.*`. They apply to
//! every import of objects.

use super::program::{Error, Git};

/// The severities that a setting can name.
const SEVERITIES: [&str; 3] = ["error", "warn", "ignore"];

/// Returns the exceptions as the value of `index-pack --strict` or `--fsck-objects`; empty if there
/// are none.
///
/// `git` returns a git command that sees the configuration. `git fetch` reads the settings itself.
pub fn exceptions(git: &dyn Fn() -> Git) -> Result<String, Error> {
    let listed = match git().args(["config", "-z", "--get-regexp", r"^fetch\.fsck\."]).run() {
        Err(Error::Failed { code: Some(1), .. }) => return Ok(String::new()),
        other => other?,
    };
    let text = String::from_utf8_lossy(&listed).into_owned();
    let mut words = Vec::new();
    for (key, value) in text.split('\0').filter_map(|setting| setting.split_once('\n')) {
        let name = key.rsplit('.').next().unwrap_or_default();
        if name == "skiplist" {
            let path = git().args(["config", "--type=path", "--get", key]).line()?;
            words.push(format!("skiplist={path}"));
        } else if SEVERITIES.contains(&value.to_ascii_lowercase().as_str()) {
            words.push(format!("{name}={}", value.to_ascii_lowercase()));
        }
    }
    Ok(if words.is_empty() { String::new() } else { format!("={}", words.join(",")) })
}

/// Returns the message id of the first finding in git's output, as settings name it.
pub fn finding(stderr: &str) -> Option<&str> {
    let (_, rest) = stderr.split_once("object ")?;
    let name = rest.split_once(": ")?.1.split(':').next()?;
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::finding;

    #[test]
    fn a_finding_has_the_name_that_a_setting_gives_it() {
        let stderr =
            "error: object 8c62c88: gitattributesLineLength: .gitattributes has too long lines to parse\nfatal: x";
        assert_eq!(finding(stderr), Some("gitattributesLineLength"));
        for other in ["", "object 8c62c88", "fatal: object 8c62c88: is a tree: x", "error: inflate: data stream error"]
        {
            assert_eq!(finding(other), None, "{other}");
        }
    }
}
