//! Known tools, their variables and secrets, read from `tools.txt`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The contents of `tools.txt`.
pub static TOOLS: LazyLock<Known> = LazyLock::new(|| Known::read(include_str!("tools.txt")));

/// The lines of the file by kind. The head of the file explains each.
#[derive(Debug, Default)]
pub struct Known {
    /// `tool`: files that programs need.
    pub(super) tools: Vec<Place>,
    /// `cache`: folders that a tool writes as it works.
    pub(super) caches: Vec<Place>,
    /// `needed`: names of files in worktrees that need a cache, by the cache's usual place.
    needed: Vec<(&'static str, &'static str)>,
    /// `find`: variables that say where tools lie.
    pub(super) finds: Vec<&'static str>,
    /// `bundle`: variables that name certificates.
    pub(super) bundles: Vec<&'static str>,
    /// `pass`: variables without a path and without a secret.
    passed: Vec<&'static str>,
    /// `proxy`: variables that name a proxy.
    proxies: Vec<&'static str>,
    /// `server`: files in which running tool servers publish their addresses.
    pub(super) servers: Vec<Place>,
    /// `secret`: secret files below a home directory.
    pub(super) secrets: Vec<&'static str>,
    /// `login`: programs with the path of their login in a home directory.
    pub logins: Vec<(&'static str, &'static str)>,
    /// `started`: files that a home directory runs.
    pub(super) started: Vec<&'static str>,
    /// `settings`: settings files of tools that may hold a secret.
    pub(super) settings: Vec<&'static str>,
    /// `above`: names of settings files that tools look for in all parent folders.
    pub(super) above: Vec<&'static str>,
    /// `secret-name`: file names that are always secret.
    secret_names: Vec<&'static str>,
}

/// A place below the home directory, and the variable that moves it.
#[derive(Debug)]
pub(super) struct Place {
    /// The path below the home directory.
    pub(super) path: &'static str,
    /// The variable, and the path below the folder that it names; empty for the folder itself.
    pub(super) variable: Option<(&'static str, &'static str)>,
}

impl Known {
    fn read(text: &'static str) -> Self {
        let mut tools = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            if let Some((kind, rest)) = words.split_first() {
                assert!(tools.add(kind, rest), "src/sandbox/tools.txt: {line}");
            }
        }
        tools
    }

    /// Adds a line; returns false if it makes no sense.
    fn add(&mut self, kind: &str, rest: &[&'static str]) -> bool {
        match (kind, rest) {
            ("tool", [path, moved @ ..]) => self.tools.push(Place::new(path, moved.first())),
            ("cache", [path, "-"]) => self.caches.push(Place::new(path, None)),
            ("cache", [path, moved]) => self.caches.push(Place::new(path, Some(moved))),
            ("needed", [path, name]) => self.needed.push((path, name)),
            ("find", [name]) => self.finds.push(name),
            ("bundle", [name]) => self.bundles.push(name),
            ("pass", [name]) => self.passed.push(name),
            ("proxy", [name]) => self.proxies.push(name),
            ("server", [path, moved @ ..]) => self.servers.push(Place::new(path, moved.first())),
            ("secret", [path]) => self.secrets.push(path),
            ("login", [program, path]) => self.logins.push((program, path)),
            ("started", [path]) => self.started.push(path),
            ("settings", [path]) => self.settings.push(path),
            ("above", [name]) => self.above.push(name),
            ("secret-name", [name]) => self.secret_names.push(name),
            _ => return false,
        }
        true
    }

    /// Returns true if workers get a variable of the driver's environment without a setting.
    ///
    /// A variable with paths is passed if each is absolute, and a proxy if it has no user or
    /// password.
    pub fn passes(&self, name: &str, value: &OsStr) -> bool {
        let moves = self.tools.iter().chain(&self.caches).any(|place| place.variable.is_some_and(|(it, _)| it == name));
        if moves || self.finds.contains(&name) || self.bundles.contains(&name) {
            let mut places = value.as_bytes().split(|byte| *byte == b':').filter(|part| !part.is_empty()).peekable();
            return places.peek().is_some() && places.all(|place| place.starts_with(b"/"));
        }
        self.passed.contains(&name)
            || self.proxies.contains(&name) && value.to_str().is_some_and(|value| !value.contains('@'))
    }

    /// Returns true if a file of this name is always secret.
    pub(super) fn is_secret_name(&self, name: &OsStr) -> bool {
        self.secret_names.iter().any(|pattern| is_named(name, pattern))
    }

    /// Returns the caches that a worktree with a file of this name needs.
    pub(super) fn needed_by(&self, name: &OsStr) -> impl Iterator<Item = &'static str> {
        self.needed.iter().filter(move |(_, pattern)| is_named(name, pattern)).map(|(cache, _)| *cache)
    }

    /// Returns true if only some worktrees need a cache.
    pub(super) fn is_for_some(&self, cache: &Path) -> bool {
        self.needed.iter().any(|(known, _)| Path::new(known) == cache)
    }
}

/// Returns true if a name matches a pattern with `*`.
pub(super) fn is_named(name: &OsStr, pattern: &str) -> bool {
    let name = name.as_bytes();
    match pattern.split_once('*') {
        Some((start, end)) => {
            name.len() >= start.len() + end.len()
                && name.starts_with(start.as_bytes())
                && name.ends_with(end.as_bytes())
        }
        None => name == pattern.as_bytes(),
    }
}

impl Place {
    /// Reads a path, and `VARIABLE` or `VARIABLE/SUB`.
    fn new(path: &'static str, moved: Option<&&'static str>) -> Self {
        Self { path, variable: moved.map(|moved| moved.split_once('/').unwrap_or((moved, ""))) }
    }

    /// Returns the paths of the place by its variable: one for each folder in the value.
    pub(super) fn moved<'a>(&'a self, value: impl Fn(&str) -> Option<&'a OsStr>) -> impl Iterator<Item = PathBuf> {
        let (name, below) = self.variable.unwrap_or_default();
        split_paths(value(name).unwrap_or_default())
            .map(move |folder| if below.is_empty() { folder.to_owned() } else { folder.join(below) })
    }
}

/// Returns the absolute paths that the value of a variable names.
pub(super) fn split_paths(value: &OsStr) -> impl Iterator<Item = &Path> {
    let parts = value.as_bytes().split(|byte| *byte == b':').map(|part| Path::new(OsStr::from_bytes(part)));
    parts.filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use super::*;

    #[test]
    fn every_line_of_the_file_makes_sense_and_lies_below_a_home() {
        let places = TOOLS.tools.iter().chain(&TOOLS.caches).chain(&TOOLS.servers).map(|place| place.path);
        let mut paths = places.chain(TOOLS.secrets.iter().chain(&TOOLS.started).chain(&TOOLS.settings).copied());
        assert_eq!(
            paths.find(|path| !Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))),
            None
        );
    }

    #[test]
    fn a_variable_is_passed_by_its_kind_and_its_value() {
        let text = "tool .a A_HOME/sub\ncache .b B_HOME\ncache .c -\nfind F\nbundle CERT\npass CI\nproxy http_proxy\n";
        let tools = Known::read(text);
        for (name, value, is_passed) in [
            ("A_HOME", "/opt/a", true),
            ("A_HOME", "/opt/a:/opt/b", true),
            ("A_HOME", "/opt/a:b", false),
            ("B_HOME", "relative", false),
            ("F", "", false),
            ("F", "/usr/lib/f", true),
            ("CERT", "/etc/ssl/x.pem", true),
            ("CI", "true", true),
            ("http_proxy", "http://proxy.example.com:3128", true),
            ("http_proxy", "http://ada:secret@proxy.example.com:3128", false),
            ("http_proxy", "http://ada@proxy.example.com:3128", false),
            ("http_proxy", "ada:secret@proxy.example.com", false),
            ("OTHER", "/opt", false),
        ] {
            assert_eq!(tools.passes(name, OsStr::new(value)), is_passed, "{name}={value}");
        }
        let moved = |value: &'static str| -> Vec<PathBuf> {
            tools.tools[0].moved(|name| (name == "A_HOME").then_some(OsStr::new(value))).collect()
        };
        assert_eq!(moved("/opt/a:b:/c"), [PathBuf::from("/opt/a/sub"), PathBuf::from("/c/sub")]);
        assert!(moved("").is_empty());
    }

    #[test]
    fn a_name_is_secret_by_its_whole_or_by_a_pattern() {
        let tools = Known::read("secret-name *.kdbx\nsecret-name .env\nsecret-name .env.*\n");
        for (name, is_secret) in [
            (".env", true),
            (".env.local", true),
            (".envrc", false),
            ("x.kdbx", true),
            ("x.kdbx.txt", false),
            ("env", false),
        ] {
            assert_eq!(tools.is_secret_name(OsStr::new(name)), is_secret, "{name}");
        }
    }
}
