//! Whether there is to be colour, as git is told.

use super::pager::switch;

/// What `color.handoff` says, or else `color.ui`; and `color.pager`.
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
    /// Where somebody sees it.
    #[default]
    Auto,
}

impl Colors {
    /// Takes in a setting; what git does not know either is `auto`.
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

    /// Returns when there is to be colour.
    pub fn when(&self) -> When {
        self.here.unwrap_or(self.everywhere)
    }

    /// Returns whether a pager takes colour where a terminal does.
    pub fn in_pager(&self) -> bool {
        !self.not_in_pager
    }
}
