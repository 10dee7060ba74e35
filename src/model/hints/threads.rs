//! Hints about threads that are handed over.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    /// A thread is another key's.
    fork(thread) => "git handoff fork {thread} --as NAME";
    /// A thread's name is taken.
    other_name() => "choose another name: --as NAME";
    /// What was offered is here alone.
    push_thread(remote, thread) => "git handoff push {remote} {thread}";
    /// What was offered is at its author's alone.
    ask_to_push() => "whoever offers it has to hand it over first: git handoff push REMOTE THREAD";
    /// An offer was for somebody else.
    me(recipient) => "if that is you: --me {recipient}";
    /// An offer does not say where its thread is.
    from() => "say where it is: --from PLACE";
    /// A packet is not clean.
    accept(classification) => "to go on all the same, which is recorded: --accept {classification}";
    /// As [`accept`], of a packet that is stale.
    confirm(classification) => "confirm the state first, as the first recovery step says; to go on all the same, which is recorded: --accept {classification}";
    /// The sender's key is not known.
    know_sender() => "add the sender's `git handoff key` line to the file of handoff.signers, or --accept-unknown-signer";
    /// A key further back is not known.
    accept_lineage() => "ask whose it is; to adopt it all the same, which is recorded: --accept-unknown-signer";
    /// A writer's key is not among the signers.
    know_writer() => "add the key to the file of handoff.signers if it is good; to insist this once: --accept-untrusted";
    /// A checkpoint was adopted, and its files are not all here.
    checkout(thread) => "git handoff resume {thread} --checkout   # does the rest";
    /// A thread's state is larger than an answer may be.
    resume(thread) => "git handoff resume {thread}";
    /// A packet lacks some of its parts.
    every_part() => "give each of them; a list with nothing in it is 'none'";
    /// A note lacks fields of a packet.
    complete_note() => "add what is missing to the note, such as '## Risks' or 'risks:'; a list with nothing in it is 'none'";
}
