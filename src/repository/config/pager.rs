//! The setting `pager.handoff`.

/// Whether to use a pager, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Paging {
    /// git's pager.
    #[default]
    As,
    /// No pager.
    Off,
    /// This command, unless `GIT_PAGER` names another.
    Through(String),
}

impl Paging {
    /// Parses the value: a boolean or a command.
    pub(super) fn parse(value: &str) -> Self {
        match switch(value) {
            Some(true) => Self::As,
            Some(false) => Self::Off,
            None => Self::Through(value.to_owned()),
        }
    }
}

/// Parses a boolean as git does, or returns `None` if the word is not one. Empty is false.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}
