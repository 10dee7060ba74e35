//! The remotes of the repository, as a worker's git is told of them.

use std::fs;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice as _};
use gix::config::Source;

use super::git_config::Config;
use crate::git::store::Store;
use crate::model::credential;

/// The settings of a remote that are copied besides its URLs. The last two say what a partial clone lacks, and where it is.
const OF_REMOTES: [&str; 4] = ["fetch", "tagOpt", "promisor", "partialclonefilter"];

/// The settings of a branch that are copied: where it is fetched from.
const OF_BRANCHES: [&str; 2] = ["remote", "merge"];

/// The schemes in which a user name can be all of a credential.
const WEB: [&[u8]; 4] = [b"http", b"https", b"ftp", b"ftps"];

/// What git reads of a repository that it fetches from, besides the folders of objects. Keys and hooks are not among it.
const READ: [&str; 5] = ["HEAD", "config", "packed-refs", "refs", "shallow"];

/// Returns what git reads of the remotes that are repositories on this machine, so that a confined worker can fetch from them.
///
/// One whose settings hold something like a credential is left out.
pub fn remotes_here(store: &Store) -> Vec<PathBuf> {
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    let sections = snapshot.plumbing().sections_by_name("remote").into_iter().flatten();
    let top = store.work_dir().unwrap_or_else(|| store.git_dir());
    let urls = sections.filter(|section| is_own(section.meta().source)).flat_map(|section| section.values("url"));
    let places = urls.filter_map(|url| match url.strip_prefix(b"file://") {
        Some(path) => Some(path.to_path_lossy().into_owned()),
        None => is_path(&url).then(|| top.join(url.to_path_lossy())),
    });
    let mut found = Vec::new();
    for place in places {
        // In the order in which git looks for a repository at a path.
        let named = |suffix: &str| {
            let mut path = place.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        };
        let Some(remote) =
            ["/.git", "", ".git/.git", ".git"].iter().find_map(|suffix| Store::open(&named(suffix)).ok())
        else {
            continue;
        };
        let dir = remote.common_dir();
        if fs::read(dir.join("config")).is_ok_and(|text| is_clean(&text)) {
            found.extend(READ.iter().map(|name| dir.join(name)));
            found.extend(remote.object_dirs().unwrap_or_default());
        }
    }
    found.retain(|path| path.exists());
    found
}

/// Returns true if a file of settings has no URL with credentials and nothing else that looks like one.
fn is_clean(text: &[u8]) -> bool {
    let has_plain_url = |line: &[u8]| {
        let line = BString::from(line);
        line.find("://").is_none_or(|at| without_credentials(&line, at + 3) == line)
    };
    credential::find_eagerly(text).is_empty() && text.lines().all(has_plain_url)
}

/// Returns true for the scopes of the repository's own settings.
pub(super) fn is_own(source: Source) -> bool {
    matches!(source, Source::Local | Source::Worktree)
}

/// Copies the remotes, and what the branches follow, from the repository's own settings. URLs lose their credentials.
///
/// A remote all of whose URLs have something else in them that looks like a credential is left out.
pub(super) fn copy(store: &Store, config: &mut Config) {
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    let sections = |name: &'static str| snapshot.plumbing().sections_by_name(name).into_iter().flatten();
    let top = store.work_dir().unwrap_or_else(|| store.git_dir());
    for section in sections("remote").filter(|section| is_own(section.meta().source)) {
        let Some(name) = section.header().subsection_name() else { continue };
        let urls: Vec<BString> = section.values("url").iter().filter_map(|url| shareable(url, &top)).collect();
        let others = OF_REMOTES.iter().flat_map(|key| section.values(key).into_iter().map(move |value| (*key, value)));
        let settings: Vec<_> = urls.into_iter().map(|url| ("url", url)).chain(others).collect();
        if settings.iter().any(|(key, _)| *key == "url") {
            config.section("remote", Some(name));
            settings.iter().for_each(|(key, value)| config.value(key, value));
        }
    }
    for section in sections("branch").filter(|section| is_own(section.meta().source)) {
        let Some(name) = section.header().subsection_name() else { continue };
        config.section("branch", Some(name));
        for key in OF_BRANCHES {
            section.values(key).iter().for_each(|value| config.value(key, value));
        }
    }
}

/// Returns a URL without credentials, and a path as an absolute one; `None` if something else in it looks like a credential.
fn shareable(url: &BString, top: &Path) -> Option<BString> {
    let clean = match url.find("://") {
        Some(at) => without_credentials(url, at + 3),
        None if is_path(url) => top.join(url.to_path_lossy()).into_os_string().into_encoded_bytes().into(),
        None => url.clone(),
    };
    credential::find(&clean).is_empty().then_some(clean)
}

/// Takes user name and password out of a URL whose authority begins at `from`; the user name of an SSH URL stays.
fn without_credentials(url: &BString, from: usize) -> BString {
    let end = url[from..].find_byteset(b"/?#").map_or(url.len(), |at| from + at);
    let Some(at) = url[from..end].rfind_byte(b'@').map(|at| from + at) else { return url.clone() };
    let scheme =
        url[..from - 3].rsplit(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    let user = match url[from..at].split(|byte| *byte == b':').next() {
        Some(user) if !user.is_empty() && !WEB.contains(&scheme.as_slice()) => [user, b"@"].concat(),
        _ => Vec::new(),
    };
    [&url[..from], &user, &url[at + 1..]].concat().into()
}

/// Returns whether git takes a URL without a scheme for a path, and not for `host:path` or `helper::address`.
fn is_path(url: &BString) -> bool {
    let colon = url.find_byte(b':');
    let slash = url.find_byte(b'/');
    colon.is_none_or(|colon| slash.is_some_and(|slash| slash < colon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_credentials_are_told() {
        for (text, expected) in [
            (
                "[core]\n\tbare = true\n[remote \"o\"]\n\turl = git@example.com:a\n\turl = ssh://git@example.com/a\n",
                true,
            ),
            ("[remote \"o\"]\n\turl = https://token@example.com/a\n", false),
            ("[remote \"o\"]\n\turl = ssh://me:pw@example.com/a\n", false),
            ("[http]\n\textraHeader = Authorization: Basic ghp_0123456789abcdefghijABCDEFGHIJ012345\n", false),
        ] {
            assert_eq!(is_clean(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn urls_lose_their_credentials_and_nothing_else() {
        for (url, expected) in [
            ("https://example.com/a.git", Some("https://example.com/a.git")),
            ("https://me:pw@example.com:8443/a.git", Some("https://example.com:8443/a.git")),
            ("HTTPS://token@example.com/a@b", Some("HTTPS://example.com/a@b")),
            ("http://a:b@c@example.com", Some("http://example.com")),
            ("https://example.com/~me/a@2", Some("https://example.com/~me/a@2")),
            ("ssh://git@example.com:22/a", Some("ssh://git@example.com:22/a")),
            ("ssh://git:pw@example.com/a", Some("ssh://git@example.com/a")),
            ("ssh://:pw@example.com/a", Some("ssh://example.com/a")),
            ("git@example.com:a/b.git", Some("git@example.com:a/b.git")),
            ("helper::https://me:pw@example.com/a", Some("helper::https://example.com/a")),
            ("file:///srv/a b.git", Some("file:///srv/a b.git")),
            ("/srv/a.git", Some("/srv/a.git")),
            ("../a.git", Some("/top/../a.git")),
            ("./with:colon", Some("/top/./with:colon")),
            ("https://example.com/a?private_token=glpat-0123456789abcdefghij", None),
        ] {
            let found = shareable(&url.into(), Path::new("/top"));
            assert_eq!(found.as_ref().map(|url| url.to_str_lossy().into_owned()).as_deref(), expected, "{url}");
        }
    }
}
