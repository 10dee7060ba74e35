//! Hints about threads.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A thread belongs to another key.
    fork(thread) => "git handoff fork {thread} --as NAME";
    /// A thread's name is in use.
    other_name() => "choose another name: --as NAME";
    /// An offered checkpoint is only in this repository.
    push_thread(remote, thread) => "git handoff push {remote} {thread}";
    /// An offered checkpoint is only in its author's repository.
    ask_to_push() => "ask the sender for: git handoff push REMOTE THREAD";
    /// An offer is for another agent.
    me(recipient) => "if that is you: --me {recipient}";
    /// An offer does not name a source.
    from() => "say where it is: --from PLACE";
    /// A packet is not clean.
    accept(classification) => "to go on all the same, which is recorded: --accept {classification}";
    /// Like [`accept`], for a stale packet.
    confirm(classification) => "confirm the state first, as the first recovery step says; to go on all the same, which is recorded: --accept {classification}";
    /// The sender's key is unknown.
    know_sender() => "add the sender's `git handoff key` line to the file of handoff.signers, or --accept-unknown-signer";
    /// A key in the lineage is unknown.
    accept_lineage() => "ask whose it is; to adopt it all the same, which is recorded: --accept-unknown-signer";
    /// A writer's key is not among the signers.
    know_writer() => "add the key to the file of handoff.signers if it is good; to insist this once: --accept-untrusted";
    /// A checkpoint was adopted, but some files are missing.
    checkout(thread) => "git handoff resume {thread} --checkout   # does the rest";
    /// A thread's state is too large for an answer.
    resume(thread) => "git handoff resume {thread}";
    /// A packet is incomplete.
    every_part() => "give each of them; a list with nothing in it is 'none'";
    /// A note lacks fields.
    complete_note() => "add what is missing to the note, such as '## Risks' or 'risks:'; a list with nothing in it is 'none'";
}
