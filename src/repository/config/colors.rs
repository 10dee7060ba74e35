//! Colour settings, read as git reads them.

use super::pager::switch;

/// `color.handoff`, `color.ui` and `color.pager`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colors {
    everywhere: When,
    here: Option<When>,
    not_in_pager: bool,
}

/// When there is colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Never.
    Never,
    /// On a terminal.
    #[default]
    Auto,
}

impl Colors {
    /// Reads one setting. An unknown value means `auto`, as in git.
    pub(super) fn take(&mut self, key: &str, value: &str) {
        if key == "color.pager" {
            self.not_in_pager = switch(value) == Some(false);
            return;
        }
        let when = match value.to_ascii_lowercase().as_str() {
            "always" => When::Always,
            "never" | "false" | "no" | "off" | "0" => When::Never,
            _ => When::Auto,
        };
        if key == "color.ui" {
            self.everywhere = when;
        } else {
            self.here = Some(when);
        }
    }

    /// Returns when to use colour: `color.handoff`, else `color.ui`.
    pub fn when(&self) -> When {
        self.here.unwrap_or(self.everywhere)
    }

    /// Returns true if output to a pager may be coloured.
    pub fn in_pager(&self) -> bool {
        !self.not_in_pager
    }
}
