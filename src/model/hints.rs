//! All hints: next steps for a person, most of them commands to paste.
//!
//! Arguments in braces are quoted for a shell ([`quoted`]), because names may come from an
//! untrusted plan. Words in capitals are for the reader to replace. Only this file and its
//! submodules create a [`Hint`].

use std::fmt;

use super::printable::written_out;
use super::quote::quoted;
use super::words::written_as_text;

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

written_as_text!(Hint);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! hints {
    ($($name:ident($($word:ident),*) => $line:literal;)*) => {
        $(#[expect(missing_docs, reason = "the line says it")]
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
    network() => "git config handoff.network any   # what this machine can enforce";
    sandbox_auto() => "git config handoff.sandbox auto   # what this machine can enforce";
    sandbox() => "apt-get install bubblewrap   # or `handoff.sandbox = auto` for what this machine can enforce";
    confine() => "git config handoff.sandbox auto   # or leave the network open: git config handoff.network any";
    make_folder(path) => "mkdir -p {path}   # or, for a file: touch";
    reached() => "git config --show-origin --get-regexp 'handoff.*able'   # name where it really lies, if that is what you mean";
    laid_over() => "git config --show-origin --get-regexp '^handoff[.].*[.](readable|writable|home)$'   # name folders below it instead";
    whence(commit) => "git handoff whence {commit}";
    runs() => "git handoff runs";
    threads() => "git handoff thread list";
    runs_and_threads() => "git handoff runs && git handoff thread list";
    items(run) => "git handoff status {run}";
    show(run) => "git handoff show {run}";
    show_or_rename(run) => "git handoff show {run}   # or give the plan another id";
    show_elsewhere(run) => "git handoff show {run}   # its bytes are elsewhere, or were deleted";
    documents(run) => "git handoff doc list {run}";
    revisions(run, document) => "git handoff doc log {run} {document}";
    get_document(run, document) => "git handoff doc get {run} {document}";
    checkpoints(thread) => "git handoff thread log {thread}";
    anchors() => "git handoff anchor list";
    anchors_and_runs() => "git handoff anchor list && git handoff runs";
    commits() => "git log --oneline --all";
    remotes() => "git remote --verbose";
    refs() => "git for-each-ref refs/handoff   # what git reads there; what was meant, only you can say";
    setting(key) => "git config --show-origin --get-all {key}";
    folders() => "git config --show-origin --get-regexp '^handoff[.]workspace[.](inputs|outputs)$'";
    pipelines() => "git handoff pipeline list   # to register another: git handoff pipeline add FILE";
    allow_red(item) => "git handoff show {item}   # to apply it all the same: --allow-red";
    without_protected(item) => "git handoff apply {item} --without-protected   # or --allow-red to apply these changes too";
    with_hooks(item) => "git handoff cat {item}   # after reading it: git handoff apply … --with-hooks";
    red_again(item) => "git handoff show {item}   # for another try: submit the plan with another id; `onVerifyFail = fail` tries again by itself";
    cat(what) => "git handoff cat {what}";
    apply_submodule(what, path) => "git handoff cat {what} | git -C {path} apply --index";
    git_show(file) => "git show {file}";
}

// Verification.
hints! {
    verify(run) => "git handoff verify {run}";
    verify_or_accept(run) => "git handoff verify {run}   # to take it all the same: --accept-untrusted";
    verify_thread(thread) => "git handoff thread verify {thread}";
    verify_all() => "git handoff verify --all";
    verify_logs() => "git handoff verify --all   # one of the two logs says of a run what the other does not";
    verify_by_signer() => "git handoff verify --signers FILE --signer PRINCIPAL RUN";
    verify_thread_by_signer() => "git handoff thread verify --signers FILE --signer PRINCIPAL THREAD";
    check_anchors(run) => "git handoff anchor check {run}";
    prove() => "git handoff prove RUN/ITEM:patch";
    export_bundle() => "git handoff export RUN --format bundle-json";
    doctor() => "git handoff doctor";
    mend() => "git handoff doctor --fix";
    mend_lock() => "git handoff doctor --fix   # or, if git is at work here, the same command again";
}

// Driving runs.
hints! {
    run(run) => "git handoff run {run}";
    run_or_close(run) => "git handoff run {run}   # or seal it as it is: git handoff close {run}";
    close(run) => "git handoff close {run}";
    run_to_close(run) => "git handoff run --close {run}";
    extend_or_close(run) => "git handoff extend {run} PLAN   # or seal it as it is: git handoff close {run}";
    status_blocked(run) => "git handoff status --blocked {run}";
    run_all() => "git handoff run";
    first_plan() => "git handoff submit PLAN --run";
    build_whole() => "cargo install --locked --profile dist --path .   # in a clone of git-handoff: with all features";
    allow_executor(name) => "git config --add handoff.mcp.executors {name}";
    allow_remote(name) => "git config --add handoff.mcp.remotes {name}";
    explain_or_close(run) => "git handoff coordinate --explain {run}   # or seal it as it is: git handoff close {run}";
    show_or_archive(run) => "git handoff show {run}   # or set it aside: git handoff archive {run}";
    retry(item) => "git handoff retry {item}";
    retry_or_close(item, run) => "git handoff retry {item}   # or seal it as it is: git handoff close {run}";
    without_product(run, item) => "git handoff close {run}   # {item} is done without that product; for another try: submit the plan with another id";
    run_or_file(file, run) => "git handoff run {file}   # or the run: git handoff run {run}";
    run_plan(path) => "git handoff run {path}";
    plan_new() => "git handoff plan new other.json";
    private_settings() => "git config --show-origin --get-regexp '^handoff[.].*[.](private|login)$'";
    private_home() => "git config --show-origin --get-regexp '^handoff[.].*[.]home$'   # `private` is the default";
    private_folder(agent) => "git handoff init --agent {agent}   # gives it a private copy and its login";
    login(key, place) => "git config --add {key} {place}   # its login is in your home directory, of which workers see nothing else";
    again() => "run the same command again";
    again_with_space() => "free some space, then run the same command again: the run continues where it stopped";
    again_after_space() => "free some space, then run the same command again";
    again_with_permission() => "make the files and the file system of the work tree writable, then run the same command again";
    make_writable(folder) => "chmod u+wx {folder}   # then run the same command again";
    make_folder_writable(folder) => "chmod -R u+rwX {folder}   # as its owner";
    slow_remote() => "git config handoff.heartbeat 1m   # before a run is first shared; this one: from a machine nearer to the remote";
    wait() => "wait for it, or stop that process and run the same command again";
    salvage() =>
        "free some space, or lift the limit, and run the same command again; or give the unfinished work up: git handoff clean --force --discard";
    force() => "the same command with --force";
    submit() => "git handoff submit plan.json";
    open_ended() => "submit another plan, or one with \"openEnded\": true from the beginning";
    add_pipeline() => "git handoff pipeline add FILE";
    id_of_run() => "give the plan the id of the run";
    know_beginner() => "if you trust that key with the commands that you execute for it: add its `git handoff key` line to the file of handoff.signers or gpg.ssh.allowedSignersFile; if neither is set: git config handoff.signers FILE";
    approve_or_reject(item, same) => "git handoff approve {item}   # or: git handoff reject {same} -m WHY";
    waiting() => "git handoff waiting --all";
    push_base(remote, base) => "git push {remote} {base}:refs/heads/NAME   # in the repository where the run was submitted";
    push_said(remote, run) => "git handoff push {remote} {run}";
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
    add_remote() => "git remote add origin URL";
    push_named(remote, name) => "git handoff push {remote} {name}";
    fetch_named(remote, name) => "git handoff fetch {remote} {name}";
    fetch(remote) => "git handoff fetch {remote}";
    fetch_and_verify(remote, run, fetched) => "git handoff fetch {remote} {run} && git handoff verify {fetched}   # if it is another person's: git handoff adopt-run {run} --id ID, and git handoff delete {run}";
    fetch_and_verify_thread(remote, name, fetched) =>
        "git handoff fetch {remote} {name} && git handoff thread verify {fetched}";
    fetch_transcripts(remote) => "git handoff fetch {remote} --transcripts";
    fetch_content() => "in a partial clone, bring the products first: git handoff fetch --content";
    fetch_all_files() => "git fetch --refetch --no-filter   # or bundle without --protected";
    bundle_protected(run) => "ask its owner for: git handoff bundle {run} --protected --output FILE";
    fetch_less() => "name the runs to fetch";
    fetch_less_or_raise() => "name the runs to fetch, or: git config handoff.maxFetchSize 8g";
    forget(reference) => "git update-ref -d {reference}   # forgets what was seen there before; then fetch again";
    forget_seen(path) => "rm -r {path}   # forgets what that remote has shown; nothing that was fetched goes";
    bundle() => "git handoff bundle --all --output runs.bundle";
}

// Anchors.
hints! {
    add_anchor() => "git handoff anchor add NAME git URL";
    push_anchor(name) => "git handoff anchor push {name}";
}

// Settings.
hints! {
    signing_key() => "git config handoff.signingKey ~/.ssh/id_ed25519   # or '' for a key of this repository's own";
    own_signing_key() => "git config handoff.signingKey ''   # signs with a key of this repository's own; the keys of an agent: ssh-add -l";
    max_items(count) => "git config handoff.maxItems {count}";
    max_product_size() => "git config handoff.maxProductSize 1g";
    workspace_root() => "git config handoff.workspace.root /var/tmp/git-handoff   # or set XDG_CACHE_HOME to a folder that you can write to";
    without_annex() => "work in a clone of a branch whose files are all in git: git clone --single-branch --branch BRANCH <this-repository> <folder>";
    unset_workspace_root() => "git config --unset handoff.workspace.root";
    no_pager() => "git --no-pager handoff   # or name another: git config core.pager less";
    workspace_folder(key) => "git config handoff.workspace.{key} <another folder>";
    set_file(key) => "git config {key} FILE";
    move_out() => "move it out of the work tree, or name it for this once: --signers FILE, --revoked FILE";
    ref_format() => "git refs migrate --ref-format=files";
    init() => "git init";
    no_mirror(remote) => "git config --unset remote.{remote}.mirror";
    no_prune(remote) => "git config remote.{remote}.prune false   # or take the refspec out: `git handoff fetch` needs none";
    hand_back(remote, kept, reference) => "git push {remote} {kept}:{reference}   # if it is to be there again";
    ask_for_it() => "ask its owner for: git handoff push REMOTE --all   # or for: git handoff bundle";
    restore_ref(name, commit) => "git update-ref {name} {commit}";
    find_lost() => "git handoff fetch   # or look for the commit: git fsck --no-reflogs --lost-found";
    prune_expire() => "git config gc.pruneExpire 2.weeks.ago";
    fsck_objects() => "git config fetch.fsckObjects true";
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
