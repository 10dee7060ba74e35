//! Finds the pieces of a run by name: `<run>:plan.json`, `<run>/<item>:patch`, `:outputs/<path>`,
//! `:documents/<name>`, `:manifest`, `:transcript` of the latest attempt, and `:transcript@N`.
//! Bytes come only from verified runs.
use crate::git::store::Store;
use crate::git::{private_files, refs};
use crate::ledger::chain::Link;
use crate::model::ansi;
use crate::model::any_error::AnyError;
use crate::model::confinement::{NONE, Refusal, find_refusal};
use crate::model::digest::{Digest, Oid};
use crate::model::entry::{Event, Product, Transcript};
use crate::model::format;
use crate::model::item_index::ItemIndex;
use crate::model::manifest::Manifest;
use crate::model::name::{ItemId, RunId};
use crate::model::place::Place;
use crate::model::plan::ProductKey;

use super::sharing::Sharing;
use super::target::{self, Target};
use super::{Blob, VerifiedRun, View};

/// Limits of a shown transcript tail: the lines, the characters of each, and the bytes that are
/// read.
const LINES: usize = 10;
const WIDEST: usize = 300;
const LARGEST: u64 = 16 << 20;

/// The name of a piece, as people write it.
pub struct PieceName<'t> {
    /// The run.
    pub target: Target,
    /// The whole name.
    text: &'t str,
    part: Part<'t>,
}

/// The part of the name after the run.
enum Part<'t> {
    /// The path of a file that belongs to the run as a whole.
    Path(&'t str),
    /// An item with the name of its piece.
    Item(&'t str),
    Whole,
}

impl<'t> PieceName<'t> {
    /// Finds the run at the start of a name.
    pub fn find(store: &Store, text: &'t str) -> Result<Self, target::Error> {
        if let Some((run, path)) = text.rsplit_once(':')
            && !run.contains('/')
        {
            return Ok(Self { target: Target::find(store, run)?, text, part: Part::Path(path) });
        }
        let (target, rest) = Target::with_rest(store, text)?;
        Ok(Self { target, text, part: rest.map_or(Part::Whole, Part::Item) })
    }

    /// Finds the piece in the verified run. Returns `None` for an empty transcript.
    pub fn find_blob(&self, store: &Store, run: &VerifiedRun) -> Result<Option<Blob>, AnyError> {
        let nothing = || Error::NoSuchThing { run: run.run.clone(), name: self.text.to_owned() };
        let text = match self.part {
            Part::Path(path) => return Ok(Some(run.file(path).ok_or_else(nothing)?)),
            Part::Item(text) => text,
            Part::Whole => return Err(Error::NotSaid.into()),
        };
        let (at, selected) = target::item_and_rest(run, text)?;
        let item = &run.state.graph.item(at).id;
        let blob = match selected.ok_or(Error::NotSaid)? {
            "transcript" => return transcript(store, run, item, None),
            "check" => return check_output(store, run, item, false),
            "check-before" => return check_output(store, run, item, true),
            "manifest" => run.manifest(item),
            product if let Some(attempt) = product.strip_prefix("transcript@") => {
                let attempt = attempt.parse().map_err(|_| nothing())?;
                return transcript(store, run, item, Some(attempt));
            }
            product => match ProductKey::from_name(product) {
                Ok(key) => run.state.items[at].products.get(&key).map(|recorded| run.blob(recorded)),
                Err(_) => None,
            },
        };
        Ok(Some(blob.ok_or_else(nothing)?))
    }
}

/// Returns the output of a check with held-out files, which is kept in this clone alone, or `None`
/// if there is none here.
pub fn withheld_output(store: &Store, view: &View, item: &ItemId, before: bool) -> Option<Vec<u8>> {
    let end = view.links.iter().rev().find_map(|link| link.entry.event.end_of(item))?;
    let output = end.check(before).filter(|check| check.held_out.is_some())?.output;
    let name = format::withheld_check(item, end.attempt, before);
    let path = private_files::path(store, &private_files::checks_of(&view.run), &name);
    let bytes = private_files::read(&path, output.size).ok()?;
    (Digest::compute(&bytes) == output.sha256).then_some(bytes)
}

/// Returns the output of the check of a done item, after or before the work. Returns `None` if it
/// is empty.
fn check_output(store: &Store, run: &VerifiedRun, item: &ItemId, before: bool) -> Result<Option<Blob>, AnyError> {
    let end = run.links.iter().rev().find_map(|link| link.entry.event.end_of(item));
    let end = end.ok_or_else(|| Error::NotEnded(item.clone()))?;
    let check = end.check(before).ok_or_else(|| Error::NoCheck(item.clone()))?;
    blob_beside(store, run, item, check.output, &format::check_path(item, end.attempt, before))
}

/// Returns the transcript of an attempt, by default the latest. Returns `None` if it is empty.
fn transcript(store: &Store, run: &VerifiedRun, item: &ItemId, of: Option<u32>) -> Result<Option<Blob>, AnyError> {
    let (attempt, transcript) = recorded(&run.links, item, of).ok_or_else(|| match of {
        Some(attempt) => Error::NoAttempt { item: item.clone(), attempt },
        None => Error::NotEnded(item.clone()),
    })?;
    blob_beside(store, run, item, transcript, &format::transcript_path(item, attempt))
}

/// Returns a file of the transcripts ref, which has the recorded digest, or `None` if it is empty.
fn blob_beside(
    store: &Store,
    run: &VerifiedRun,
    item: &ItemId,
    transcript: Transcript,
    path: &str,
) -> Result<Option<Blob>, AnyError> {
    if transcript.size == 0 {
        return Ok(None);
    }
    let oid = find_beside(store, &run.run, &run.head.name, path, transcript.sha256)?;
    // The transcripts ref is not part of a chain, so the digest of the entry decides.
    let Transcript { sha256, size } = transcript;
    Ok(Some(run.blob(&Product {
        sha256,
        oid: oid.ok_or_else(|| {
            let remote = Place::fetched(&run.head.name).map(|(remote, _)| remote.to_owned());
            let remote = remote.or_else(|| Sharing::read(store, &run.run).map(|sharing| sharing.remote));
            Error::NoTranscript { item: item.clone(), remote }
        })?,
        size,
    })))
}

/// Returns the blob at a path of the transcripts of a run, which was read from a ref of this name.
///
/// Other drivers of a run of ours keep their transcripts in clones of their own. So fetched ones
/// count as well, if they are what was recorded: another run of the same id may have been fetched.
fn find_beside(store: &Store, run: &RunId, name: &str, path: &str, recorded: Digest) -> Result<Option<Oid>, AnyError> {
    let place = Place::of_transcripts(run);
    let at = |tree: Option<Oid>| tree.map_or(Ok(None), |tree| store.blob_at(tree, path));
    if let Some((remote, _)) = Place::fetched(name) {
        return Ok(at(refs::read(store, &place.below(&format::fetched_refs(remote)))?)?);
    }
    let own = at(refs::read(store, &place.below(format::REFS))?)?;
    if own.is_some() {
        return Ok(own);
    }
    for (_, tree) in refs::fetched_at(store, &place)? {
        if let Some(blob) = at(Some(tree))?.filter(|blob| {
            let read = store.contains(*blob).then(|| store.copy_blob(*blob, &mut std::io::sink()));
            read.is_some_and(|read| read.is_ok_and(|(digest, _)| digest == recorded))
        }) {
            return Ok(Some(blob));
        }
    }
    Ok(None)
}

/// Returns the number of an attempt and its transcript as recorded, by default the latest.
fn recorded(links: &[Link], item: &ItemId, of: Option<u32>) -> Option<(u32, Transcript)> {
    let mut all = links.iter().rev().filter_map(|link| match &link.entry.event {
        Event::ItemReconciled(e) if e.item == *item => Some((e.attempt, e.transcript?)),
        Event::ItemRetried(e) | Event::ItemRequeued(e) if e.item == *item => Some((e.attempt, e.transcript?)),
        _ => None,
    });
    all.find(|(attempt, _)| of.is_none_or(|of| of == *attempt))
}

/// The end of an attempt's transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Tail {
    pub attempt: u32,
    pub lines: Vec<String>,
    /// Whether there are more lines before these.
    pub is_cut: bool,
    /// The refusal that a line names.
    pub refused: Option<Refusal>,
}

/// Returns the last lines of the latest transcript of an item, or `None` if it is missing, empty or
/// very large.
pub fn tail(store: &Store, run: &View, at: ItemIndex) -> Result<Option<Tail>, AnyError> {
    let item = &run.state.graph.item(at).id;
    let Some((attempt, transcript)) = recorded(&run.links, item, None) else { return Ok(None) };
    let Some(text) = text_beside(store, run, transcript, &format::transcript_path(item, attempt))? else {
        return Ok(None);
    };
    let (lines, is_cut) = last_lines(&text, LINES);
    let refused = find_refusal(&text).filter(|_| !lines.is_empty());
    let refused = if refused.is_some() && is_confined(store, run, item)? { refused } else { None };
    Ok((!lines.is_empty()).then_some(Tail { attempt, lines, is_cut, refused }))
}

/// Returns true if an attempt of an item recorded a transcript that is not empty.
pub fn has_transcript(run: &View, item: &ItemId) -> bool {
    recorded(&run.links, item, None).is_some_and(|(_, transcript)| transcript.size > 0)
}

/// Returns the latest transcript of an item as text without control sequences, or `None` if it is
/// missing or very large.
pub fn transcript_text(store: &Store, run: &View, item: &ItemId) -> Result<Option<String>, AnyError> {
    let Some((attempt, transcript)) = recorded(&run.links, item, None) else { return Ok(None) };
    text_beside(store, run, transcript, &format::transcript_path(item, attempt))
}

/// Returns the output of the check after the work of an item as text without control sequences, or
/// `None` if there is none here or it is very large.
pub fn check_text(store: &Store, run: &View, item: &ItemId) -> Result<Option<String>, AnyError> {
    if let Some(bytes) = withheld_output(store, run, item, false) {
        return Ok(Some(ansi::without(&String::from_utf8_lossy(&bytes))));
    }
    let end = run.links.iter().rev().find_map(|link| link.entry.event.end_of(item));
    let Some((end, check)) = end.and_then(|end| Some((end, end.check(false)?))) else { return Ok(None) };
    text_beside(store, run, check.output, &format::check_path(item, end.attempt, false))
}

/// Returns a file of the transcripts ref that has the recorded digest as text without control
/// sequences, or `None` if it is missing, altered or very large.
fn text_beside(store: &Store, run: &View, recorded: Transcript, path: &str) -> Result<Option<String>, AnyError> {
    if recorded.size > LARGEST {
        return Ok(None);
    }
    let found = find_beside(store, &run.run, &run.head.name, path, recorded.sha256)?;
    let Some(oid) = found else { return Ok(None) };
    let bytes = store.read_blob_of(oid, LARGEST)?;
    Ok((Digest::compute(&bytes) == recorded.sha256).then(|| ansi::without(&String::from_utf8_lossy(&bytes))))
}

/// Returns the last lines of a text that are not empty, and whether there are more before these.
pub fn last_lines(text: &str, most: usize) -> (Vec<String>, bool) {
    // A progress bar overwrites its line, so only the last part is shown.
    let visible = text.lines().map(|line| line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default());
    let lines: Vec<&str> = visible.filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(most)..];
    (last.iter().map(|line| line.chars().take(WIDEST).collect()).collect(), lines.len() > last.len())
}

/// Returns true if the item's latest attempt ran in a sandbox.
fn is_confined(store: &Store, run: &View, item: &ItemId) -> Result<bool, AnyError> {
    let product = run.state.graph.position(item).and_then(|at| run.state.items[at].manifest);
    let Some(product) = product.filter(|product| store.contains(product.oid)) else { return Ok(false) };
    let manifest = Manifest::parse(&store.read_blob(product.oid)?);
    Ok(manifest.is_ok_and(|manifest| manifest.claims.sandbox != NONE))
}

errors! {
    /// Failures to find a piece.
    #[derive(Debug, thiserror::Error)] pub enum Error;
    NotSaid "usage" 2: "say what to print: RUN/ITEM:patch, :outputs/PATH, :manifest or :transcript";
    NoSuchThing { run: RunId, name: String } "no-such-thing": "there is no {name:?}";
    NotEnded(ItemId) "no-transcript": "no attempt of {:?} has ended yet" [.0.as_str()];
    NoAttempt { item: ItemId, attempt: u32 } "no-transcript":
        "no attempt {attempt} of {:?} has ended with a transcript" [item.as_str()];
    NoCheck(ItemId) "no-transcript": "the item {:?} has no recorded check" [.0.as_str()];
    NoTranscript { item: ItemId, remote: Option<String> } "no-transcript":
        "the transcript of {:?} is not here; only its hash is recorded" [item.as_str()];
}
