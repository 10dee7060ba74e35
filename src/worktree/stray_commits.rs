//! Saves commits that an attempt made and that its work does not contain: on a branch that it left
//! again, in a stash, or in a worktree of its own.
//!
//! The worker's git directory is hostile: it is read file by file, and git never runs in it. Its
//! objects are copied into a temporary repository with our configuration.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use gix::bstr::ByteSlice as _;

use crate::git::program;
use crate::git::scratch_repo::{self, ScratchRepo};
use crate::git::secret_scan::{self, Range};
use crate::git::store::{self, KeepGuard};
use crate::git::work_tree::BRANCHES;
use crate::model::digest::Oid;
use crate::model::printable;
use crate::sandbox::folder::{Folder, Room};
use crate::worktree::host::Host;
use crate::worktree::workspace::{self, Workspace};

/// The largest file of refs that is read, in bytes.
const MAX_REFS: u64 = 16 << 20;

/// The most refs that are saved.
const MOST_TIPS: usize = 100;

/// The stash.
const STASH: &str = "refs/stash";

/// Commits of an attempt that are not in its work.
#[derive(Debug, Default)]
pub struct Stray {
    /// A sentence for each branch.
    pub sentences: Vec<String>,
    /// A bundle of git's with all of them, as a blob, or `None` if they cannot be saved.
    pub bundle: Option<Oid>,
    /// Keeps the blob until a ref reaches it.
    pub guard: KeepGuard,
    /// Whether the bundle has all of them.
    pub is_whole: bool,
}

/// A ref with commits to save.
struct Tip {
    /// The ref in the bundle.
    name: String,
    /// The name for people.
    title: String,
    oid: Oid,
}

/// Finds these commits, and saves them as a bundle. Call it after the worker's processes ended.
pub fn save(workspace: &Workspace, host: &Host) -> Result<Stray, Error> {
    let nothing = Stray { is_whole: true, ..Stray::default() };
    let Ok(git_dir) = workspace.folder().folder("tree/.git") else { return Ok(nothing) };
    let given = parse_packed(host.refs()?.packed());
    let own = read_refs(&git_dir)?;
    let head = head_of(&git_dir, &own);
    let worktrees = worktrees(&git_dir);
    let names = worktrees.iter().map(|(name, _)| format!("the worktree {} is not taken", printable::line(name)));
    let sentences: Vec<String> = names.collect();
    let tips = tips(worktrees, &own, &given, head, workspace.base);
    if tips.is_empty() {
        return Ok(Stray { sentences, ..nothing });
    }
    let mut scratch = ScratchRepo::new(host.store.object_format())?;
    scratch.borrow_objects(&host.store)?;
    copy_objects(&git_dir, &scratch.store().objects_dir(), host.settings.max_salvage)?;
    let known: Vec<Oid> = given.values().copied().chain(head).chain([workspace.base]).collect();
    let mut stray = write_bundle(host, &scratch, tips, &known)?;
    stray.sentences.extend(sentences);
    Ok(stray)
}

/// Writes the bundle of those tips that have commits of their own.
fn write_bundle(host: &Host, scratch: &ScratchRepo, tips: Vec<Tip>, known: &[Oid]) -> Result<Stray, Error> {
    let git = || scratch.store().git().env("GIT_NO_LAZY_FETCH", "1");
    let excluded = lines(known.iter().map(|oid| format!("^{oid}")));
    let mut stray = Stray { is_whole: true, ..Stray::default() };
    let mut saved = Vec::new();
    for tip in tips.into_iter().take(MOST_TIPS) {
        let call = git().args(["rev-list", "--count", "--ignore-missing", "--stdin"]);
        let count = call.input(format!("{}\n{excluded}", tip.oid)).line()?;
        if count != "0" {
            let commits = if count == "1" { "1 commit".to_owned() } else { format!("{count} commits") };
            let are = if count == "1" { "is" } else { "are" };
            stray.sentences.push(if tip.name == STASH {
                "the stash is not taken".to_owned()
            } else {
                format!("{commits} on {} {are} not taken", tip.title)
            });
            saved.push(tip);
        }
    }
    if saved.is_empty() {
        return Ok(stray);
    }
    let range =
        Range { tips: saved.iter().map(|tip| tip.oid).collect(), known: known.iter().map(Oid::to_string).collect() };
    if let Some((_, secret)) = secret_scan::new_objects(&git, &range, &host.gate)?.into_iter().next() {
        stray.sentences.push(format!("these commits are not saved: {secret}"));
        stray.is_whole = false;
        return Ok(stray);
    }
    for tip in &saved {
        git().args(["update-ref", &tip.name, &tip.oid.to_string()]).run()?;
    }
    let path = scratch.store().git_dir().join("commits.bundle");
    let names = lines(saved.iter().map(|tip| tip.name.clone()));
    git().args(["bundle", "create", "--quiet"]).arg(&path).arg("--stdin").input(names + &excluded).run()?;
    let mut batch = host.store.batch();
    let bundle = batch.write_file(&mut File::open(&path).map_err(Error::Read)?)?;
    (stray.bundle, stray.guard) = (Some(bundle.oid), batch.keep()?);
    Ok(stray)
}

/// Returns lines, each with its end.
fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Returns the refs whose commits the work may lack.
fn tips(
    worktrees: Vec<(String, Option<Oid>)>,
    own: &BTreeMap<String, Oid>,
    given: &BTreeMap<String, Oid>,
    head: Option<Oid>,
    base: Oid,
) -> Vec<Tip> {
    let is_new = |name: &str, oid: Oid| given.get(name) != Some(&oid) && Some(oid) != head && oid != base;
    let of_branches =
        own.iter().filter(|(name, oid)| (name.starts_with(BRANCHES) || name.as_str() == STASH) && is_new(name, **oid));
    let mut tips: Vec<Tip> = of_branches
        .map(|(name, oid)| {
            let title = printable::line(name.trim_start_matches(BRANCHES));
            Tip { name: name.clone(), title, oid: *oid }
        })
        .collect();
    for (number, (name, detached)) in worktrees.into_iter().enumerate() {
        if let Some(oid) = detached.filter(|oid| is_new("", *oid)) {
            let title = format!("the detached HEAD of the worktree {}", printable::line(&name));
            tips.push(Tip { name: format!("refs/heads/worktree-{number}"), title, oid });
        }
    }
    tips
}

/// Returns the worktrees that the worker added, each with the commit of its `HEAD` if that is
/// detached.
fn worktrees(git_dir: &Folder) -> Vec<(String, Option<Oid>)> {
    let Ok(folder) = git_dir.folder("worktrees") else { return Vec::new() };
    let names = folder.entries().into_iter().flatten().filter_map(|entry| String::from_utf8(entry.ok()?.0).ok());
    let heads = names.take(MOST_TIPS).map(|name| {
        let head = folder.read(&format!("{name}/HEAD"), MAX_REFS);
        let oid = head.ok().and_then(|head| std::str::from_utf8(&head).ok()?.trim().parse().ok());
        (name, oid)
    });
    heads.collect()
}

/// Reads the packed and the loose refs of a git directory. Skips what git would not understand.
fn read_refs(git_dir: &Folder) -> Result<BTreeMap<String, Oid>, Error> {
    let mut refs = git_dir.read("packed-refs", MAX_REFS).map(|packed| parse_packed(&packed)).unwrap_or_default();
    let (mut folders, mut room) = (vec!["refs".to_owned()], Room::new());
    while let Some(path) = folders.pop() {
        let Ok(folder) = git_dir.folder(&path) else { continue };
        for entry in folder.entries().into_iter().flatten() {
            let Ok((name, kind)) = entry else { continue };
            let Ok(name) = String::from_utf8(name) else { continue };
            let below = format!("{path}/{name}");
            room.take(below.len()).map_err(|crowded| Error::Crowded(crowded.to_string()))?;
            if kind == rustix::fs::FileType::Directory {
                folders.push(below);
            } else if let Ok(content) = folder.read(&name, MAX_REFS)
                && let Some(oid) = std::str::from_utf8(&content).ok().and_then(|text| text.trim().parse().ok())
                && gix::validate::reference::name(below.as_bytes().as_bstr()).is_ok()
            {
                refs.insert(below, oid);
            }
        }
    }
    Ok(refs)
}

/// Returns the commit of `HEAD`, or `None` if it has none.
fn head_of(git_dir: &Folder, refs: &BTreeMap<String, Oid>) -> Option<Oid> {
    let head = git_dir.read("HEAD", MAX_REFS).ok()?;
    let text = std::str::from_utf8(&head).ok()?.trim();
    match text.strip_prefix("ref: ") {
        Some(name) => refs.get(name.trim()).copied(),
        None => text.parse().ok(),
    }
}

/// Parses the lines of `packed-refs`.
fn parse_packed(bytes: &[u8]) -> BTreeMap<String, Oid> {
    let lines = bytes.lines().filter_map(|line| std::str::from_utf8(line).ok());
    let refs = lines.filter_map(|line| {
        let (oid, name) = line.split_once(' ')?;
        let is_ref = gix::validate::reference::name(name.as_bytes().as_bstr()).is_ok();
        Some((name.to_owned(), oid.parse().ok()?)).filter(|_| is_ref)
    });
    refs.collect()
}

/// Copies the loose objects and the packs, up to a size. Follows no links.
fn copy_objects(git_dir: &Folder, to: &Path, mut left: u64) -> Result<(), Error> {
    let Ok(objects) = git_dir.folder("objects") else { return Ok(()) };
    for entry in objects.entries().map_err(Error::Read)? {
        let Ok((name, _)) = entry else { continue };
        let Ok(name) = String::from_utf8(name) else { continue };
        let is_fan = name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !(is_fan || name == "pack") {
            continue;
        }
        let Ok(folder) = objects.folder(&name) else { continue };
        let target = to.join(&name);
        std::fs::create_dir_all(&target).map_err(Error::Read)?;
        for file in folder.entries().map_err(Error::Read)? {
            let Ok((file_name, _)) = file else { continue };
            let Ok(file_name) = String::from_utf8(file_name) else { continue };
            let Ok(mut source) = folder.file(&file_name) else { continue };
            let bytes = source.metadata().map_err(Error::Read)?.len();
            left = left.checked_sub(bytes).ok_or(Error::TooLarge)?;
            let mut copy = File::create_new(target.join(&file_name)).map_err(Error::Read)?;
            io::copy(&mut source, &mut copy).map_err(Error::Read)?;
        }
    }
    Ok(())
}

errors! {
    /// Why commits could not be saved.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    TooLarge: "the objects of its repository are larger than what is saved of one attempt";
    Read(#[source] io::Error): "cannot read the repository of the worktree";
    Crowded(String): "{0}";
    Git(#[from] program::Error): "cannot read the commits of the worktree";
    Store(#[from] store::Error): "cannot store the commits of the worktree";
    #[from] Workspace(workspace::Error), Scratch(scratch_repo::Error);
}
