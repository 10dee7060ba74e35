//! The remotes of the repository, as a worker's git is told of them.

use std::path::Path;

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

/// Copies the remotes, and what the branches follow, from the scopes that `wanted` picks. URLs lose their credentials.
///
/// A remote all of whose URLs have something else in them that looks like a credential is left out.
pub(super) fn copy(store: &Store, config: &mut Config, wanted: impl Fn(Source) -> bool) {
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    let sections = |name: &'static str| snapshot.plumbing().sections_by_name(name).into_iter().flatten();
    let top = store.work_dir().unwrap_or_else(|| store.git_dir());
    for section in sections("remote").filter(|section| wanted(section.meta().source)) {
        let Some(name) = section.header().subsection_name() else { continue };
        let urls: Vec<BString> = section.values("url").iter().filter_map(|url| shareable(url, &top)).collect();
        let others = OF_REMOTES.iter().flat_map(|key| section.values(key).into_iter().map(move |value| (*key, value)));
        let settings: Vec<_> = urls.into_iter().map(|url| ("url", url)).chain(others).collect();
        if settings.iter().any(|(key, _)| *key == "url") {
            config.section("remote", Some(name));
            settings.iter().for_each(|(key, value)| config.value(key, value));
        }
    }
    for section in sections("branch").filter(|section| wanted(section.meta().source)) {
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
    let scheme = url[..from - 3].rsplit(|byte| *byte == b':').next().unwrap_or_default().to_ascii_lowercase();
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
