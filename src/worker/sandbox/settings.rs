//! Settings files of tools that may hold a secret: which of them workers get a copy of.

use std::fs;
use std::path::{Path, PathBuf};

use super::map::{Led, Map};
use super::tools::TOOLS;
use crate::model::credential;

/// The most bytes of a settings file.
const MOST: u64 = 256 << 10;

/// Words that stand beside a secret, in lower case. A file with one of them is not copied, whatever it says.
const WORDS: [&str; 7] = ["_auth", "password", "passwd", "token", "secret", "credential", "apikey"];

/// Returns the settings files of a home directory that hold no credential: their places below it, and what they say.
///
/// A file that is reached by a link which a worker may have made is left out.
pub(super) fn harmless(map: &Map, home: &Path) -> Vec<(PathBuf, String)> {
    let read = |place: &&str| {
        let Led { real, planted: None, is_there: true } = map.clone().resolve(&home.join(place))? else { return None };
        let meta = fs::metadata(&real).ok()?;
        let text = fs::read_to_string(&real).ok().filter(|_| meta.is_file() && meta.len() <= MOST)?;
        (!holds_credential(&text)).then(|| (PathBuf::from(place), text))
    };
    TOOLS.settings.iter().filter_map(read).collect()
}

/// Returns true if a text holds what looks like a credential, or a word that stands beside one, or a URL with a user.
fn holds_credential(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    let has_user = small.split("://").skip(1).any(|rest| {
        let host = rest.split(|c: char| c == '/' || c.is_whitespace() || c == '"' || c == '\'').next();
        host.is_some_and(|host| host.contains('@'))
    });
    has_user || WORDS.iter().any(|word| small.contains(word)) || !credential::find_eagerly(text.as_bytes()).is_empty()
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
            assert_eq!(holds_credential(text), holds, "{text}");
        }
    }
}
