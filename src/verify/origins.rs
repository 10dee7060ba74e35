//! How far what a run took goes back: the runs and threads that it came from, as far as they are here.
//!
//! That something was taken from there is shown by what the run itself holds. Whoever has the others too can hold them against it.

use std::collections::{BTreeMap, VecDeque};

use super::codes::Code;
use super::copies::{Copies, Is};
use super::findings::Findings;
use super::signature::of_others;
use super::taken::{Kind, Origin, Taken};
use super::witness::AtHand;
use super::{Error, Options};
use crate::git::store::Store;

/// More of them are not looked at.
const MOST: usize = 1000;

/// A run or a thread that something was taken from.
#[derive(Clone, Debug)]
pub struct TakenFrom {
    /// Whether it is a run; else it is a thread.
    pub run: bool,
    /// Whether it is a run that was not sealed when it was continued.
    pub open: bool,
    /// Its name.
    pub name: String,
    /// The root of the run, or the name of the checkpoint.
    pub is: String,
    /// How many steps it is from the run that was asked for.
    pub depth: u32,
    /// Whether it is here, and holds.
    pub here: Here,
    /// Whether a product was sealed at submit, as opposed to the item being reused whole.
    pub imported: bool,
    /// What confined the attempts of a run, counted; `None` if the run is not here to its seal.
    pub sandbox: Option<BTreeMap<String, u64>>,
}

/// What there is of it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Here {
    /// All of it, and it holds.
    Intact,
    /// Something, and not all of it can be shown to hold.
    Unsure(String),
    /// Something that is not what was taken from, and says it is.
    Contradicts(String),
    /// Nothing.
    Not,
}

impl Here {
    /// Says it in words; what stands for it where it is not here depends on whether it is a run, and an open one.
    pub fn in_words(&self, run: bool, open: bool) -> String {
        match self {
            Self::Intact => "here, intact".to_owned(),
            Self::Unsure(why) => format!("here, but {why}"),
            Self::Contradicts(why) => format!("here, and not the same: {why}"),
            Self::Not if open => "not here; its signed entries stand for it".to_owned(),
            Self::Not if run => "not here; its seal and a proof stand for it".to_owned(),
            Self::Not => "not here; its signed entry stands for it".to_owned(),
        }
    }
}

/// Follows what was taken, and says where it ends; what contradicts it is a finding.
pub(super) fn follow(
    store: &Store,
    at_hand: &AtHand<'_>,
    options: &Options,
    (taken, copies): (&[Taken], &mut Copies),
) -> Result<(Vec<TakenFrom>, Findings), Error> {
    let options = Options { base: None, ..of_others(options) };
    let mut left: VecDeque<(Origin, bool, u32)> = VecDeque::new();
    left.extend(origins(taken).into_iter().map(|(origin, imported)| (origin, imported, 1)));
    let (mut seen, mut followed, mut findings) =
        (BTreeMap::<Origin, usize>::new(), Vec::<TakenFrom>::new(), Findings::default());
    while let Some((origin, imported, depth)) = left.pop_front() {
        if let Some(at) = seen.get(&origin) {
            followed[*at].imported |= imported;
            continue;
        }
        seen.insert(origin.clone(), followed.len());
        if followed.len() == MOST {
            findings.missing(format!("what it took goes back to more than {MOST} runs and threads"));
            break;
        }
        let (run, name, is, (here, sandbox)) = match &origin {
            Origin::Run { run, first, root, open } => {
                let wanted = Is { run, first: *first, root: *root, open: *open };
                let found = copies.run(store, at_hand, &options, wanted)?;
                left.extend(found.taken.into_iter().map(|(origin, imported)| (origin, imported, depth + 1)));
                (true, run.to_string(), root.to_string(), (found.here, found.sandbox))
            }
            Origin::Thread { thread, checkpoint, entry } => {
                let here = copies.thread(store, at_hand, &options, (thread, entry))?;
                (false, thread.to_string(), checkpoint.to_string(), (here, None))
            }
        };
        if let Here::Contradicts(why) = &here {
            let what = if run { "run" } else { "thread" };
            findings.report(
                Code::OtherSource,
                format!("{what} {name}, which it took from, is here and is not the same: {why}"),
            );
        }
        let open = matches!(origin, Origin::Run { open: Some(_), .. });
        followed.push(TakenFrom { run, open, name, is, depth, here, imported, sandbox });
    }
    Ok((followed, findings))
}

/// Returns what something was taken from, as far as the evidence of it holds, each with whether a product of it was imported.
pub(super) fn origins(taken: &[Taken]) -> Vec<(Origin, bool)> {
    let one = |taken: &Taken| Some((taken.found.as_ref().ok()?.from.clone(), taken.kind == Kind::Product));
    taken.iter().filter_map(one).collect()
}
