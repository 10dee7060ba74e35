//! All hints: next steps for a person, most of them commands to paste.
//!
//! Arguments in braces are quoted for a shell ([`quoted`]), because names may come from an
//! untrusted plan. Words in capitals are for the reader to replace. Only this file and its
//! submodules create a [`Hint`].

use std::fmt;

use serde::{Serialize, Serializer};

use super::printable::written_out;
use super::quote::quoted;

/// A next step, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    line: String,
    name: &'static str,
    about: Vec<String>,
}

impl Hint {
    fn new(name: &'static str, about: &[&str], line: String) -> Self {
        Self(Box::new(Parts { line, name, about: about.iter().map(|word| (*word).to_owned()).collect() }))
    }

    /// The name of the function that created it, for clients that map hints to their own actions.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The unquoted arguments of that function.
    pub fn about(&self) -> &[String] {
        &self.0.about
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0.line
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

macro_rules! hints {
    ($($(#[$doc:meta])* $name:ident($($word:ident),*) => $line:literal;)*) => {
        $($(#[$doc])*
        pub fn $name($($word: impl fmt::Display),*) -> Hint {
            let about: &[&dyn fmt::Display] = &[$(&$word),*];
            let about: Vec<String> = about.iter().map(ToString::to_string).collect();
            $(let $word = quoted(&$word.to_string());)*
            Hint(Box::new(Parts { line: format!($line), name: stringify!($name), about }))
        })*
    };
}

// Lists and lookups.
hints! {
    /// The required confinement is unavailable.
    sandbox() => "apt-get install bubblewrap   # or `handoff.sandbox = auto` for what this machine can enforce";
    /// Network restriction needs confinement.
    confine() => "git config handoff.sandbox auto   # or leave the network open: git config handoff.network any";
    /// A `writable` path does not exist.
    make_folder(path) => "mkdir -p {path}   # or, for a file: touch";
    /// A reachable path can be changed by a worker.
    reached() => "git config --show-origin --get-regexp 'handoff.*able'   # name where it really lies, if that is what you mean";
    /// A reachable folder contains a path that is created for each worker.
    laid_over() => "git config --show-origin --get-regexp '^handoff[.].*[.](readable|writable|home)$'   # name folders below it instead";
    /// There is no such run.
    runs() => "git handoff runs";
    /// There is no such thread.
    threads() => "git handoff thread list";
    /// There is no such run or thread.
    runs_and_threads() => "git handoff runs && git handoff thread list";
    /// The run has no such item.
    items(run) => "git handoff status {run}";
    /// The run does not have what was requested.
    show(run) => "git handoff show {run}";
    /// The run exists with another plan.
    show_or_rename(run) => "git handoff show {run}   # or give the plan another id";
    /// Recorded content is missing here.
    show_elsewhere(run) => "git handoff show {run}   # its bytes are elsewhere, or were deleted";
    /// The run has no such document.
    documents(run) => "git handoff doc list {run}";
    /// A document has changed.
    revisions(run, document) => "git handoff doc log {run} {document}";
    /// A document is larger than an answer may be.
    get_document(run, document) => "git handoff doc get {run} {document}";
    /// The thread has no such checkpoint.
    checkpoints(thread) => "git handoff thread log {thread}";
    /// There is no such anchor.
    anchors() => "git handoff anchor list";
    /// There is no such anchor or run.
    anchors_and_runs() => "git handoff anchor list && git handoff runs";
    /// There is no such commit.
    commits() => "git log --oneline --all";
    /// There is no such remote.
    remotes() => "git remote --verbose";
    /// Refs contradict each other.
    refs() => "git for-each-ref refs/handoff   # what git reads there; what was meant, only you can say";
    /// Shows every file that sets a key.
    setting(key) => "git config --show-origin --get-all {key}";
    /// The inputs and outputs folders are the same.
    folders() => "git config --show-origin --get-regexp '^handoff[.]workspace[.](inputs|outputs)$'";
    /// There is no such pipeline.
    pipelines() => "git handoff pipeline list   # to register another: git handoff pipeline add FILE";
    /// Red items prevent an operation.
    allow_red(item) => "git handoff show {item}   # to apply it all the same: --allow-red";
    /// A red item is done.
    red_again(item) => "git handoff show {item}   # for another try: submit the plan with another id; `onVerifyFail = fail` tries again by itself";
    /// The bytes of a product, a manifest or a transcript.
    cat(what) => "git handoff cat {what}";
    /// Applies a change to a submodule.
    apply_submodule(what, path) => "git handoff cat {what} | git -C {path} apply --index";
    /// The bytes of a file of a commit, by stock git.
    git_show(file) => "git show {file}";
}

// Verification.
hints! {
    /// A run may not verify.
    verify(run) => "git handoff verify {run}";
    /// A run is signed by untrusted keys.
    verify_or_accept(run) => "git handoff verify {run}   # to take it all the same: --accept-untrusted";
    /// A thread may not verify.
    verify_thread(thread) => "git handoff thread verify {thread}";
    /// Data of some run was altered.
    verify_all() => "git handoff verify --all";
    /// A log diverged from the remote's.
    verify_logs() => "git handoff verify --all   # one of the two logs says of a run what the other does not";
    /// Names of signers require an allowed-signers file.
    verify_by_signer() => "git handoff verify --signers FILE --signer PRINCIPAL RUN";
    /// Like [`verify_by_signer`], for a thread.
    verify_thread_by_signer() => "git handoff thread verify --signers FILE --signer PRINCIPAL THREAD";
    /// An anchor has a different record of a run.
    check_anchors(run) => "git handoff anchor check {run}";
    /// A file is not a proof.
    prove() => "git handoff prove RUN/ITEM:patch";
    /// A file is not an audit bundle.
    export_bundle() => "git handoff export RUN --format bundle-json";
    /// The tool's data in the repository is damaged.
    doctor() => "git handoff doctor";
    /// A problem can be repaired automatically.
    mend() => "git handoff doctor --fix";
    /// A lock file remains.
    mend_lock() => "git handoff doctor --fix   # or, if git is at work here, the same command again";
}

// Driving runs.
hints! {
    /// A run is unfinished.
    run(run) => "git handoff run {run}";
    /// A proof needs a sealed run.
    run_or_close(run) => "git handoff run {run}   # or seal it as it is: git handoff close {run}";
    /// A settled run has unfinished items.
    close(run) => "git handoff close {run}";
    /// A run is not settled.
    run_to_close(run) => "git handoff run --close {run}";
    /// An open-ended run waits for more items.
    extend_or_close(run) => "git handoff extend {run} PLAN   # or seal it as it is: git handoff close {run}";
    /// Some items of a run are not done.
    status_blocked(run) => "git handoff status --blocked {run}";
    /// There are unsettled runs.
    run_all() => "git handoff run";
    /// There are no runs.
    first_plan() => "git handoff submit PLAN --run";
    /// An agent requested a forbidden executor.
    allow_executor(name) => "git config --add handoff.mcp.executors {name}";
    /// An agent requested a forbidden remote.
    allow_remote(name) => "git config --add handoff.mcp.remotes {name}";
    /// A rule stopped early.
    explain_or_close(run) => "git handoff coordinate --explain {run}   # or seal it as it is: git handoff close {run}";
    /// An item failed because its dependency did.
    retry(item) => "git handoff retry {item}";
    /// An item failed.
    retry_or_close(item, run) => "git handoff retry {item}   # or seal it as it is: git handoff close {run}";
    /// A done item lacks a product that another needs.
    without_product(run, item) => "git handoff close {run}   # {item} is done without that product; for another try: submit the plan with another id";
    /// A name means both a file and a run.
    run_or_file(file, run) => "git handoff run {file}   # or the run: git handoff run {run}";
    /// There is a plan to run.
    run_plan(path) => "git handoff run {path}";
    /// The file of an example plan exists.
    plan_new() => "git handoff plan new other.json";
    /// An agent failed because its login is hidden from workers.
    login(key, place) => "git config --add {key} {place}   # its login is in your home directory, of which workers see nothing else";
    /// Another process changed the state first.
    again() => "run the same command again";
    /// The disk was full.
    again_with_space() => "free some space, then run the same command again: the run continues where it stopped";
    /// Another process drives the run.
    wait() => "wait for it, or stop that process and run the same command again";
    /// Unfinished work could not be saved.
    salvage() =>
        "free some space, or lift the limit, and run the same command again; or give the unfinished work up: git handoff clean --force --discard";
    /// Nothing was removed yet.
    force() => "the same command with --force";
    /// A plan is read from a file.
    submit() => "git handoff submit plan.json";
    /// A run accepts no more items.
    open_ended() => "submit another plan, or one with \"openEnded\": true from the beginning";
    /// A pipeline is not registered.
    add_pipeline() => "git handoff pipeline add FILE";
    /// A plan is for another run.
    id_of_run() => "give the plan the id of the run";/// A run of that id is another key's.
    other_id_and_key() => "give the plan another id, and submit it under your own key";
    /// An unknown key began a run.
    know_beginner() => "if you trust that key with the commands that you execute for it: add its `git handoff key` line to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    /// Something waits for a decision.
    approve_or_reject(item, same) => "git handoff approve {item}   # or: git handoff reject {same} -m WHY";
    /// Shows what waits for a decision.
    waiting() => "git handoff waiting --all";
    /// A statement about a fetched run should be pushed.
    push_said(remote, run) => "git handoff push {remote} {run}";
    /// A name differs from an existing one only in case.
    name_there(name) => "use the name that is there: {name}";
}

mod evidence;
pub use evidence::*;

mod keys;
pub use keys::*;

mod products;
pub use products::*;

mod refusals;
pub use refusals::*;

mod sharing;
pub use sharing::*;

mod settings;
pub use settings::*;

mod threads;
pub use threads::*;

mod upkeep;
pub use upkeep::*;

// Sharing.
hints! {
    /// There is no remote.
    add_remote() => "git remote add origin URL";
    /// A run or thread was named in place of the remote.
    push_named(remote, name) => "git handoff push {remote} {name}";
    /// Like [`push_named`], for `fetch`.
    fetch_named(remote, name) => "git handoff fetch {remote} {name}";
    /// The remote has something that is missing here.
    fetch(remote) => "git handoff fetch {remote}";
    /// A run diverged from the remote's.
    fetch_and_verify(remote, run, fetched) => "git handoff fetch {remote} {run} && git handoff verify {fetched}   # if it is another person's: git handoff run PLAN --id ID, and git handoff delete {run}";
    /// Like [`fetch_and_verify`], for a thread.
    fetch_and_verify_thread(remote, name, fetched) =>
        "git handoff fetch {remote} {name} && git handoff thread verify {fetched}";
    /// Transcripts are fetched only on request.
    fetch_transcripts(remote) => "git handoff fetch {remote} --transcripts";
    /// A bundle includes products.
    fetch_content() => "in a partial clone, bring the products first: git handoff fetch --content";
    /// The remote has too many refs.
    fetch_less() => "name the runs to fetch";
    /// The remote sent too much data.
    fetch_less_or_raise() => "name the runs to fetch, or: git config handoff.maxFetchSize 8g";
    /// A remote's ref was rewritten; the fetched one is kept.
    forget(reference) => "git update-ref -d {reference}   # forgets what was seen there before; then fetch again";
    /// A remote's record is unreadable, or losses should be ignored.
    forget_seen(path) => "rm -r {path}   # forgets what that remote has shown; nothing that was fetched goes";
    /// Writes output to a file.
    bundle() => "git handoff bundle --all --output runs.bundle";
}

// Anchors.
hints! {
    /// There is no anchor.
    add_anchor() => "git handoff anchor add NAME git URL";
    /// An anchor has no runs.
    push_anchor(name) => "git handoff anchor push {name}";
}

// Settings.
hints! {
    /// There is no signing key.
    signing_key() => "git config handoff.signingKey ~/.ssh/id_ed25519   # or '' for a key of this repository's own";
    /// The signing program failed.
    own_signing_key() => "git config handoff.signingKey ''   # signs with a key of this repository's own; the keys of an agent: ssh-add -l";
    /// A plan has too many items.
    max_items(count) => "git config handoff.maxItems {count}";
    /// A product is too large.
    max_product_size() => "git config handoff.maxProductSize 1g";
    /// There is no folder for worktrees and caches.
    workspace_root() => "git config handoff.workspace.root /var/tmp/git-handoff   # or set XDG_CACHE_HOME to a folder that you can write to";
    /// Worktrees would be tracked by git.
    unset_workspace_root() => "git config --unset handoff.workspace.root";
    /// The pager is not a command.
    no_pager() => "git --no-pager handoff   # or name another: git config core.pager less";
    /// The base tree tracks the inputs or outputs folder.
    workspace_folder(key) => "git config handoff.workspace.{key} <another folder>";
    /// A setting names a file that cannot be read.
    set_file(key) => "git config {key} FILE";
    /// A file about trust lies inside the work tree.
    move_out() => "move it out of the work tree, or name it for this once: --signers FILE, --revoked FILE";
    /// The ref storage format is not supported.
    ref_format() => "git refs migrate --ref-format=files";
    /// There is no repository.
    init() => "git init";
    /// A push would delete others' runs.
    no_mirror(remote) => "git config --unset remote.{remote}.mirror";
    /// A fetch would delete runs that the remote lacks.
    no_prune(remote) => "git config remote.{remote}.prune false   # or take the refspec out: `git handoff fetch` needs none";
    /// A remote lost something that is here.
    hand_back(remote, kept, reference) => "git push {remote} {kept}:{reference}   # if it is to be there again";
    /// A shared run or thread is lost everywhere.
    ask_for_it() => "ask its owner for: git handoff push REMOTE --all   # or for: git handoff bundle";
    /// A ref differs from its log, and the logged commit is here.
    restore_ref(name, commit) => "git update-ref {name} {commit}";
    /// A ref is gone, and its last commit is unknown.
    find_lost() => "git handoff fetch   # or look for the commit: git fsck --no-reflogs --lost-found";
    /// git may prune objects while they are in use.
    prune_expire() => "git config gc.pruneExpire 2.weeks.ago";
    /// Fetched objects are not checked.
    fsck_objects() => "git config fetch.fsckObjects true";
    /// The clone is shallow.
    unshallow() => "git fetch --unshallow";
}

/// A similar name exists.
pub fn did_you_mean(name: &str) -> Hint {
    Hint::new("did_you_mean", &[name], format!("did you mean {name:?}?"))
}

/// Like [`did_you_mean`], for a plan, whose ids need no quotes.
pub fn did_you_mean_in_plan(name: &str) -> Hint {
    Hint::new("did_you_mean_in_plan", &[name], format!("did you mean `{}`?", written_out(name)))
}

/// The id was used before.
pub fn other_id(run: &str) -> Hint {
    Hint::new("other_id", &[run], format!("give the plan another id than {run:?}"))
}

/// A queue is not registered.
pub fn register_queue(queue: impl fmt::Display) -> Hint {
    let setting = quoted(&format!("handoff.queue.{queue}.concurrency"));
    Hint::new("register_queue", &[&queue.to_string()], format!("git config {setting} 2"))
}

/// A schema is not registered.
pub fn register_schema(schema: impl fmt::Display) -> Hint {
    let schema = schema.to_string();
    let line = set_file(format_args!("handoff.schema.{schema}.path")).to_string();
    Hint::new("register_schema", &[&schema], line)
}

/// Like [`register_schema`], for a plan.
pub fn register_schema_in_plan(schema: impl fmt::Display) -> Hint {
    let schema = schema.to_string();
    Hint::new("register_schema_in_plan", &[&schema], format!("git config handoff.schema.{schema}.path <file>"))
}
