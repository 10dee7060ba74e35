//! Copies the repository's remotes, without credentials, for a worker's git.

use std::fs;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice as _};
use gix::config::file::{Metadata, SectionRef, init};
use gix::config::{File, Source};

use super::git_config::Config;
use crate::git::store::Store;
use crate::model::credential;

/// The settings of a remote to copy besides its URLs. The last two describe a partial clone.
const OF_REMOTES: [&str; 4] = ["fetch", "tagOpt", "promisor", "partialclonefilter"];

/// URL schemes in which a user name can be a credential.
const WEB: [&[u8]; 4] = [b"http", b"https", b"ftp", b"ftps"];

/// Files that git reads when fetching from a repository, besides objects; no keys or hooks.
const READ: [&str; 5] = ["HEAD", "config", "packed-refs", "refs", "shallow"];

/// Usual sections of a repository's settings that contain no credentials.
const HARMLESS: [&str; 27] = [
    "advice",
    "branch",
    "color",
    "commit",
    "core",
    "diff",
    "extensions",
    "fetch",
    "gc",
    "index",
    "init",
    "lfs",
    "log",
    "maintenance",
    "merge",
    "pack",
    "pull",
    "push",
    "rebase",
    "receive",
    "remote",
    "repack",
    "status",
    "submodule",
    "tag",
    "transfer",
    "uploadpack",
];

/// Keys with command lines as values, which may contain a password.
const PROGRAMS: [&str; 6] = ["askpass", "editor", "gitproxy", "packobjectshook", "pager", "sshcommand"];

/// Returns the files that git reads in remotes on this machine, so that a confined worker can fetch
/// from them.
///
/// Skips a remote whose settings may contain a credential.
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
        // In git's order of lookup.
        let with_suffix = |suffix: &str| {
            let mut path = place.clone().into_os_string();
            path.push(suffix);
            PathBuf::from(path)
        };
        let Some(remote) =
            ["/.git", "", ".git/.git", ".git"].iter().find_map(|suffix| Store::open(&with_suffix(suffix)).ok())
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

/// Returns true if all sections, keys and values of a configuration are free of credentials.
fn is_clean(text: &[u8]) -> bool {
    let Ok(file) = File::from_bytes_no_includes(text, Metadata::api(), init::Options::default()) else { return false };
    credential::find_eagerly(text).is_empty()
        && file.sections().all(|section| has_known_keys(&section) && has_plain_values(&section))
}

fn has_plain_values(section: &SectionRef<'_>) -> bool {
    section.value_names().flat_map(|key| section.values(&key)).all(|value| is_plain(&value))
}

/// Returns true for a section with harmless keys only.
fn has_known_keys(section: &SectionRef<'_>) -> bool {
    let name = section.header().name().to_str_lossy().to_ascii_lowercase();
    let mut keys = section.value_names();
    HARMLESS.contains(&name.as_str()) && keys.all(|key| !PROGRAMS.contains(&key.to_ascii_lowercase().as_str()))
}

/// Returns true for the scopes of the repository's own settings.
pub(super) fn is_own(source: Source) -> bool {
    matches!(source, Source::Local | Source::Worktree)
}

/// Copies remotes and branches' upstreams from the repository's own settings. Removes credentials
/// from URLs.
///
/// Skips a remote if every URL has something else like a credential, and any other such value.
pub(super) fn copy(store: &Store, config: &mut Config) {
    let repo = store.local();
    let snapshot = repo.config_snapshot();
    let sections = |name: &'static str| snapshot.plumbing().sections_by_name(name).into_iter().flatten();
    let top = store.work_dir().unwrap_or_else(|| store.git_dir());
    let mut remotes = vec![BString::from(".")];
    for section in sections("remote").filter(|section| is_own(section.meta().source)) {
        let Some(name) = section.header().subsection_name() else { continue };
        let urls: Vec<BString> = section.values("url").iter().filter_map(|url| shareable(url, &top)).collect();
        let others = OF_REMOTES.iter().flat_map(|key| section.values(key).into_iter().map(move |value| (*key, value)));
        let others = others.filter(|(_, value)| is_plain(value));
        let settings: Vec<_> = urls.into_iter().map(|url| ("url", url)).chain(others).collect();
        if settings.iter().any(|(key, _)| *key == "url") {
            remotes.push(name.to_owned());
            config.section("remote", Some(name));
            settings.iter().for_each(|(key, value)| config.value(key, value));
        }
    }
    for section in sections("branch").filter(|section| is_own(section.meta().source)) {
        let Some(name) = section.header().subsection_name() else { continue };
        config.section("branch", Some(name));
        for remote in section.values("remote") {
            // git would treat an unknown name as a URL.
            let known = remotes.iter().find(|known| **known == *remote).cloned();
            if let Some(value) = known.or_else(|| shareable(&remote, &top)) {
                config.value("remote", &value);
            }
        }
        section.values("merge").iter().for_each(|value| config.value("merge", value));
    }
}

/// Returns a URL without credentials, or a path made absolute. Returns `None` if something else
/// looks like a credential.
fn shareable(url: &BString, top: &Path) -> Option<BString> {
    if is_path(url) && url.find("://").is_none() {
        let path: BString = top.join(url.to_path_lossy()).into_os_string().into_encoded_bytes().into();
        return credential::find(&path).is_empty().then_some(path);
    }
    clean(url)
}

/// Removes the credentials and query of a URL from a value; git needs no query. Returns `None` if
/// something else looks like a credential.
fn clean(value: &BString) -> Option<BString> {
    let mut clean = match value.find("://") {
        Some(at) => without_credentials(value, at + 3),
        None => value.clone(),
    };
    if let Some(query) = clean.find_byte(b'?') {
        clean.truncate(query);
    }
    credential::find(&clean).is_empty().then_some(clean)
}

/// Returns true if [`clean`] would leave a value unchanged.
fn is_plain(value: &BString) -> bool {
    clean(value).is_some_and(|clean| clean == *value)
}

/// Removes user name and password from a URL whose authority starts at `from`. Keeps the user name
/// of an SSH URL.
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

/// Returns true if git reads a URL without a scheme as a path, not as `host:path` or
/// `helper::address`.
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
            ("[http]\n\textraHeader = Authorization: Basic YWRhOng=\n", false),
            ("[http]\n\tproxy = me:pw@proxy.example.com:3128\n", false),
            ("[sendemail]\n\tsmtpPass = x\n", false),
            ("[imap]\n\tpass = x\n", false),
            ("[github]\n\toauth-token = 0123456789012345678901234567890123456789\n", false),
            ("[core]\n\tsshCommand = sshpass -p x ssh\n", false),
            ("[remote \"o\"]\n\turl = host:a?private_token=x\n", false),
            ("[branch \"main\"]\n\tremote = https://me:pw@example.com/a\n", false),
            (
                "[branch \"token\"]\n\tremote = origin\n\tmerge = refs/heads/token\n[extensions]\n\tobjectFormat = sha256\n",
                true,
            ),
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
            ("https://example.com/a?private_token=x", Some("https://example.com/a")),
            ("host:a.git?private_token=x", Some("host:a.git")),
            ("https://example.com/glpat-0123456789abcdefghij/a", None),
        ] {
            let found = shareable(&url.into(), Path::new("/top"));
            assert_eq!(
                found.as_ref().map(|found_url| found_url.to_str_lossy().into_owned()).as_deref(),
                expected,
                "{url}"
            );
        }
    }
}
