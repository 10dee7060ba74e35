//! Every hint: what a person may do next, most of them a command that can be pasted.
//!
//! What stands between braces is quoted for a shell ([`quoted`]): names come from whoever wrote a plan, and one that is pasted must
//! not run a command of its own. Words in capitals are for the reader to replace. Only this file, with those below it, makes a [`Hint`].

use std::fmt;

use serde::{Serialize, Serializer};

use super::printable::written_out;
use super::quote::quoted;

/// What a person may do next, in one line.
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

    /// The name of the function that made it, for readers that have other ways than commands.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The arguments of that function, unquoted.
    pub fn about(&self) -> &[String] {
        &self.0.about
    }

    /// The line.
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

// What there is.
hints! {
    /// What is to confine workers is not there.
    sandbox() => "apt-get install bubblewrap   # or `handoff.sandbox = auto` for what this machine can enforce";
    /// What is to keep workers from the network is not asked for.
    confine() => "git config handoff.sandbox auto   # or leave the network open: git config handoff.network any";
    /// What a worker is to write is not there.
    make_folder(path) => "mkdir -p {path}   # or, for a file: touch";
    /// What workers are to reach is named by a path that one of them may change.
    reached() => "git config --show-origin --get-regexp 'handoff.*able'   # name where it really lies, if that is what you mean";
    /// A folder that workers are to reach holds what is made anew for each of them.
    laid_over() => "git config --show-origin --get-regexp '^handoff[.].*[.](readable|writable|home)$'   # name folders below it instead";
    /// No run, or no settled one, is called so.
    runs() => "git handoff runs";
    /// No thread is called so.
    threads() => "git handoff thread list";
    /// Neither a run nor a thread is called so.
    runs_and_threads() => "git handoff runs && git handoff thread list";
    /// No item of the run is called so.
    items(run) => "git handoff status {run}";
    /// The run is there, and what was asked for is not.
    show(run) => "git handoff show {run}";
    /// The run is there, and it is another plan's.
    show_or_rename(run) => "git handoff show {run}   # or give the plan another id";
    /// What is recorded is not here.
    show_elsewhere(run) => "git handoff show {run}   # its bytes are elsewhere, or were deleted";
    /// No document of the run is called so.
    documents(run) => "git handoff doc list {run}";
    /// A document has other revisions than was thought.
    revisions(run, document) => "git handoff doc log {run} {document}";
    /// A document is larger than an answer may be.
    get_document(run, document) => "git handoff doc get {run} {document}";
    /// No checkpoint of the thread is called so.
    checkpoints(thread) => "git handoff thread log {thread}";
    /// No anchor is called so.
    anchors() => "git handoff anchor list";
    /// Neither an anchor nor a run is called so.
    anchors_and_runs() => "git handoff anchor list && git handoff runs";
    /// No commit is called so.
    commits() => "git log --oneline --all";
    /// No remote is called so.
    remotes() => "git remote --verbose";
    /// What git reads where refs contradict one another.
    refs() => "git for-each-ref refs/handoff   # what git reads there; what was meant, only you can say";
    /// Where a setting stands, in all files.
    setting(key) => "git config --show-origin --get-all {key}";
    /// What items need and what they hand over would lie in one folder.
    folders() => "git config --show-origin --get-regexp '^handoff[.]workspace[.](inputs|outputs)$'";
    /// No pipeline is called so.
    pipelines() => "git handoff pipeline list   # to register another: git handoff pipeline add FILE";
    /// Items whose check did not pass are in the way.
    allow_red(item) => "git handoff show {item}   # to apply it all the same: --allow-red";
    /// An item whose check did not pass is done.
    red_again(item) => "git handoff show {item}   # for another try: submit the plan with another id; `onVerifyFail = fail` tries again by itself";
    /// The bytes of a product, a manifest or a transcript.
    cat(what) => "git handoff cat {what}";
    /// A change to a submodule is to be applied there.
    apply_submodule(what, path) => "git handoff cat {what} | git -C {path} apply --index";
    /// The bytes of a file of a commit, by stock git.
    git_show(file) => "git show {file}";
}

// Whether it is what was recorded.
hints! {
    /// A run does not hold, or may not.
    verify(run) => "git handoff verify {run}";
    /// A run is by keys that nobody vouched for.
    verify_or_accept(run) => "git handoff verify {run}   # to take it all the same: --accept-untrusted";
    /// A thread does not hold, or may not.
    verify_thread(thread) => "git handoff thread verify {thread}";
    /// Something that some run rests on is not what it was.
    verify_all() => "git handoff verify --all";
    /// A log went another way on a remote than here.
    verify_logs() => "git handoff verify --all   # one of the two logs says of a run what the other does not";
    /// Who signed can only be said of keys that belong to somebody.
    verify_by_signer() => "git handoff verify --signers FILE --signer PRINCIPAL RUN";
    /// As [`verify_by_signer`], of a thread.
    verify_thread_by_signer() => "git handoff thread verify --signers FILE --signer PRINCIPAL THREAD";
    /// An anchor holds something else of a run.
    check_anchors(run) => "git handoff anchor check {run}";
    /// A file holds no proof.
    prove() => "git handoff prove RUN/ITEM:patch";
    /// A file holds no audit bundle.
    export_bundle() => "git handoff export RUN --format bundle-json";
    /// Something is wrong with what this tool keeps in the repository.
    doctor() => "git handoff doctor";
    /// What is wrong can be mended by itself.
    mend() => "git handoff doctor --fix";
    /// A lock is in the way.
    mend_lock() => "git handoff doctor --fix   # or, if git is at work here, the same command again";
}

// How a run goes on.
hints! {
    /// A run has something left to do.
    run(run) => "git handoff run {run}";
    /// A run has to be sealed before it proves anything.
    run_or_close(run) => "git handoff run {run}   # or seal it as it is: git handoff close {run}";
    /// A run has settled, and not every item is done.
    close(run) => "git handoff close {run}";
    /// A run has not settled.
    run_to_close(run) => "git handoff run --close {run}";
    /// A run that is open-ended waits for more.
    extend_or_close(run) => "git handoff extend {run} PLAN   # or seal it as it is: git handoff close {run}";
    /// Some items of a run are not done.
    status_blocked(run) => "git handoff status --blocked {run}";
    /// There are runs that have not settled.
    run_all() => "git handoff run";
    /// There is no run yet.
    first_plan() => "git handoff submit PLAN --run";
    /// An agent asked for an executor that it may not have.
    allow_executor(name) => "git config --add handoff.mcp.executors {name}";
    /// An agent named a remote that it may not push to or fetch from.
    allow_remote(name) => "git config --add handoff.mcp.remotes {name}";
    /// A rule stopped short.
    explain_or_close(run) => "git handoff coordinate --explain {run}   # or seal it as it is: git handoff close {run}";
    /// An item failed; the one that it waits for did.
    retry(item) => "git handoff retry {item}";
    /// An item failed.
    retry_or_close(item, run) => "git handoff retry {item}   # or seal it as it is: git handoff close {run}";
    /// An item is done without a product that another one needs.
    without_product(run, item) => "git handoff close {run}   # {item} is done without that product; for another try: submit the plan with another id";
    /// A word may mean a file and a run.
    run_or_file(file, run) => "git handoff run {file}   # or the run: git handoff run {run}";
    /// There is a plan to run.
    run_plan(path) => "git handoff run {path}";
    /// The file of a plan to start from is there already.
    plan_new() => "git handoff plan new other.json";
    /// An agent failed whose login lies where workers see nothing.
    login(key, place) => "git config --add {key} {place}   # its login is in your home directory, of which workers see nothing else";
    /// Who got there first has changed what this was decided by.
    again() => "run the same command again";
    /// The disk was full.
    again_with_space() => "free some space, then run the same command again: the run continues where it stopped";
    /// Somebody else drives the run.
    wait() => "wait for it, or stop that process and run the same command again";
    /// Unfinished work could not be put away.
    salvage() =>
        "free some space, or lift the limit, and run the same command again; or give the unfinished work up: git handoff clean --force --discard";
    /// Nothing was removed yet.
    force() => "the same command with --force";
    /// A plan comes from a file.
    submit() => "git handoff submit plan.json";
    /// A run takes no more items.
    open_ended() => "submit another plan, or one with \"openEnded\": true from the beginning";
    /// A pipeline is not known here.
    add_pipeline() => "git handoff pipeline add FILE";
    /// A plan is for another run.
    id_of_run() => "give the plan the id of the run";/// A run of that id is another key's.
    other_id_and_key() => "give the plan another id, and submit it under your own key";
    /// A run was begun by somebody who is not known.
    know_beginner() => "if you trust that key with the commands that you execute for it: add its `git handoff key` line to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    /// Something waits for somebody's decision.
    approve_or_reject(item, same) => "git handoff approve {item}   # or: git handoff reject {same} -m WHY";
    /// What waits for a decision is to be looked at.
    waiting() => "git handoff waiting --all";
    /// What stands in our log about a run that was fetched is to travel.
    push_said(remote, run) => "git handoff push {remote} {run}";
    /// A name that differs in letter case alone is taken.
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

// How evidence is shared.
hints! {
    /// There is no remote.
    add_remote() => "git remote add origin URL";
    /// A run or a thread stands where the remote belongs.
    push_named(remote, name) => "git handoff push {remote} {name}";
    /// As [`push_named`], of fetching.
    fetch_named(remote, name) => "git handoff fetch {remote} {name}";
    /// The remote has something that is not here.
    fetch(remote) => "git handoff fetch {remote}";
    /// A run went another way on the remote than here.
    fetch_and_verify(remote, run, fetched) => "git handoff fetch {remote} {run} && git handoff verify {fetched}   # if it is another person's: git handoff run PLAN --id ID, and git handoff delete {run}";
    /// As [`fetch_and_verify`], of a thread.
    fetch_and_verify_thread(remote, name, fetched) =>
        "git handoff fetch {remote} {name} && git handoff thread verify {fetched}";
    /// Transcripts are not fetched unless somebody asks for them.
    fetch_transcripts(remote) => "git handoff fetch {remote} --transcripts";
    /// A bundle holds whole products.
    fetch_content() => "in a partial clone, bring the products first: git handoff fetch --content";
    /// More was offered than is taken at once.
    fetch_less() => "name the runs to fetch";
    /// More bytes were offered than are taken at once.
    fetch_less_or_raise() => "name the runs to fetch, or: git config handoff.maxFetchSize 8g";
    /// What was fetched before is kept, and the remote says something else now.
    forget(reference) => "git update-ref -d {reference}   # forgets what was seen there before; then fetch again";
    /// What a remote showed is not known any more, or is not to be missed.
    forget_seen(path) => "rm -r {path}   # forgets what that remote has shown; nothing that was fetched goes";
    /// What cannot go to a remote, or to a terminal, goes into a file.
    bundle() => "git handoff bundle --all --output runs.bundle";
}

// How evidence is kept outside.
hints! {
    /// There is no anchor.
    add_anchor() => "git handoff anchor add NAME git URL";
    /// An anchor knows of no run yet.
    push_anchor(name) => "git handoff anchor push {name}";
}

// What is set.
hints! {
    /// There is no key to sign with.
    signing_key() => "git config handoff.signingKey ~/.ssh/id_ed25519   # or '' for a key of this repository's own";
    /// A program that is to sign did not.
    own_signing_key() => "git config handoff.signingKey ''   # signs with a key of this repository's own; the keys of an agent: ssh-add -l";
    /// A plan, or what follows from it, has more items than are taken.
    max_items(count) => "git config handoff.maxItems {count}";
    /// A product is larger than products may be.
    max_product_size() => "git config handoff.maxProductSize 1g";
    /// There is no place for worktrees and caches.
    workspace_root() => "git config handoff.workspace.root /var/tmp/git-handoff   # or set XDG_CACHE_HOME to a folder that you can write to";
    /// Worktrees are made where git would track them.
    unset_workspace_root() => "git config --unset handoff.workspace.root";
    /// Answers go through a pager that is none.
    no_pager() => "git --no-pager handoff   # or name another: git config core.pager less";
    /// The base tree tracks a folder that every attempt needs.
    workspace_folder(key) => "git config handoff.workspace.{key} <another folder>";
    /// A setting names a file that cannot be read.
    set_file(key) => "git config {key} FILE";
    /// A file that says whom to trust stands where those who are judged can write it.
    move_out() => "move it out of the work tree, or name it for this once: --signers FILE, --revoked FILE";
    /// Refs are stored as this tool does not read them.
    ref_format() => "git refs migrate --ref-format=files";
    /// There is no repository.
    init() => "git init";
    /// A push to a remote deletes what others handed over there.
    no_mirror(remote) => "git config --unset remote.{remote}.mirror";
    /// A fetch from a remote deletes what it shows no more.
    no_prune(remote) => "git config remote.{remote}.prune false   # or take the refspec out: `git handoff fetch` needs none";
    /// A remote lost what was fetched from it, and that is here.
    hand_back(remote, kept, reference) => "git push {remote} {kept}:{reference}   # if it is to be there again";
    /// Neither a remote nor this repository has something that was handed over.
    ask_for_it() => "ask whoever has it for: git handoff push REMOTE --all   # or for: git handoff bundle";
    /// The ref of a run or thread is not where its log says that it was, and what it pointed at is here.
    restore_ref(name, commit) => "git update-ref {name} {commit}";
    /// The ref of a run or thread is gone, and nothing says what it pointed at.
    find_lost() => "git handoff fetch   # or look for the commit: git fsck --no-reflogs --lost-found";
    /// Objects can be deleted while somebody is about to use them.
    prune_expire() => "git config gc.pruneExpire 2.weeks.ago";
    /// Objects that are fetched are not checked.
    fsck_objects() => "git config fetch.fsckObjects true";
    /// History is elsewhere.
    unshallow() => "git fetch --unshallow";
}

/// A name is not known, and one that is like it is.
pub fn did_you_mean(name: &str) -> Hint {
    Hint::new("did_you_mean", &[name], format!("did you mean {name:?}?"))
}

/// As [`did_you_mean`], in a plan, whose ids need no quotes.
pub fn did_you_mean_in_plan(name: &str) -> Hint {
    Hint::new("did_you_mean_in_plan", &[name], format!("did you mean `{}`?", written_out(name)))
}

/// A run of that id was here before.
pub fn other_id(run: &str) -> Hint {
    Hint::new("other_id", &[run], format!("give the plan another id than {run:?}"))
}

/// A queue is not known here.
pub fn register_queue(queue: impl fmt::Display) -> Hint {
    let setting = quoted(&format!("handoff.queue.{queue}.concurrency"));
    Hint::new("register_queue", &[&queue.to_string()], format!("git config {setting} 2"))
}

/// A schema is not known here.
pub fn register_schema(schema: impl fmt::Display) -> Hint {
    let schema = schema.to_string();
    let line = set_file(format_args!("handoff.schema.{schema}.path")).to_string();
    Hint::new("register_schema", &[&schema], line)
}

/// As [`register_schema`], in a plan.
pub fn register_schema_in_plan(schema: impl fmt::Display) -> Hint {
    let schema = schema.to_string();
    Hint::new("register_schema_in_plan", &[&schema], format!("git config handoff.schema.{schema}.path <file>"))
}
