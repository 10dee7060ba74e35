//! Writes the evidence of a page: a git bundle, without the contents that the page leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use gix::objs::Kind;

use crate::git::program;
use crate::git::store::Store;
use crate::ledger::chain;
use crate::model::digest::Oid;
use crate::model::format::REFS;
use crate::model::place::{self, Place};

use super::content::{Content, LeftOut, SMALL};

/// A bundle, and the blobs of its chains that it lacks.
pub(super) struct Evidence {
    pub(super) bundle: Vec<u8>,
    pub(super) omitted: BTreeSet<Oid>,
}

/// Returns a bundle of the runs and threads among these refs and of the logs that name one of them,
/// without some blobs. The page's script reads no time stamps.
///
/// If it lacks objects, it is of version 3 and says so with `@filter`, as git's own filtered
/// bundles do. It may contain more blobs than the filter says.
pub(super) fn bundle(
    store: &Store,
    refs: &BTreeMap<Place, Oid>,
    left_out: &LeftOut,
    content: Content,
) -> Result<Evidence, program::Error> {
    let read = refs.iter().filter(|(place, oid)| match place.kind {
        place::Kind::Run | place::Kind::Thread => true,
        place::Kind::Log => names_one(store, place, **oid, refs),
        _ => false,
    });
    let chosen = &read.map(|(place, oid)| (place.clone(), *oid)).collect();
    let Listed { lines, omitted } = objects(store, chosen, left_out, content)?;
    let omits = (!omitted.is_empty()).then_some(content);
    let mut bundle = head(store, chosen, omits).into_bytes();
    let call = store.git().env("GIT_NO_LAZY_FETCH", "1").config("pack.threads=0");
    call.args(["pack-objects", "--stdout", "--quiet", "--delta-base-offset", "--no-reuse-delta", "--window=50"])
        .input(lines)
        .stream(&mut |chunk| bundle.write_all(chunk))?;
    Ok(Evidence { bundle, omitted })
}

/// Returns true if a log names one of the runs and threads, or cannot be read. The logs of a remote
/// may be about others.
fn names_one(store: &Store, log: &Place, head: Oid, refs: &BTreeMap<Place, Oid>) -> bool {
    let Ok((_, links)) = chain::read_at(store, &log.below(REFS), head) else { return true };
    links.iter().any(|link| {
        let about = &link.entry.about;
        let (run, thread) = (about.run().map(Place::of_run), about.thread().map(Place::of_thread));
        run.or(thread).is_some_and(|place| refs.contains_key(&place))
    })
}

fn head(store: &Store, refs: &BTreeMap<Place, Oid>, omits: Option<Content>) -> String {
    let format = store.object_format();
    let version = match (omits, format) {
        (None, "sha1") => "# v2 git bundle\n".to_owned(),
        _ => format!("# v3 git bundle\n@object-format={format}\n"),
    };
    let filter = match omits {
        Some(Content::None) => "@filter=blob:none\n".to_owned(),
        Some(_) => format!("@filter=blob:limit={}\n", SMALL + 1),
        None => String::new(),
    };
    let refs: String = refs.iter().map(|(place, oid)| oid.to_string() + " " + &place.below(REFS) + "\n").collect();
    format!("{version}{filter}{refs}\n")
}

/// Lists the objects for `git pack-objects`, one a line with its path, and those that are left out:
/// the given ones, and blobs that a partial clone lacks.
fn objects(
    store: &Store,
    refs: &BTreeMap<Place, Oid>,
    left_out: &LeftOut,
    content: Content,
) -> Result<Listed, program::Error> {
    let tips: String = refs.values().map(|oid| oid.to_string() + "\n").collect();
    let call = store.git().env("GIT_NO_LAZY_FETCH", "1");
    let lines = call.args(["rev-list", "--objects", "--missing=print", "--stdin"]).input(tips).run()?;
    let needed = if content == Content::All { BTreeSet::new() } else { needed(store, refs)? };
    let mut listed = Listed { lines: Vec::with_capacity(lines.len()), omitted: BTreeSet::new() };
    for line in lines.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        let word = text.split_ascii_whitespace().next().unwrap_or_default();
        let is_missing = word.starts_with('?');
        let Ok(oid) = word.trim_start_matches('?').parse::<Oid>() else { continue };
        let path = text.trim_end().split_once(' ').map_or("", |(_, path)| path);
        let is_content = content == Content::None && holds_content(path);
        let is_left_out = (is_content || left_out.blobs.contains(&oid))
            && (store.kind(oid).ok().flatten() == Some(Kind::Blob))
            && !needed.contains(&oid);
        if is_missing || is_left_out {
            listed.omitted.insert(oid);
        } else {
            listed.lines.extend_from_slice(line);
        }
    }
    Ok(listed)
}

/// Returns the blobs of runs that are no contents, such as plans and manifests, and those of the
/// latest trees of other chains. A content with the same bytes stays, too.
fn needed(store: &Store, refs: &BTreeMap<Place, Oid>) -> Result<BTreeSet<Oid>, program::Error> {
    let mut needed = BTreeSet::new();
    for (place, tip) in refs {
        if place.kind == place::Kind::Run {
            let links = chain::read_at(store, &place.below(REFS), *tip).map_or_else(|_| Vec::new(), |(_, links)| links);
            let files = links.iter().flat_map(|link| link.entry.event.files());
            needed.extend(files.filter(|(path, _)| !holds_content(path)).map(|(_, product)| product.oid));
            continue;
        }
        let listed = store.git().args(["ls-tree", "-r", "-z", "--full-tree", &tip.to_string()]).run()?;
        for line in String::from_utf8_lossy(&listed).split_terminator('\0') {
            let Some((what, path)) = line.split_once('\t') else { continue };
            if !holds_content(path) {
                needed.extend(what.rsplit(' ').next().and_then(|oid| oid.parse::<Oid>().ok()));
            }
        }
    }
    Ok(needed)
}

/// Returns true for the paths of contents, in the tree of an entry of a run or a thread.
fn holds_content(path: &str) -> bool {
    matches!(path, "patch" | "state")
        || ["outputs/", "artifacts/", "worktree/"].into_iter().any(|folder| path.starts_with(folder))
}

struct Listed {
    lines: Vec<u8>,
    omitted: BTreeSet<Oid>,
}
