//! Options of programs that start Java, which asks no variable for the home directory and the folder for temporary files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::reach::Surroundings;

/// Programs that are, or need, Java.
const PROGRAMS: [&str; 5] = ["ant", "gradle", "java", "mvn", "sbt"];

/// Variables with options for the Java that a program starts. `JAVA_TOOL_OPTIONS` is none of them: each Java says
/// that it was given some.
const OPTIONS: [&str; 5] = ["ANT_OPTS", "GRADLE_OPTS", "JAVA_OPTS", "MAVEN_OPTS", "SBT_OPTS"];

/// Returns true if Java, or a program that brings it, is found.
pub(super) fn is_there(around: &Surroundings) -> bool {
    let is_in_path = || around.path.iter().any(|folder| PROGRAMS.iter().any(|program| folder.join(program).exists()));
    around.variable("JAVA_HOME").is_some() || is_in_path()
}

/// Returns the variables by which Java finds a home directory and a folder for temporary files. What `env` has of the options
/// stays before them.
///
/// A path with a space in it is left out: most of these programs take it for two options.
pub(super) fn options(
    (home, tmp): (Option<&Path>, Option<&Path>),
    env: &BTreeMap<String, OsString>,
) -> Vec<(&'static str, OsString)> {
    let properties = [("-Duser.home=", home), ("-Djava.io.tmpdir=", tmp)];
    let is_one_word = |path: &&Path| !path.as_os_str().as_encoded_bytes().iter().any(u8::is_ascii_whitespace);
    let named = properties.into_iter().filter_map(|(name, path)| Some((name, path.filter(is_one_word)?)));
    let own = named.map(|(name, path)| [OsStr::new(name), path.as_os_str()].into_iter().collect::<OsString>());
    let own: Vec<OsString> = own.collect();
    let with = |name: &'static str| {
        let given = env.get(name).filter(|given| !given.is_empty());
        (name, given.into_iter().chain(&own).cloned().collect::<Vec<_>>().join(OsStr::new(" ")))
    };
    if own.is_empty() { Vec::new() } else { OPTIONS.map(with).to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stay_and_ours_follow_unless_a_path_has_a_space() {
        let env = BTreeMap::from([("GRADLE_OPTS".to_owned(), "-Xmx1g".into())]);
        let options = |home, tmp| -> Vec<String> {
            let found = super::options((home, tmp), &env).into_iter();
            found.map(|(name, value)| format!("{name}={}", value.display())).collect()
        };
        let [home, tmp, spaced] = ["/w/home", "/w/tmp", "/a b/tmp"].map(|path| Some(Path::new(path)));
        let both = options(home, tmp);
        assert_eq!(both[1], "GRADLE_OPTS=-Xmx1g -Duser.home=/w/home -Djava.io.tmpdir=/w/tmp");
        assert_eq!(both[3], "MAVEN_OPTS=-Duser.home=/w/home -Djava.io.tmpdir=/w/tmp");
        assert_eq!(options(None, tmp)[3], "MAVEN_OPTS=-Djava.io.tmpdir=/w/tmp");
        assert_eq!(options(home, spaced)[3], "MAVEN_OPTS=-Duser.home=/w/home");
        assert!(options(None, spaced).is_empty() && options(None, None).is_empty());
    }
}
