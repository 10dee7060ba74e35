//! One entry of the table of settings, and which one a key is of.

use super::table::SETTINGS;
use super::{Config, Error, Setting};

/// Settings that belong together.
#[derive(Debug)]
pub struct Group {
    /// What they are about.
    pub title: &'static str,
    /// The settings.
    pub entries: &'static [Entry],
}

/// One setting that people can make.
#[derive(Debug)]
pub struct Entry {
    /// Its names as people write them, each with its place for a name of theirs, if it has one: `handoff.queue.<name>.rules`.
    pub names: &'static [&'static str],
    /// What it does, in a sentence or two of Markdown.
    pub sentence: &'static str,
    /// What holds where it is not set, in Markdown; a value that could be written stands in one code span.
    pub default: &'static str,
    /// Whether it counts where it stands in a file inside the work tree, which a commit can change.
    pub tracked: bool,
    /// Whether a value that stands there asks for no less than what holds without it, and so counts all the same; none where no value
    /// does.
    pub(super) asks_no_less: Option<fn(&Config, &Given<'_>) -> bool>,
    pub(super) says: fn() -> String,
    pub(super) set: fn(&mut Config, &Given<'_>) -> Result<(), Error>,
}

impl Entry {
    /// Returns what its value may be, in Markdown.
    pub fn kind(&self) -> String {
        (self.says)()
    }
}

/// The parts of a key below `handoff.`.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    /// The first part of a key that has several: `queue`.
    pub(super) section: Option<&'a str>,
    /// What people chose, as they wrote it; it may have points in it.
    pub(super) name: Option<&'a str>,
    /// The last part, whose letter case says nothing.
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
    /// Takes a key apart; returns none for one that is not below `handoff.`.
    pub(super) fn parse(key: &'a str) -> Option<Self> {
        let rest = key.strip_prefix("handoff.")?;
        let Some((section, rest)) = rest.split_once('.') else {
            return Some(Self { section: None, name: None, field: rest });
        };
        let (name, field) = rest.rsplit_once('.').map_or((None, rest), |(name, field)| (Some(name), field));
        Some(Self { section: Some(section), name, field })
    }

    /// Returns the entry that it is of.
    pub(super) fn entry(&self) -> Option<&'static Entry> {
        let is_of = |name: &str| {
            Key::parse(name).is_some_and(|known| {
                known.section == self.section
                    && known.name.is_some() == self.name.is_some()
                    && known.field.eq_ignore_ascii_case(self.field)
            })
        };
        entries().find(|entry| entry.names.iter().any(|name| is_of(name)))
    }

    /// Returns the known name that is most like it, with the name in it that people chose, if any is like it at all.
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

    /// Returns how much the less alike of section and field is like the other's.
    fn likeness(&self, other: &Key<'_>) -> f64 {
        let like = |a: &str, b: &str| strsim::jaro_winkler(&a.to_ascii_lowercase(), &b.to_ascii_lowercase());
        let sections = match (self.section, other.section) {
            (Some(own), Some(theirs)) => like(own, theirs),
            (own, theirs) => f64::from(own == theirs),
        };
        sections.min(like(self.field, other.field))
    }
}

impl Given<'_> {
    /// Returns the name in the key that people chose.
    pub(super) fn name(&self) -> String {
        self.key.name.unwrap_or_default().to_owned()
    }
}

/// Returns every entry.
fn entries() -> impl Iterator<Item = &'static Entry> {
    SETTINGS.iter().flat_map(|group| group.entries)
}
