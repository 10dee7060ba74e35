//! The output of `git config --list`.

use std::path::PathBuf;

/// One setting as git lists it.
pub(super) struct Setting {
    pub(super) origin: Option<PathBuf>,
    pub(super) key: String,
    pub(super) value: String,
}

/// Reads `git config --list -z --show-origin`: origin NUL key [LF value] NUL.
pub(super) fn parse_list(listed: &str) -> Vec<Setting> {
    let mut fields = listed.split('\0');
    let mut settings = Vec::new();
    while let (Some(origin), Some(pair)) = (fields.next(), fields.next()) {
        // A key without a value means true.
        let (key, value) = pair.split_once('\n').unwrap_or((pair, "true"));
        settings.push(Setting {
            origin: origin.strip_prefix("file:").map(PathBuf::from),
            key: key.to_owned(),
            value: value.to_owned(),
        });
    }
    settings
}
