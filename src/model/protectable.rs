//! Files that decide whether work is good, by the runner that reads them by name: a starting list
//! of what to protect.

use std::sync::LazyLock;

/// A test runner or a build tool, and the files that it reads by name.
#[derive(Debug, Default)]
pub struct Runner {
    /// Its name on the screen.
    pub name: &'static str,
    /// Pathspecs of committed files by which it is recognised.
    pub signs: Vec<&'static str>,
    /// Pathspecs of its tests and of its own files. All are protected if it is recognised, because
    /// one file that is added may decide what the check does. None selects what a setup installs
    /// or builds and tests need: it is moved away like other protected files that are added.
    pub files: Vec<&'static str>,
    /// Pathspecs of files that honest work changes, such as lists of dependencies. One that selects
    /// no committed file is protected like `files`.
    pub manifests: Vec<&'static str>,
    /// Pathspecs of files that a setup may build. Only those that are committed are protected.
    pub built: Vec<&'static str>,
}

/// The known runners, as `docs/how-to/protect-tests.md` lists them.
pub static RUNNERS: LazyLock<Vec<Runner>> = LazyLock::new(|| {
    let mut runners: Vec<Runner> = Vec::new();
    for line in include_str!("runners.txt").lines() {
        let mut words = line.split(' ');
        match (words.next(), runners.last_mut()) {
            (Some("runner"), _) => runners.push(Runner { name: words.next().unwrap_or_default(), ..Runner::default() }),
            (Some("signs"), Some(runner)) => runner.signs.extend(words),
            (Some("files"), Some(runner)) => runner.files.extend(words),
            (Some("manifests"), Some(runner)) => runner.manifests.extend(words),
            (Some("built"), Some(runner)) => runner.built.extend(words),
            _ => {}
        }
    }
    runners
});

/// Pathspecs of further files, each of which is protected if it selects a committed file.
pub const FURTHER: &[&str] = &["test", "tests", ".github", ".gitlab-ci.yml", ".circleci", "Jenkinsfile"];

/// Folders of code of others and of samples, in which no runner is recognised.
pub const FOREIGN_FOLDERS: &[&str] = &["node_modules", "vendor", "third_party", "testdata", "fixtures"];

/// Returns the runner that reads the files of one of the known pathspecs.
pub fn runner(pathspec: &str) -> Option<&'static Runner> {
    RUNNERS.iter().find(|runner| runner.files.contains(&pathspec) || runner.manifests.contains(&pathspec))
}

/// Returns a pathspec without its magic.
pub fn display(pathspec: &str) -> &str {
    pathspec.strip_prefix(":(glob)**/").or_else(|| pathspec.strip_prefix(":(glob)")).unwrap_or(pathspec)
}

/// Returns a pathspec of a runner as it is shown: `x.ini` for that name in any folder, and `/x.ini`
/// for that path.
pub fn listed(pathspec: &str) -> String {
    let is_path =
        pathspec.strip_prefix(":(glob)").map_or(!pathspec.starts_with([':', '*']), |path| !path.starts_with("**/"));
    if is_path { format!("/{}", display(pathspec)) } else { display(pathspec).to_owned() }
}

/// Known pathspecs that are shown together: those of one runner, or a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'p> {
    /// The name of the runner, or `None` for a single pathspec.
    pub runner: Option<&'static str>,
    /// The pathspecs.
    pub pathspecs: Vec<&'p str>,
}

impl Group<'_> {
    /// Lists the pathspecs as they are shown.
    pub fn names(&self) -> String {
        match self.runner {
            Some(_) => self.pathspecs.iter().map(|pathspec| listed(pathspec)).collect::<Vec<_>>().join(", "),
            None => self.pathspecs.join(", "),
        }
    }
}

/// Groups neighbouring pathspecs of one runner.
pub fn grouped<'p>(pathspecs: impl IntoIterator<Item = &'p str>) -> Vec<Group<'p>> {
    let mut groups: Vec<Group<'p>> = Vec::new();
    for pathspec in pathspecs {
        let runner = runner(pathspec).map(|runner| runner.name);
        match groups.last_mut() {
            Some(last) if runner.is_some() && last.runner == runner => last.pathspecs.push(pathspec),
            _ => groups.push(Group { runner, pathspecs: vec![pathspec] }),
        }
    }
    groups
}

/// Names pathspecs in a sentence: single ones as they are, and those of a runner by its name.
pub fn in_words(pathspecs: &[String]) -> String {
    let words = grouped(pathspecs.iter().map(String::as_str)).into_iter().map(|group| match group.runner {
        Some(runner) => format!("the files of {runner}"),
        None => group.names(),
    });
    words.collect::<Vec<_>>().join(", ")
}
