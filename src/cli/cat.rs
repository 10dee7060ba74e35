//! `git handoff cat`

use std::io::{self, Write};

use git_handoff::git::{checked, refs, store};
use git_handoff::model::entry::{Event, Transcript};
use git_handoff::model::format;
use git_handoff::model::hints;
use git_handoff::model::name::{FilePath, RunId};
use git_handoff::model::place::Place;
use git_handoff::model::plan::ProductKey;
use git_handoff::repository::Repository;
use git_handoff::run::{Blob, Target, Vetted, target};

use super::{Ending, Failure, Output, gate};

/// Print a product, a manifest or a transcript as it is, byte for byte
///
/// The run is verified first, as far as its integrity and its keys go, and the bytes are hashed again: of others than those that
/// were recorded, nothing is printed.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to print: RUN/ITEM:patch, :outputs/PATH, :documents/NAME, :manifest, :transcript, or RUN:plan.json
    #[arg(value_name = "RUN/ITEM:WHAT")]
    what: String,
    #[command(flatten)]
    terms: gate::Terms,
}

/// Prints the bytes.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let (run, blob) = find(arguments, repository, output)?;
    let Some(blob) = blob else {
        output.note("the transcript is empty");
        return Ok(Ending::Done);
    };
    blob.copy(&repository.store, &mut Stdout { output }).map_err(|error| {
        let hint = match &error {
            checked::Error::Store(store::Error::Missing(_)) => hints::show_elsewhere(&run),
            _ => hints::verify(&run),
        };
        Failure::from(error).hint(hint)
    })?;
    Ok(Ending::Done)
}

/// Hands bytes to the one place that prints.
pub(super) struct Stdout<'a> {
    /// Where they go.
    pub(super) output: &'a mut Output,
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn find(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<(RunId, Option<Blob>), Failure> {
    let what = arguments.what.as_str();
    let store = &repository.store;
    let nothing =
        |view: &Vetted| Failure::refused("no-such-thing", format!("there is no {what:?}")).hint(hints::show(&view.run));
    // A path of the run's own tree: `<run>:plan.json`.
    if let Some((run, path)) = what.rsplit_once(':')
        && !run.contains('/')
    {
        let view = gate::vetted(&Target::find(store, run)?, arguments.terms, repository, output)?;
        let blob = view.file(store, path)?.ok_or_else(|| nothing(&view))?;
        return Ok((view.run.clone(), Some(blob)));
    }
    let (target, rest) = Target::with_rest(store, what)?;
    let view = gate::vetted(&target, arguments.terms, repository, output)?;
    let usage = || Failure::usage("say what to print: RUN/ITEM:patch, :outputs/PATH, :manifest or :transcript".into());
    let (at, selected) = target::item_and_rest(&view, rest.ok_or_else(usage)?)?;
    let selected = selected.ok_or_else(usage)?;
    if selected == "transcript" {
        return Ok((view.run.clone(), transcript(&view, at, repository)?));
    }
    let item = &view.state.graph.item(at).id;
    let layout = view.state.layout();
    let output_path = |path: &str| Some(layout.output(item, &FilePath::parse(path).ok()?));
    // A document in the tree is the highest revision; this item's own stands in its entry.
    if let Some(name) = selected.strip_prefix("documents/") {
        let key = FilePath::parse_document(name).ok().map(ProductKey::Document);
        let product = key.and_then(|key| view.state.items[at].products.get(&key)).ok_or_else(|| nothing(&view))?;
        return Ok((view.run.clone(), Some(view.product(product.oid).that_is(product.sha256))));
    }
    let path = match selected.strip_prefix("outputs/") {
        Some(path) => output_path(path),
        None if selected == "patch" => Some(layout.patch(item)),
        None if selected == "manifest" => Some(layout.manifest(item)),
        None => output_path(selected),
    };
    let blob = path.map(|path| view.file(store, &path)).transpose()?.flatten().ok_or_else(|| nothing(&view))?;
    Ok((view.run.clone(), Some(blob)))
}

/// Returns the blob of the latest transcript of an item; nothing where it is known to be empty.
fn transcript(view: &Vetted, at: usize, repository: &Repository) -> Result<Option<Blob>, Failure> {
    let id = &view.state.graph.item(at).id;
    let latest: Option<(u32, Transcript)> = view.links.iter().rev().find_map(|link| match &link.entry.event {
        Event::ItemReconciled(e) if e.item == *id => Some((e.attempt, e.transcript?)),
        Event::ItemRetried(e) | Event::ItemRequeued(e) if e.item == *id => Some((e.attempt, e.transcript?)),
        _ => None,
    });
    let Some((attempt, transcript)) = latest else {
        return Err(Failure::refused("no-transcript", format!("no attempt of {:?} has ended yet", id.as_str())));
    };
    if transcript.size == 0 {
        return Ok(None);
    }
    // Beside the run that it is of, ours or fetched.
    let remote = Place::fetched(&view.head.name).map(|(remote, _)| remote);
    let folder = remote.map_or_else(|| format::REFS.to_owned(), format::fetched_refs);
    let reference = Place::of_transcripts(&view.run).below(&folder);
    let tree = refs::read(&repository.store, &reference)?;
    let oid = match tree {
        Some(tree) => repository.store.blob_at(tree, &format::transcript_path(id, attempt))?,
        None => None,
    };
    let oid = oid.ok_or_else(|| {
        let text = format!("the transcript of {:?} is not here; only its hash is recorded", id.as_str());
        let failure = Failure::refused("no-transcript", text);
        match remote {
            Some(remote) => failure.hint(hints::fetch_transcripts(remote)),
            None => failure,
        }
    })?;
    // No chain holds transcripts together, and they may come from elsewhere.
    Ok(Some(view.product(oid).that_is(transcript.sha256)))
}
