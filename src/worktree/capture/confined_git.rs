//! Runs git with the repository's filters, confined like the attempt's commands.
//!
//! It can write only one folder, which contains its own git directory, and read what the attempt
//! may read. Its processes may be the worker's, so we never use that git directory. We read only
//! the printed bytes for each path, within limits, and git-lfs objects whose content matches their
//! name.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::bstr::{BStr, BString, ByteSlice as _};
use gix::objs::{Kind, Write as _};
use tokio::sync::watch;

use super::Error;
use super::filtered::{Converted, Failing};
use super::large::{self, Kept};
use super::part::Part;
use super::tree::Scratch;
use super::walk::display_path;
use crate::git::cancellation::Cancellation;
use crate::git::program;
use crate::model::causes::in_words;
use crate::model::digest::Oid;
use crate::model::entry::Exit;
use crate::model::last_lines::last_lines;
use crate::model::limits::Limits;
use crate::process::agent::{self, Cause, Confined, Ended, Invocation, Stdin};
use crate::process::attendant::Attendant;
use crate::process::survivors;
use crate::process::transcript::TranscriptWriter;
use crate::worktree::filters::Inside;
use crate::worktree::workspace::make_home;

/// The name of that folder in the attempt's folder.
pub(crate) const FOLDER: &str = "filter";

/// The most bytes of all filters' output in one capture.
const MOST: u64 = 1 << 30;

/// The most bytes of messages to keep.
const SAID: u64 = 64 << 10;

/// The longest line before a blob, including the longest path.
const LONGEST: u64 = 16 << 10;

/// How often to poll for a cancellation.
const LOOK: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(5);

/// Runs git in that folder on the worktree and prints the result for each path, or that it is
/// missing.
const SCRIPT: &str = r#"goes_on=$1; shift
git -C "$GIT_WORK_TREE" "$@" <"$GIT_DIR/paths" || $goes_on || exit 1
exec git cat-file --batch -z <"$GIT_DIR/names" >"$GIT_DIR/blobs""#;

/// Runs the filters of some paths and returns the results.
pub(super) fn run(
    part: &Part<'_>,
    scratch: &Scratch,
    inside: &Inside,
    paths: &BTreeSet<BString>,
    failing: Failing,
) -> Result<Converted, Error> {
    let workspace = part.workspace;
    let dir = workspace.dir.join(FOLDER);
    workspace.folder().remove(FOLDER).map_err(Error::at(&dir))?;
    let _gone = Gone(part);
    prepare(part, scratch, inside, &dir).map_err(Error::at(&dir))??;
    write_paths(&dir, paths, failing).map_err(Error::at(&dir))?;
    let invocation = invocation(part, scratch, inside, &dir, failing);
    let mut transcript =
        TranscriptWriter::create(&workspace.dir, &[], SAID).map_err(|e| Error::Filter(in_words(&e)))?;
    transcript.follow();
    let ended = confined(&invocation, &mut transcript, &part.host.stop);
    if !ended.as_ref().is_ok_and(|ended| ended.is_clean) {
        workspace.doubt();
    }
    let ended = ended.map_err(|error| Error::Filter(in_words(&error)))?;
    judge(&ended, &transcript.followed(), failing)?;
    read(part, scratch, inside, paths, failing)
}

/// Removes the folder. Remains are removed with the attempt's folder or before the next capture.
struct Gone<'a>(&'a Part<'a>);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let _ = self.0.workspace.folder().remove(FOLDER);
    }
}

/// Creates the folder with a git directory that knows the filters, and a home directory if the
/// attempt had its own.
fn prepare(part: &Part<'_>, scratch: &Scratch, inside: &Inside, dir: &Path) -> io::Result<Result<(), Error>> {
    part.git_dir.write(dir)?;
    let mut config = File::options().append(true).open(dir.join("config"))?;
    config.write_all(&part.git_dir.filter_settings(&dir.join("lfs")))?;
    fs::copy(scratch.index(), dir.join("index"))?;
    fs::create_dir(dir.join("tmp"))?;
    if inside.by.has_own_home() {
        return Ok(make_home(&dir.join("home"), part.host, &inside.by.at_home()).map_err(Error::Workspace));
    }
    Ok(Ok(()))
}

/// Writes the list of paths to add and to print.
fn write_paths(dir: &Path, paths: &BTreeSet<BString>, failing: Failing) -> io::Result<()> {
    let (mut pathspecs, mut names) = (Vec::new(), Vec::new());
    for path in paths {
        if failing == Failing::LeavesOut {
            pathspecs.extend_from_slice(b":(top,literal)");
        }
        pathspecs.extend(path.iter().copied().chain([0]));
        names.extend(name(path.as_bstr()).into_iter().chain([0]));
    }
    fs::write(dir.join("paths"), pathspecs)?;
    fs::write(dir.join("names"), names)
}

/// Returns the name of a path's entry in the index.
fn name(path: &BStr) -> Vec<u8> {
    [b":0:", path.as_bytes()].concat()
}

fn invocation(part: &Part<'_>, scratch: &Scratch, inside: &Inside, dir: &Path, failing: Failing) -> Invocation {
    let goes_on = if failing == Failing::LeavesOut { "true" } else { "false" };
    let words = ["sh", "-c", SCRIPT, "sh", goes_on].map(str::to_owned);
    let take: &[&str] = match failing {
        Failing::Refuses => &["update-index", "--add", "--remove", "--replace", "-z", "--stdin"],
        Failing::LeavesOut => {
            &["add", "-f", "--sparse", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"]
        }
    };
    let take = scratch.attributes().into_iter().chain(take.iter().map(|word| (*word).to_owned()));
    let limits = inside.limits;
    let file_size = [limits.file_size, Some(MOST)].into_iter().flatten().min();
    let mut readable = vec![part.workspace.tree()];
    if part.is_submodule() {
        // The attributes for the capture are in a tree of the repository.
        readable.push(part.store.objects_dir());
    }
    Invocation {
        argv: words.into_iter().chain(take).collect(),
        tree: dir.to_owned(),
        cwd: dir.to_owned(),
        attempt_dir: part.workspace.dir.clone(),
        env: environment(part, inside, dir),
        stdin: Stdin::Null,
        timeout: match failing {
            Failing::Refuses => part.host.time_left(),
            // Leave time for the rest.
            Failing::LeavesOut => part.host.time_left() / 2,
        },
        supervisor: inside.supervisor.as_ref().map(Attendant::start),
        confinement: Some(Confined {
            by: inside.by.clone(),
            writable: Vec::new(),
            readable,
            linked: part.workspace.linked().to_vec(),
            scratch: None,
            frozen: true,
        }),
        limits: Limits { file_size, ..limits },
        folders: vec![dir.to_owned()],
        lease: None,
    }
}

/// Returns the environment of the attempt's commands, with variables that point git to that folder.
fn environment(part: &Part<'_>, inside: &Inside, dir: &Path) -> std::collections::BTreeMap<String, OsString> {
    let mut env = inside.env.clone();
    env.retain(|name, _| !name.starts_with("GIT_"));
    let own: [(&str, PathBuf); 8] = [
        ("GIT_DIR", dir.to_owned()),
        ("GIT_WORK_TREE", part.dir()),
        ("GIT_INDEX_FILE", dir.join("index")),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("TMPDIR", dir.join("tmp")),
        (survivors::VARIABLE, part.workspace.task()),
    ];
    let home = inside.by.has_own_home().then(|| ("HOME", dir.join("home")));
    let own = own.into_iter().chain(home).map(|(name, value)| (name.to_owned(), value.into_os_string()));
    env.extend(own);
    env.insert("LC_ALL".to_owned(), "C".into());
    if let Some(path) = &part.host.path {
        env.insert("PATH".to_owned(), path.clone());
    }
    env
}

/// Runs it until it ends or is cancelled.
fn confined(
    invocation: &Invocation,
    transcript: &mut TranscriptWriter,
    stop: &Cancellation,
) -> Result<Ended, agent::Error> {
    let (cancel, cancelled) = watch::channel(false);
    let work = async {
        let stopped = async {
            while !stop.is_requested() {
                tokio::time::sleep(LOOK).await;
            }
            tokio::time::sleep(GRACE).await;
            let _ = cancel.send(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = agent::run(invocation, transcript, cancelled) => ended,
            () = stopped => unreachable!("it waits for ever"),
        }
    };
    // A separate thread, because the caller may be a thread of an async runtime.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.map_err(agent::Error::Socket)?.block_on(work)
            })
            .map_err(agent::Error::Socket)?;
        thread.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    })
}

/// Interprets its exit.
fn judge(ended: &Ended, output: &[u8], failing: Failing) -> Result<(), Error> {
    let refused =
        |why: String| Err(Error::refused(format!("a filter of the repository, run in the item's sandbox, {why}")));
    match (ended.cause, ended.exit) {
        (Cause::Cancelled, _) => Err(Error::git(program::Error::Stopped)),
        (Cause::TimedOut, _) if failing == Failing::LeavesOut => refused("took too long".to_owned()),
        (Cause::TimedOut, _) => Err(Error::Late),
        (Cause::Exceeded(exceeded), _) => refused(exceeded.to_string()),
        (Cause::Left, _) => refused("left processes that could not be ended".to_owned()),
        (Cause::Exited, Some(Exit { code: Some(0), .. })) => Ok(()),
        (Cause::Exited, _) if failing == Failing::LeavesOut => Ok(()),
        // git's own message comes last.
        (Cause::Exited, _) => refused(format!("failed: {}", last_lines(output))),
    }
}

/// Reads the printed result of each path and writes it as an object of the scratch.
fn read(
    part: &Part<'_>,
    scratch: &Scratch,
    inside: &Inside,
    paths: &BTreeSet<BString>,
    failing: Failing,
) -> Result<Converted, Error> {
    let workspace = part.workspace;
    let folder = workspace.folder().folder(FOLDER).map_err(|_| spoilt_output())?;
    let mut printed = io::BufReader::new(folder.file("blobs").map_err(|_| spoilt_output())?);
    let objects = gix::odb::loose::Store::at(scratch.objects(), part.tree.0.kind());
    let most_saved = (failing == Failing::LeavesOut).then_some(part.host.settings.max_salvage);
    let mut left = [inside.limits.disk, most_saved].into_iter().flatten().fold(MOST, u64::min);
    let mut converted = Converted::new();
    for path in paths {
        let blob = next(&mut printed, path.as_bstr(), part.host.settings.max_product.min(left))
            .map_err(|_| spoilt_output())?;
        let blob = match blob {
            Printed::Blob(bytes) => Some(bytes),
            Printed::Large(size) => {
                return Err(Error::refused(format!(
                    "filters made {size} bytes of {}, and no more than {} are taken",
                    display_path(path),
                    part.host.settings.max_product.min(left)
                )));
            }
            Printed::Missing if failing == Failing::Refuses => return Err(spoilt_output()),
            Printed::Missing => None,
        };
        let Some(bytes) = blob else {
            converted.insert(path.clone(), None);
            continue;
        };
        left = left.saturating_sub(bytes.len() as u64);
        let outcome = large::keep(part, &folder, path.as_bstr(), &bytes, &mut left)?;
        match outcome {
            Kept::Secret(secret) if failing == Failing::Refuses => return Err(Error::Secret(secret)),
            Kept::Secret(_) => {
                converted.insert(path.clone(), None);
                continue;
            }
            Kept::Nothing | Kept::Held => {}
        }
        let written = objects.write_buf(Kind::Blob, &bytes).map(Oid);
        let written = written.map_err(|e| Error::Io(scratch.objects(), io::Error::other(e)))?;
        converted.insert(path.clone(), Some(written));
    }
    Ok(converted)
}

fn spoilt_output() -> Error {
    Error::refused("a filter of the repository spoilt what git printed in the item's sandbox")
}

/// The printed result for a path.
enum Printed {
    Blob(Vec<u8>),
    /// A blob above the limit, with its size.
    Large(u64),
    Missing,
}

/// Parses the next object of `git cat-file --batch`: a line with id, kind and size, the bytes, and
/// a newline.
fn next(printed: &mut impl BufRead, path: &BStr, most: u64) -> io::Result<Printed> {
    let missing = [&name(path)[..], b" missing\n"].concat();
    let mut line = Vec::new();
    // A path may contain newlines.
    while printed.take(LONGEST).read_until(b'\n', &mut line)? > 0 && line != missing && missing.starts_with(&line) {}
    if line == missing {
        return Ok(Printed::Missing);
    }
    let line = line.to_str().map_err(io::Error::other)?;
    let size = match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
        [_, "blob", size] => size.parse::<u64>().map_err(io::Error::other)?,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    if size > most {
        return Ok(Printed::Large(size));
    }
    let mut bytes = Vec::new();
    let mut end = [0];
    let count = printed.take(size).read_to_end(&mut bytes)?;
    printed.read_exact(&mut end)?;
    if count as u64 != size || end != *b"\n" {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Printed::Blob(bytes))
}
