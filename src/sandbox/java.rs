//! Passes the home directory and temporary folder to Java, which reads no variable for them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::policy::Surroundings;

/// Programs that are or need Java.
const PROGRAMS: [&str; 5] = ["ant", "gradle", "java", "mvn", "sbt"];

/// Variables with Java options of certain programs. `JAVA_TOOL_OPTIONS` is not used, because every
/// Java then prints a notice.
const OPTIONS: [&str; 5] = ["ANT_OPTS", "GRADLE_OPTS", "JAVA_OPTS", "MAVEN_OPTS", "SBT_OPTS"];

/// Folders of a worker that Java does not find itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own<'a> {
    /// The home directory.
    pub(super) home: Option<&'a Path>,
    /// The folder for temporary files.
    pub(super) tmp: Option<&'a Path>,
    /// The folder for Gradle's daemons, if the usual one is hidden.
    pub(super) daemons: Option<&'a Path>,
}

/// Returns true if Java or a program that includes it is installed.
pub(super) fn is_there(around: &Surroundings) -> bool {
    around.variable("JAVA_HOME").is_some()
        || around.path.iter().any(|folder| PROGRAMS.iter().any(|program| folder.join(program).exists()))
}

/// Returns variables that pass Java a home directory and a temporary folder. Keeps the options in
/// `env`.
///
/// Omits a path with a space: most of these programs would split it.
pub(super) fn options(own: &Own<'_>, env: &BTreeMap<String, OsString>) -> Vec<(&'static str, OsString)> {
    let common = [property("-Duser.home=", own.home), property("-Djava.io.tmpdir=", own.tmp)];
    let daemons = property("-Dorg.gradle.daemon.registry.base=", own.daemons);
    OPTIONS
        .into_iter()
        .filter_map(|name| {
            let ours: Vec<&OsString> =
                common.iter().chain((name == "GRADLE_OPTS").then_some(&daemons)).flatten().collect();
            let given = env.get(name).filter(|given| !given.is_empty());
            let all: Vec<OsString> = given.into_iter().chain(ours.iter().copied()).cloned().collect();
            (!ours.is_empty()).then(|| (name, all.join(OsStr::new(" "))))
        })
        .collect()
}

/// Returns an option of Java, unless a space is in its path.
fn property(name: &str, path: Option<&Path>) -> Option<OsString> {
    let path = path?.as_os_str();
    let has_space = path.as_encoded_bytes().iter().any(u8::is_ascii_whitespace);
    (!has_space).then(|| [OsStr::new(name), path].into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stay_and_ours_follow_unless_a_path_has_a_space() {
        let env = BTreeMap::from([("GRADLE_OPTS".to_owned(), "-Xmx1g".into())]);
        let options = |home, tmp| -> Vec<String> {
            let found = super::options(&Own { home, tmp, daemons: None }, &env).into_iter();
            found.map(|(name, value)| format!("{name}={}", value.display())).collect()
        };
        let [home, tmp, spaced] = ["/w/home", "/w/tmp", "/a b/tmp"].map(|path| Some(Path::new(path)));
        let both = options(home, tmp);
        assert_eq!(both[1], "GRADLE_OPTS=-Xmx1g -Duser.home=/w/home -Djava.io.tmpdir=/w/tmp");
        assert_eq!(both[3], "MAVEN_OPTS=-Duser.home=/w/home -Djava.io.tmpdir=/w/tmp");
        assert_eq!(options(None, tmp)[3], "MAVEN_OPTS=-Djava.io.tmpdir=/w/tmp");
        assert_eq!(options(home, spaced)[3], "MAVEN_OPTS=-Duser.home=/w/home");
        assert!(options(None, spaced).is_empty() && options(None, None).is_empty());
        let own = Own { daemons: tmp, ..Own::default() };
        let value = "-Xmx1g -Dorg.gradle.daemon.registry.base=/w/tmp".into();
        assert_eq!(super::options(&own, &env), [("GRADLE_OPTS", value)]);
    }
}
