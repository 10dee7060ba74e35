//! Hints about threads.

use std::fmt;

use super::{Hint, Parts, quoted};

hints! {
    fork(thread) => "git handoff fork {thread} --as NAME";
    other_name() => "choose another name: --as NAME";
    push_thread(remote, thread) => "git handoff push {remote} {thread}";
    ask_to_push() => "ask the sender for: git handoff push REMOTE THREAD";
    me(recipient) => "if that is you: --me {recipient}";
    from() => "say where it is: --from PLACE";
    accept(classification) => "to go on all the same, which is recorded: --accept {classification}";
    confirm(classification) => "confirm the state first, as the first recovery step says; to go on all the same, which is recorded: --accept {classification}";
    know_sender() => "add the sender's `git handoff key` line to the file of handoff.signers, or --accept-unknown-signer";
    accept_lineage() => "ask whose it is; to adopt it all the same, which is recorded: --accept-unknown-signer";
    know_writer() => "add the key to the file of handoff.signers if it is good; to insist this once: --accept-untrusted";
    checkout(thread) => "git handoff resume {thread} --checkout   # does the rest";
    resume(thread) => "git handoff resume {thread}";
    every_part() => "give each of them; a list with nothing in it is 'none'";
    complete_note() => "add what is missing to the note, such as '## Risks'; a list with nothing in it is 'none'";
}
