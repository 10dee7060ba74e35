//! Follows imports to their sources, the sources of these, and so on, as far as they are here.
//!
//! The run itself holds the evidence of its imports. Local copies of the sources are compared with
//! that evidence.

use std::collections::{BTreeMap, VecDeque};

use super::codes::Code;
use super::findings::Findings;
use super::imports::{ImportKind, Imported, Origin};
use super::local_copies::{LocalCopies, RunRoot};
use super::signature::options_for_others;
use super::witness::AtHand;
use super::{Error, Options};

const MAX_UPSTREAM: usize = 1000;

/// A run or thread from which a run imported something.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// True for a run, false for a thread.
    pub run: bool,
    /// True for a run that was not sealed when it was continued.
    pub open: bool,
    /// The name.
    pub name: String,
    /// The root of the run, or the name of the checkpoint.
    pub is: String,
    /// The number of steps from the verified run.
    pub depth: u32,
    /// The state of the local copy.
    pub here: CopyState,
    /// True if a product was sealed at submit; false if only whole items were reused.
    pub imported: bool,
    /// The number of attempts for each sandbox, or `None` if no copy reaches the seal.
    pub sandbox: Option<BTreeMap<String, u64>>,
}

/// The state of a local copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// Complete and valid.
    Intact,
    /// Present, but not all of it could be verified.
    Unproven(String),
    /// Present, and contradicts the evidence.
    Contradicts(String),
    /// Not present.
    Absent,
}

impl CopyState {
    /// Returns a larger number for a copy that shows more.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Intact => 3,
            Self::Contradicts(_) => 2,
            Self::Unproven(_) => 1,
            Self::Absent => 0,
        }
    }

    /// Describes the state. For an absent copy, the text depends on the kind of source.
    pub fn in_words(&self, run: bool, open: bool) -> String {
        match self {
            Self::Intact => "here, intact".to_owned(),
            Self::Unproven(why) => format!("here, but {why}"),
            Self::Contradicts(why) => format!("here, but different: {why}"),
            Self::Absent if open => "not here; proven by its signed entries".to_owned(),
            Self::Absent if run => "not here; proven by its seal and a proof".to_owned(),
            Self::Absent => "not here; proven by its signed entry".to_owned(),
        }
    }
}

/// Follows the imports; returns the sources, and findings about contradictions.
pub(super) fn follow(
    copies: &mut LocalCopies,
    at_hand: &AtHand<'_>,
    options: &Options,
    imports: &[Imported],
) -> Result<(Vec<Upstream>, Findings), Error> {
    let options = Options { base: None, ..options_for_others(options) };
    let mut left: VecDeque<(Origin, bool, u32)> = VecDeque::new();
    left.extend(origins(imports).into_iter().map(|(origin, imported)| (origin, imported, 1)));
    let (mut indices, mut followed, mut findings) =
        (BTreeMap::<Origin, usize>::new(), Vec::<Upstream>::new(), Findings::default());
    while let Some((origin, imported, depth)) = left.pop_front() {
        if let Some(at) = indices.get(&origin) {
            followed[*at].imported |= imported;
            continue;
        }
        indices.insert(origin.clone(), followed.len());
        if followed.len() == MAX_UPSTREAM {
            findings.missing(format!("its imports go back to more than {MAX_UPSTREAM} runs and threads"));
            break;
        }
        let (run, name, is, here, sandbox) = match &origin {
            Origin::Run { run, first, root, open } => {
                let expected = RunRoot { run, first: *first, root: *root, open: *open };
                let found = copies.run(at_hand, &options, expected)?;
                left.extend(found.imports.into_iter().map(|(source, import)| (source, import, depth + 1)));
                (true, run.to_string(), root.to_string(), found.here, found.sandbox)
            }
            Origin::Thread { thread, checkpoint, entry } => {
                let here = copies.thread(at_hand, &options, thread, entry)?;
                (false, thread.to_string(), checkpoint.to_string(), here, None)
            }
        };
        if let CopyState::Contradicts(why) = &here {
            let what = if run { "run" } else { "thread" };
            findings.report(
                Code::OtherSource,
                format!("{what} {name}, a source of its imports, is here, but different: {why}"),
            );
        }
        let open = matches!(origin, Origin::Run { open: Some(_), .. });
        followed.push(Upstream { run, open, name, is, depth, here, imported, sandbox });
    }
    Ok((followed, findings))
}

/// Returns the sources of valid imports, each with whether a product was imported.
pub(super) fn origins(imports: &[Imported]) -> Vec<(Origin, bool)> {
    let one = |entry: &Imported| Some((entry.found.as_ref().ok()?.from.clone(), entry.kind == ImportKind::Product));
    imports.iter().filter_map(one).collect()
}
