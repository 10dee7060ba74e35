//! What git is told about pagers for this command, which is `pager.handoff`.

/// Whether long answers go through a pager, and through which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Paging {
    /// Through git's pager.
    #[default]
    As,
    /// Through none.
    Off,
    /// Through this one, unless `GIT_PAGER` names another.
    Through(String),
}

impl Paging {
    /// Reads what is set: a switch, or a command.
    pub(super) fn parse(value: &str) -> Self {
        match switch(value) {
            Some(true) => Self::As,
            Some(false) => Self::Off,
            None => Self::Through(value.to_owned()),
        }
    }
}

/// Returns what a word says that git takes for a switch; nothing is off.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" | "" => Some(false),
        number => number.parse::<i64>().ok().map(|number| number != 0),
    }
}
