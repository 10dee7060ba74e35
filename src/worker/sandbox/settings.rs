//! Settings files of tools that may hold a secret: which of them workers get a copy of.

use std::fs;
use std::path::{Path, PathBuf};

use super::map::{Led, Map};
use super::reach::Surroundings;
use super::tools::TOOLS;
use crate::model::credential;

/// The most bytes of a settings file.
const MOST: u64 = 256 << 10;

/// Words that stand beside a secret, in lower case. A file with one of them is not copied, whatever it says.
const WORDS: [&str; 7] = ["_auth", "password", "passwd", "token", "secret", "credential", "apikey"];

/// What counts as a credential in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// What has the shape of one, and a URL with a user.
    Shapes,
    /// Each word of [`WORDS`] as well.
    Words,
}

/// Returns the settings files that hold no credential: the usual place of each below the home directory, where it is, and what
/// it says.
///
/// A file that is reached by a link which a worker may have made is left out.
pub(super) fn harmless(map: &Map, places: &[(&'static str, PathBuf)]) -> Vec<(PathBuf, String)> {
    let read = |(place, path): &(&str, PathBuf)| {
        let Led { real, planted: None, is_there: true } = map.clone().resolve(path)? else { return None };
        Some((PathBuf::from(place), read_harmless(&real, Strictness::Words)?))
    };
    places.iter().filter_map(read).collect()
}

/// Returns the usual place of each settings file below the home directory, and where it is looked for: where a variable says that
/// its tool lies, where an XDG variable says that it lies, or else at that place.
pub(super) fn places(around: &Surroundings, home: &Path) -> Vec<(&'static str, PathBuf)> {
    let place = |place: &&'static str| {
        let by_variable = TOOLS.tools.iter().find_map(|tool| {
            let rest = Path::new(place).strip_prefix(tool.path).ok()?;
            Some(tool.moved(|name| around.variable(name)).next()?.join(rest))
        });
        (*place, by_variable.or_else(|| around.moved(place)).unwrap_or_else(|| home.join(place)))
    };
    TOOLS.settings.iter().map(place).collect()
}

/// Returns the text of a file that holds no credential.
pub(super) fn read_harmless(file: &Path, strictness: Strictness) -> Option<String> {
    fs::metadata(file).ok().filter(|meta| meta.is_file() && meta.len() <= MOST)?;
    let text = fs::read_to_string(file).ok()?;
    (!holds_credential(&text, strictness)).then_some(text)
}

/// Returns true if a text holds what looks like a credential, or a URL with a user.
fn holds_credential(text: &str, strictness: Strictness) -> bool {
    let small = text.to_ascii_lowercase();
    let has_user = small.split("://").skip(1).any(|rest| {
        let host = rest.split(|c: char| c == '/' || c.is_whitespace() || c == '"' || c == '\'').next();
        host.is_some_and(|host| host.contains('@'))
    });
    let has_word = || strictness == Strictness::Words && WORDS.iter().any(|word| small.contains(word));
    has_user || has_word() || !credential::find_eagerly(text.as_bytes()).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_anything_like_a_credential_are_not_harmless() {
        for (text, holds) in [
            ("registry=https://npm.example.com/\nfund=false\n", false),
            ("[global]\nindex-url = https://pypi.example.com/simple\ntrusted-host = pypi.example.com\n", false),
            ("<settings><mirrors><mirror><url>https://m.example.com</url></mirror></mirrors></settings>", false),
            ("//npm.example.com/:_authToken=abc\n", true),
            ("//npm.example.com/:_authToken=${NPM_TOKEN}\n", true),
            ("_auth=YWRhOng=\n", true),
            ("[global]\nindex-url = https://ada:x@pypi.example.com/simple\n", true),
            ("[global]\nindex-url = \"https://ada@pypi.example.com/simple\"\n", true),
            ("<server><username>ada</username><password>x</password></server>", true),
            ("systemProp.https.proxyPassword=x\n", true),
            ("key = ghp_0123456789abcdefghijklmnopqrstuvwxyz\n", true),
        ] {
            assert_eq!(holds_credential(text, Strictness::Words), holds, "{text}");
        }
    }

    #[test]
    fn words_alone_do_not_count_where_only_shapes_do() {
        for (text, holds) in [
            ("{\"dependencies\": {\"jsonwebtoken\": \"9.0.2\", \"secret-stack\": \"6.4.1\"}}", false),
            ("[tool.pytest]\naddopts = \"--tokenize\"\n", false),
            ("{\"registry\": \"https://ada:x@npm.example.com\"}", true),
            ("password = \"hunter2hunter2\"\n", true),
            ("{\"key\": \"ghp_0123456789abcdefghijklmnopqrstuvwxyz\"}", true),
        ] {
            assert_eq!(holds_credential(text, Strictness::Shapes), holds, "{text}");
        }
    }
}
