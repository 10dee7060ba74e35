//! What people call the pieces of a run: `<run>:plan.json`, `<run>/<item>:patch`, `:outputs/<path>`, `:documents/<name>`,
//! `:manifest`, `:transcript`. Their bytes come out of a run that passed the gate.

use crate::git::refs;
use crate::git::store::{self, Store};
use crate::model::entry::{Event, Transcript};
use crate::model::format;
use crate::model::name::{ItemId, RunId};
use crate::model::place::Place;
use crate::model::plan::ProductKey;

use super::target::{self, Target};
use super::{Blob, Vetted};

/// A piece of a run, as somebody calls it.
pub struct PieceName<'t> {
    /// The run.
    pub target: Target,
    /// All that was said.
    text: &'t str,
    part: Part<'t>,
}

/// What is said of a run.
enum Part<'t> {
    /// A path of its own tree.
    Path(&'t str),
    /// An item, and what of it.
    Item(&'t str),
    /// Nothing.
    Whole,
}

impl<'t> PieceName<'t> {
    /// Finds the run that a name begins with.
    pub fn find(store: &Store, text: &'t str) -> Result<Self, target::Error> {
        if let Some((run, path)) = text.rsplit_once(':')
            && !run.contains('/')
        {
            return Ok(Self { target: Target::find(store, run)?, text, part: Part::Path(path) });
        }
        let (target, rest) = Target::with_rest(store, text)?;
        Ok(Self { target, text, part: rest.map_or(Part::Whole, Part::Item) })
    }

    /// Finds the piece in the run, once that has passed the gate; none of a transcript that is known to be empty.
    pub fn of(&self, store: &Store, run: &Vetted) -> Result<Option<Blob>, Error> {
        let nothing = || Error::NoSuchThing { run: run.run.clone(), named: self.text.to_owned() };
        let said = match self.part {
            Part::Path(path) => return run.file(store, path)?.ok_or_else(nothing).map(Some),
            Part::Item(said) => said,
            Part::Whole => return Err(Error::NotSaid),
        };
        let (at, selected) = target::item_and_rest(run, said)?;
        let item = &run.state.graph.item(at).id;
        let layout = run.state.layout();
        let blob = match selected.ok_or(Error::NotSaid)? {
            "transcript" => return transcript(store, run, item),
            "manifest" => run.file(store, &layout.manifest(item))?,
            product => match ProductKey::named(product) {
                // A document in the tree is the highest revision; this item's own stands in its entry.
                Ok(key @ ProductKey::Document(_)) => {
                    let product = run.state.items[at].products.get(&key);
                    product.map(|product| run.product(product.oid).that_is(product.sha256))
                }
                Ok(key) => run.file(store, &layout.product(item, &key))?,
                Err(_) => None,
            },
        };
        blob.ok_or_else(nothing).map(Some)
    }
}

/// Returns the blob of the latest transcript of an item; none where it is known to be empty.
fn transcript(store: &Store, run: &Vetted, item: &ItemId) -> Result<Option<Blob>, Error> {
    let latest: Option<(u32, Transcript)> = run.links.iter().rev().find_map(|link| match &link.entry.event {
        Event::ItemReconciled(e) if e.item == *item => Some((e.attempt, e.transcript?)),
        Event::ItemRetried(e) | Event::ItemRequeued(e) if e.item == *item => Some((e.attempt, e.transcript?)),
        _ => None,
    });
    let (attempt, transcript) = latest.ok_or_else(|| Error::NotEnded(item.clone()))?;
    if transcript.size == 0 {
        return Ok(None);
    }
    // Beside the run that it is of, ours or fetched.
    let remote = Place::fetched(&run.head.name).map(|(remote, _)| remote);
    let folder = remote.map_or_else(|| format::REFS.to_owned(), format::fetched_refs);
    let tree = refs::read(store, &Place::of_transcripts(&run.run).below(&folder))?;
    let oid = match tree {
        Some(tree) => store.blob_at(tree, &format::transcript_path(item, attempt))?,
        None => None,
    };
    let not_here = || Error::NoTranscript { item: item.clone(), remote: remote.map(str::to_owned) };
    // No chain holds transcripts together, and they may come from elsewhere.
    Ok(Some(run.product(oid.ok_or_else(not_here)?).that_is(transcript.sha256)))
}

/// Why a piece is not found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A run, or an item, is named and nothing of it.
    #[error("say what to print: RUN/ITEM:patch, :outputs/PATH, :manifest or :transcript")]
    NotSaid,
    /// The run has no such piece.
    #[error("there is no {named:?}")]
    NoSuchThing {
        /// The run.
        run: RunId,
        /// What was asked for.
        named: String,
    },
    /// There is no transcript yet.
    #[error("no attempt of {:?} has ended yet", .0.as_str())]
    NotEnded(ItemId),
    /// The transcript is elsewhere, or was removed.
    #[error("the transcript of {:?} is not here; only its hash is recorded", item.as_str())]
    NoTranscript {
        /// The item.
        item: ItemId,
        /// The remote that the run was fetched from.
        remote: Option<String>,
    },
    /// The run, or its item, is not found.
    #[error(transparent)]
    Target(#[from] target::Error),
    /// The run could not be read.
    #[error(transparent)]
    Run(#[from] super::Error),
    /// Objects could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Refs could not be read.
    #[error(transparent)]
    Ref(#[from] refs::Error),
}
