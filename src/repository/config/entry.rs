//! An entry of the table of settings, and the lookup of a key in it.

use super::table::SETTINGS;
use super::{Config, Error, Setting};

/// Settings that belong together.
#[derive(Debug)]
pub struct Group {
    /// The heading in the documentation.
    pub title: &'static str,
    /// The settings.
    pub entries: &'static [Entry],
}

/// One setting.
#[derive(Debug)]
pub struct Entry {
    /// Every spelling, with `<name>` where the user chooses a part: `handoff.queue.<name>.rules`.
    pub names: &'static [&'static str],
    /// One or two sentences of Markdown for the documentation.
    pub sentence: &'static str,
    /// The default, in Markdown. A value that a user could write stands in a code span.
    pub default: &'static str,
    /// Whether a file inside the work tree, which a commit can change, may set it.
    pub tracked: bool,
    /// For a setting that such a file may only tighten: returns true if the value is at least as
    /// strict as the setting without it.
    pub(super) asks_no_less: Option<fn(&Config, &Given<'_>) -> bool>,
    pub(super) describe: fn() -> String,
    pub(super) set: fn(&mut Config, &Given<'_>) -> Result<(), Error>,
}

impl Entry {
    /// Returns a description of the allowed values, in Markdown.
    pub fn kind(&self) -> String {
        (self.describe)()
    }
}

/// The parts of a key below `handoff.`.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    /// The first part of a key that has several: `queue`.
    pub(super) section: Option<&'a str>,
    /// The part that the user chose; it may contain dots.
    pub(super) name: Option<&'a str>,
    /// The last part; its case does not matter.
    pub(super) field: &'a str,
}

/// A setting as git lists it, with the parts of its key.
pub(super) struct Given<'a> {
    pub(super) key: Key<'a>,
    pub(super) setting: &'a Setting,
    /// Whether it stands in a file inside the work tree.
    pub(super) tracked: bool,
}

impl<'a> Key<'a> {
    /// Parses a key, or returns `None` if it is not below `handoff.`.
    pub(super) fn parse(key: &'a str) -> Option<Self> {
        let rest = key.strip_prefix("handoff.")?;
        let Some((section, rest)) = rest.split_once('.') else {
            return Some(Self { section: None, name: None, field: rest });
        };
        let (name, field) = rest.rsplit_once('.').map_or((None, rest), |(name, field)| (Some(name), field));
        Some(Self { section: Some(section), name, field })
    }

    /// Returns the entry of the table that this key belongs to.
    pub(super) fn entry(&self) -> Option<&'static Entry> {
        entries().find(|entry| entry.names.iter().any(|name| self.is_of(name)))
    }

    fn is_of(&self, name: &str) -> bool {
        Key::parse(name).is_some_and(|known| {
            known.section == self.section
                && known.name.is_some() == self.name.is_some()
                && known.field.eq_ignore_ascii_case(self.field)
        })
    }

    /// Returns the most similar known name, with the user's own part in it, or `None` if none is
    /// similar.
    pub(super) fn nearest(&self) -> Option<String> {
        let mut best: Option<(f64, &str)> = None;
        for name in entries().flat_map(|entry| entry.names) {
            let likeness = Key::parse(name).map_or(0.0, |known| self.likeness(&known));
            if likeness > best.map_or(0.8, |(most, _)| most) {
                best = Some((likeness, name));
            }
        }
        let (_, name) = best?;
        Some(match (self.name, Key::parse(name)?.name) {
            (Some(own), Some(place)) => name.replacen(place, own, 1),
            _ => name.to_owned(),
        })
    }

    /// Returns the similarity of section and field, whichever is lower; 1 means equal.
    fn likeness(&self, other: &Key<'_>) -> f64 {
        let sections = match (self.section, other.section) {
            (Some(own), Some(theirs)) => similarity(own, theirs),
            (own, theirs) => f64::from(own == theirs),
        };
        sections.min(similarity(self.field, other.field))
    }
}

fn similarity(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(&a.to_ascii_lowercase(), &b.to_ascii_lowercase())
}

impl Given<'_> {
    /// Returns the part of the key that the user chose.
    pub(super) fn name(&self) -> String {
        self.key.name.unwrap_or_default().to_owned()
    }
}

/// Returns every entry.
fn entries() -> impl Iterator<Item = &'static Entry> {
    SETTINGS.iter().flat_map(|group| group.entries)
}
