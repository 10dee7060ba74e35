//! Copies settings files of tools that may contain a secret, if they contain none.

use std::fs;
use std::path::{Path, PathBuf};

use super::access_map::AccessMap;
use super::policy::Surroundings;
use super::resolve::Led;
use super::tools::TOOLS;
use crate::model::credential;

/// The most bytes of a settings file.
const MOST: u64 = 256 << 10;

/// Lower-case words next to secrets. A file with one of them is not copied.
const WORDS: [&str; 18] = [
    "access_key",
    "accesskey",
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "basic ",
    "bearer",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "private-key",
    "private_key",
    "privatekey",
    "pwd",
    "secret",
    "token",
];

/// Harmless words that contain one of [`WORDS`].
const HARMLESS: [&str; 4] = ["always-auth", "alwaysauth", "auth-type", "author"];

/// The patterns that count as a credential in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Known shapes of credentials, and URLs with a user.
    Shapes,
    /// Also every word of [`WORDS`].
    Words,
}

/// Returns the settings files without credentials: usual place in the home directory, real path,
/// and content.
///
/// Skips a file behind a link that a worker may have made.
pub(super) fn harmless(map: &AccessMap, places: &[(&'static str, PathBuf)]) -> Vec<(PathBuf, String)> {
    places
        .iter()
        .filter_map(|(place, path)| {
            let Led { real, planted: None, is_there: true } = map.follow(path)? else { return None };
            Some((PathBuf::from(place), read_harmless(&real, Strictness::Words)?))
        })
        .collect()
}

/// Returns each settings file's usual place and its path: by the tool's variable, by an XDG
/// variable, or at the usual place.
pub(super) fn places(around: &Surroundings, home: &Path) -> Vec<(&'static str, PathBuf)> {
    TOOLS
        .settings
        .iter()
        .map(|place| {
            let by_variable = TOOLS.tools.iter().find_map(|tool| {
                let rest = Path::new(place).strip_prefix(tool.path).ok()?;
                Some(tool.moved(|name| around.variable(name)).next()?.join(rest))
            });
            (*place, by_variable.or_else(|| around.moved(place)).unwrap_or_else(|| home.join(place)))
        })
        .collect()
}

/// Returns the text of a file without credentials; if words count, without comments.
pub(super) fn read_harmless(file: &Path, strictness: Strictness) -> Option<String> {
    fs::metadata(file).ok().filter(|meta| meta.is_file() && meta.len() <= MOST)?;
    let text = fs::read_to_string(file).ok()?;
    let text = if strictness == Strictness::Words { without_comments(&text) } else { text };
    (!holds_credential(&text, strictness)).then_some(text)
}

/// Returns a text of settings without comments, or `None` if it may hold a credential.
pub(super) fn harmless_part(text: &str) -> Option<String> {
    let text = without_comments(text);
    (!holds_credential(&text, Strictness::Words)).then_some(text)
}

/// Returns a text without comment lines, which may contain an old credential.
fn without_comments(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.trim_start().starts_with(['#', ';'])).collect()
}

/// Returns true if a text contains a likely credential or a URL with one; if words count, also a
/// suspicious word or a quoted pair of user and password.
fn holds_credential(text: &str, strictness: Strictness) -> bool {
    let small = HARMLESS.iter().fold(text.to_ascii_lowercase(), |text, word| text.replace(word, ""));
    let mut urls = text.split("://").skip(1);
    let mut quoted = text.split(['"', '\'']).skip(1).step_by(2);
    urls.any(|url| url_holds_credential(url, strictness))
        || strictness == Strictness::Words && (WORDS.iter().any(|word| small.contains(word)) || quoted.any(is_pair))
        || !credential::find_eagerly(text.as_bytes()).is_empty()
}

/// Returns true if a URL, given from its host on, has a user; if words count, also a query or a
/// path component that looks like a token.
fn url_holds_credential(text: &str, strictness: Strictness) -> bool {
    let url = text
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ',' | '|'))
        .next()
        .unwrap_or_default();
    let mut parts = url.split('/');
    parts.next().is_some_and(|host| host.contains('@'))
        || strictness == Strictness::Words
            && (url.contains('?') || parts.any(|part| part == "t" || looks_like_token(part)))
}

/// Returns true for at least twelve characters with letters and digits, or sixteen with upper and
/// lower case.
fn looks_like_token(part: &str) -> bool {
    let is_word = part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_mixed = has_char(part, char::is_ascii_digit)
        && has_char(part, char::is_ascii_alphabetic)
        && (part.len() >= 20 || !part.contains('-'));
    let is_cased = has_char(part, char::is_ascii_lowercase) && has_char(part, char::is_ascii_uppercase);
    is_word && (part.len() >= 12 && is_mixed || part.len() >= 16 && is_cased)
}

fn has_char(part: &str, is: fn(&char) -> bool) -> bool {
    part.chars().any(|c| is(&c))
}

/// Returns true for `user:password` alone, and false for a host with a port.
fn is_pair(value: &str) -> bool {
    let Some((left, right)) = value.split_once(':') else { return false };
    let is_plain = !value.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\\' | '{' | '$'));
    is_plain && !left.is_empty() && !right.contains(':') && right.parse::<u16>().is_err() && !right.is_empty()
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
            ("always-auth=true\ninit-author-name=Ada\nauth-type=web\n", false),
            ("npmAuthIdent: \"ada:x\"\n", true),
            ("BUNDLE_GEMS__EXAMPLE__COM: \"ada:x\"\n", true),
            (
                "BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"https://gems.example.com\"\nBUNDLE_PROXY: \"proxy:3128\"\n",
                false,
            ),
            ("channels:\n  - https://conda.example.com/t/ab-12-cd/main\n", true),
            ("channels:\n  - https://conda.example.com/main\n", false),
            ("{\"config\": {\"github-oauth\": {\"github.com\": \"x\"}}}", true),
            ("{\"repositories\": [{\"type\": \"composer\", \"url\": \"https://packages.example.com\"}]}", false),
            ("<server><privateKey>k</privateKey><passphrase>x</passphrase></server>", true),
            (":api_key: x\n", true),
            ("index-url = https://dl.example.com/aB3dE5fG7hI9jK1l/org/python/simple\n", true),
            ("index-url = https://pypi.example.com/aBcDeFgHiJkLmNoPq/simple\n", true),
            ("registry=https://npm.example.com/artifactory/api/npm/npm-virtual-2024/\n", false),
            ("GOPROXY=https://goproxy.example.com/repository/go-group,direct\n", false),
            ("registry=https://npm.example.com/?apiToken=x\n", true),
            ("header = 'Basic YWRhOng='\n", true),
            ("maven { url 'https://m.example.com/maven2' }\nclasspath 'com.example:plugin:1.0'\n", false),
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

    #[test]
    fn comments_are_not_copied() {
        let text =
            "# //npm.example.com/:_authToken=abc\nregistry=https://npm.example.com/\n  ; password = x\nfund=false";
        assert_eq!(without_comments(text), "registry=https://npm.example.com/\nfund=false");
    }
}
