//! `git handoff thread diff`

use git_handoff::git::program::Git;
use git_handoff::model::digest::Oid;
use git_handoff::thread::steps;

use super::target::ThreadTarget;
use super::{Ending, Failure, Output, Repository};

/// Show how a checkpoint differs from another, or from the one before it
///
/// What is compared is all that they hold: the state, the packet and the working tree.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The thread, at its latest checkpoint or the one that is named
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    old: String,
    /// The other checkpoint, of any thread
    #[arg(value_name = "THREAD[:CHECKPOINT]")]
    new: Option<String>,
    /// Compare although a thread rests on a key that is not to be trusted
    #[arg(long)]
    accept_untrusted: bool,
}

/// Prints a patch from the first to the second; of one alone, from the one before it.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let names = (arguments.old.as_str(), arguments.new.as_deref());
    let call = difference(repository, names, arguments.accept_untrusted, output)?;
    call.stream(&mut |chunk| {
        output.bytes(chunk);
        Ok(())
    })?;
    Ok(Ending::Done)
}

/// Returns the call of git that prints the patch from a checkpoint to another, or to it from the one before it.
pub(crate) fn difference(
    repository: &Repository,
    (old, new): (&str, Option<&str>),
    accept_untrusted: bool,
    output: &mut Output,
) -> Result<Git, Failure> {
    let store = &repository.store;
    let target = ThreadTarget::find(store, old)?;
    let vouched = target.vouched(repository, accept_untrusted, output)?;
    let sound = vouched.sound();
    let named = steps::find(sound, target.checkpoint.as_ref())?;
    let (old, new) = if let Some(other) = new {
        let target = ThreadTarget::find(store, other)?;
        let vouched = target.vouched(repository, accept_untrusted, output)?;
        (Some(named.commit), steps::find(vouched.sound(), target.checkpoint.as_ref())?.commit)
    } else {
        let place = sound.trail.checkpoints.iter().position(|checkpoint| checkpoint.id == named.id);
        let before = place.and_then(|place| sound.trail.checkpoints.get(place.checked_sub(1)?));
        (before.map(|before| before.commit), named.commit)
    };
    let empty = store.empty_tree();
    let tree = |commit: Option<Oid>| commit.map_or_else(|| empty.to_string(), |commit| format!("{commit}^{{tree}}"));
    let options = ["-p", "-r", "--no-ext-diff", "--no-textconv", "--no-color"];
    Ok(store.git().arg("diff-tree").args(options).arg(tree(old)).arg(tree(Some(new))))
}
