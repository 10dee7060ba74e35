//! Known tools, their variables and secrets, read from `tools.txt`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

/// The contents of `tools.txt`.
pub static TOOLS: LazyLock<Known> =
    LazyLock::new(|| Known::read(include_str!("tools.txt")).expect("a test reads the file"));

/// The lines of the file by their kinds. The head of the file says what each means.
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
    /// `server`: where running servers of tools tell how they are reached.
    pub(super) servers: Vec<Place>,
    /// `secret`: secret files below a home directory.
    pub(super) secrets: Vec<&'static str>,
    /// `login`: programs, and where each keeps its login below a home directory.
    pub logins: Vec<(&'static str, &'static str)>,
    /// `started`: files that a home directory runs.
    pub(super) started: Vec<&'static str>,
    /// `settings`: settings files of tools that may hold a secret.
    pub(super) settings: Vec<&'static str>,
    /// `above`: names of settings files that tools look for in all folders above the one they work in.
    pub(super) above: Vec<&'static str>,
    /// `secret-name`: names of files that are secret wherever they lie.
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
    fn read(text: &'static str) -> Result<Self, Wrong> {
        let mut tools = Self::default();
        let mut last: (Option<usize>, &str) = (None, "");
        for (at, line) in text.lines().enumerate() {
            let wrong = |why| Wrong { line: at + 1, why };
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let Some((kind, rest)) = words.split_first() else { continue };
            let turn = KINDS.iter().position(|known| known == kind).ok_or(wrong("the kind is not known"))?;
            let text = line.split('#').next().unwrap_or_default().trim_end();
            if last >= (Some(turn), text) {
                return Err(wrong("the line is not in its place: by kind, and sorted within a kind"));
            }
            last = (Some(turn), text);
            tools.add(kind, rest).map_err(wrong)?;
        }
        Ok(tools)
    }

    fn add(&mut self, kind: &str, rest: &[&'static str]) -> Result<(), &'static str> {
        match (kind, rest) {
            ("tool", [at]) => self.tools.push(Place { path: path(at)?, variable: None }),
            ("tool", [at, moved]) => self.tools.push(Place { path: path(at)?, variable: Some(moved_by(moved)?) }),
            ("cache", [at, "-"]) => self.caches.push(Place { path: path(at)?, variable: None }),
            ("cache", [at, moved]) => self.caches.push(Place { path: path(at)?, variable: Some(moved_by(moved)?) }),
            ("needed", [at, name]) => self.needed.push((path(at)?, pattern(name)?)),
            ("find", [name]) => self.finds.push(variable(name)?),
            ("bundle", [name]) => self.bundles.push(variable(name)?),
            ("pass", [name]) => self.passed.push(variable(name)?),
            ("proxy", [name]) => self.proxies.push(variable(name)?),
            ("server", [at]) => self.servers.push(Place { path: path(at)?, variable: None }),
            ("server", [at, moved]) => self.servers.push(Place { path: path(at)?, variable: Some(moved_by(moved)?) }),
            ("secret", [at]) => self.secrets.push(path(at)?),
            ("login", [program, at]) => self.logins.push((*program, path(at)?)),
            ("started", [at]) => self.started.push(path(at)?),
            ("settings", [at]) => self.settings.push(path(at)?),
            ("above", [name]) => self.above.push(pattern(name).or_else(|_| path(name))?),
            ("secret-name", [name]) => self.secret_names.push(pattern(name)?),
            _ => return Err("the line has too few or too many words"),
        }
        Ok(())
    }

    /// Returns true if workers get a variable of the driver's own environment without a setting that names it.
    ///
    /// A variable that names places is passed if each is absolute. A proxy is passed without a user or a password.
    pub fn passes(&self, name: &str, value: &OsStr) -> bool {
        let moves = self.tools.iter().chain(&self.caches).any(|place| place.variable.is_some_and(|(it, _)| it == name));
        if moves || self.finds.contains(&name) || self.bundles.contains(&name) {
            let mut places = value.as_bytes().split(|byte| *byte == b':').filter(|part| !part.is_empty()).peekable();
            return places.peek().is_some() && places.all(|place| place.starts_with(b"/"));
        }
        self.passed.contains(&name)
            || self.proxies.contains(&name) && value.to_str().is_some_and(|value| !value.contains('@'))
    }

    /// Returns true if a file of this name is secret wherever it lies.
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

/// Returns true if a name is as a pattern says, in which `*` stands for any letters.
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
    /// Returns the paths that the variable moves the place to: one for each folder that its value names.
    pub(super) fn moved<'a>(&'a self, value: impl Fn(&str) -> Option<&'a OsStr>) -> impl Iterator<Item = PathBuf> {
        let (name, below) = self.variable.unwrap_or_default();
        named(value(name).unwrap_or_default())
            .map(move |folder| if below.is_empty() { folder.to_owned() } else { folder.join(below) })
    }
}

/// Returns the absolute paths that the value of a variable names.
pub(super) fn named(value: &OsStr) -> impl Iterator<Item = &Path> {
    let parts = value.as_bytes().split(|byte| *byte == b':').map(|part| Path::new(OsStr::from_bytes(part)));
    parts.filter(|path| path.is_absolute())
}

/// The kinds of lines, in the order in which they stand in the file.
const KINDS: [&str; 14] = [
    "tool",
    "cache",
    "needed",
    "find",
    "bundle",
    "pass",
    "proxy",
    "server",
    "secret",
    "login",
    "started",
    "settings",
    "above",
    "secret-name",
];

fn path(text: &'static str) -> Result<&'static str, &'static str> {
    let is_below = !text.is_empty() && Path::new(text).components().all(|part| matches!(part, Component::Normal(_)));
    if is_below && !text.ends_with('/') { Ok(text) } else { Err("a path lies below the home directory, without `..`") }
}

fn variable(text: &'static str) -> Result<&'static str, &'static str> {
    let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name && !text.starts_with(|c: char| c.is_ascii_digit()) { Ok(text) } else { Err("that is no variable") }
}

fn moved_by(text: &'static str) -> Result<(&'static str, &'static str), &'static str> {
    match text.split_once('/') {
        Some((name, below)) => Ok((variable(name)?, path(below)?)),
        None => Ok((variable(text)?, "")),
    }
}

fn pattern(text: &'static str) -> Result<&'static str, &'static str> {
    let is_name = !text.contains('/') && text.matches('*').count() <= 1 && text != "*";
    if is_name { Ok(text) } else { Err("a name has no slash, and at most one `*` beside other letters") }
}

/// A line that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("src/worker/sandbox/tools.txt:{line}: {why}")]
struct Wrong {
    line: usize,
    why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_its_head_says_what_each_kind_means() {
        let text = include_str!("tools.txt");
        if let Err(wrong) = Known::read(text) {
            panic!("{wrong}");
        }
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        for kind in KINDS {
            assert!(head.iter().any(|line| line.starts_with(&format!("#   {kind} "))), "{kind} is not explained");
        }
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_with_its_number() {
        for (text, said) in [
            ("# x\ntools .x", "2: the kind is not known"),
            ("tool", "1: the line has too few or too many words"),
            ("cache .x", "1: the line has too few or too many words"),
            ("find A B", "1: the line has too few or too many words"),
            ("tool .b\ntool .a", "2: the line is not in its place: by kind, and sorted within a kind"),
            ("tool .b\ntool .b # again", "2: the line is not in its place: by kind, and sorted within a kind"),
            ("find A\ntool .a", "2: the line is not in its place: by kind, and sorted within a kind"),
            ("tool /usr", "1: a path lies below the home directory, without `..`"),
            ("secret ../x", "1: a path lies below the home directory, without `..`"),
            ("tool .a/", "1: a path lies below the home directory, without `..`"),
            ("tool .a A-B", "1: that is no variable"),
            ("cache .a A/..", "1: a path lies below the home directory, without `..`"),
            ("secret-name *", "1: a name has no slash, and at most one `*` beside other letters"),
            ("secret-name a/b", "1: a name has no slash, and at most one `*` beside other letters"),
        ] {
            let wrong = Known::read(text).expect_err(text).to_string();
            assert_eq!(wrong, format!("src/worker/sandbox/tools.txt:{said}"), "{text:?}");
        }
    }

    #[test]
    fn a_variable_is_passed_by_its_kind_and_its_value() {
        let text = "tool .a A_HOME/sub\ncache .b B_HOME\ncache .c -\nfind F\nbundle CERT\npass CI\nproxy http_proxy\n";
        let tools = Known::read(text).expect("the text is right");
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
        let tools = Known::read("secret-name *.kdbx\nsecret-name .env\nsecret-name .env.*\n").expect("it is right");
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
