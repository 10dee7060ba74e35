//! Writes git configuration files.

use gix::bstr::{BStr, BString};
use gix::config::Source;

use crate::git::alternates::quoted;
use crate::git::store::Store;
use crate::worktree::host::Host;

/// A git configuration file being written.
pub(super) struct Config {
    pub(super) text: Vec<u8>,
}

impl Config {
    pub(super) fn new(store: &Store) -> Self {
        let mut config = Self { text: Vec::new() };
        let sha256 = store.object_format() == "sha256";
        config.section("core", None);
        config.value("repositoryformatversion", if sha256 { b"1" } else { b"0" });
        config.value("bare", b"false");
        config.value("logallrefupdates", b"true");
        if sha256 {
            config.section("extensions", None);
            config.value("objectformat", b"sha256");
        }
        config.section("gc", None);
        config.value("auto", b"0");
        config.section("maintenance", None);
        config.value("auto", b"false");
        config
    }

    /// Writes the committer's identity, if known.
    pub(super) fn identity(&mut self, host: &Host) {
        if let Some((name, email)) = &host.settings.user {
            self.section("user", None);
            self.value("name", name.as_bytes());
            self.value("email", email.as_bytes());
        }
    }

    /// Copies settings from the scopes that `is_included` selects.
    pub(super) fn conversions(
        &mut self,
        store: &Store,
        names: impl IntoIterator<Item = &'static str>,
        is_included: impl Fn(Source) -> bool,
    ) {
        let repo = store.local();
        let snapshot = repo.config_snapshot();
        self.section("core", None);
        for name in names {
            let key = format!("core.{name}");
            if let Some(value) = snapshot.plumbing().string_filter(key.as_str(), |meta| is_included(meta.source)) {
                self.value(name, &value);
            }
        }
    }

    /// Adds a section of filters.
    pub(super) fn filter(&mut self, name: &BStr, settings: &[(&'static str, BString)]) {
        self.section("filter", Some(name));
        settings.iter().for_each(|(setting, value)| self.value(setting, value));
    }

    pub(super) fn section(&mut self, name: &str, sub: Option<&BStr>) {
        self.text.push(b'[');
        self.text.extend_from_slice(name.as_bytes());
        if let Some(sub) = sub {
            self.text.push(b' ');
            self.text.extend_from_slice(&quoted(sub));
        }
        self.text.extend_from_slice(b"]\n");
    }

    pub(super) fn value(&mut self, name: &str, value: &[u8]) {
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b" = ");
        self.text.extend_from_slice(&quoted(value));
        self.text.push(b'\n');
    }
}
