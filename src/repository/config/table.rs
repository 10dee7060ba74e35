//! The table of settings: description, names, kind of value, default, and where the value goes.
//!
//! A new setting needs only an entry here and the field that it fills. `docs/reference/settings.md`
//! and the manual page are generated from this table.

use super::OnVerifyFail;
use super::entry::{Entry, Group};
use super::kind::{
    Boolean, Choice, Credential, Either, File, Folder, Kind as _, Number, Pathspec, Pattern, Read as _, Seconds, Size,
    Span, Text, Variable, Words,
};
use super::registration::Registration;
use super::secret_env::Secrets;
use crate::git::store::Durability;
use crate::model::confinement::{Asked, Home, Network};
use crate::model::driver::{MAX_HEARTBEAT, MAX_LOST_AFTER, MIN_HEARTBEAT};
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::{OnProtectedChange, VerifyIn};

/// Values of `sandbox`.
const SANDBOXES: Choice<Asked> =
    Choice(&[("auto", Asked::Auto), ("require", Asked::Require), ("strict", Asked::Strict), ("none", Asked::None)]);

/// Values of `network`.
const NETWORKS: Choice<Network> =
    Choice(&[("any", Network::Any), ("loopback", Network::Loopback), ("none", Network::None)]);

/// Values of `onVerifyFail`.
const CHECKS: Choice<OnVerifyFail> = Choice(&[("fail", OnVerifyFail::Fail), ("keep", OnVerifyFail::Keep)]);

/// Builds the table. An entry has a description, names, a kind of value, a default, an optional
/// `outside` and the code that stores the value. With `outside`, a file inside the work tree cannot
/// set it; with `outside unless_below F`, it can if its value is at least `F`'s.
macro_rules! settings {
    ($($title:literal: { $(
        $(#[doc = $sentence:literal])+
        $($name:literal)|+: $kind:expr, $default:literal $(, $outside:ident $(unless_below $floor:ident)?)?
            => |$config:pat_param, $given:pat_param, $value:pat_param| $take:expr;
    )+ })+) => {
        /// Every setting, in the order in which they are documented.
        pub const SETTINGS: &[Group] = &[$(Group { title: $title, entries: &[$(Entry {
            names: &[$($name),+],
            sentence: concat!($($sentence),+).trim_ascii(),
            default: $default,
            tracked: settings!(tracked $($outside)?),
            asks_no_less: settings!(stricter $kind $($(, $floor)?)?),
            describe: || $kind.describe(),
            set: |config, given| {
                let $value = $kind.read(given.setting)?;
                let ($config, $given) = (config, given);
                $take;
                Ok(())
            },
        }),+] }),+];
    };
    (stricter $kind:expr) => { None };
    (stricter $kind:expr, $floor:ident) => {
        // An invalid value does not count as stricter.
        Some(|config, given| $kind.read(given.setting).is_ok_and(|value| value >= config.$floor(given)))
    };
    (tracked) => { true };
    (tracked outside) => { false };
}

settings! {
    "Whom to trust": {
        /// The key that signs entries: a file, or a public key as git takes it (`ssh-…`, `key::…`)
        /// if an agent holds the private half. An empty value selects the repository's own key.
        "handoff.signingKey": Text("path or public key"),
            "`user.signingKey` where `gpg.format` is `ssh`, else the repository's own, made on first use", outside
            => |config, _, key| config.signing_key = Some(key);
        /// The allowed-signers file. If it is set, `verify` trusts no other key.
        "handoff.signers": File, "none: the key that you sign with is known, and no other is refused", outside
            => |config, _, file| config.signers = Some(file);
        /// A file of keys that are no longer trusted.
        "handoff.revoked": File, "none", outside
            => |config, _, file| config.revoked = Some(file);
    }
    "Who does the work": {
        /// The shell command that does the work of an item, run in the item's worktree. The worker
        /// may read files that the command names by absolute path, unless a file inside the work
        /// tree sets the command.
        "handoff.executor.<name>.command" | "handoff.subagent.<name>.command": Text("command"), "none"
            => |config, given, line| config.set_line(given, |executor| &mut executor.command, line);
        /// A shell command that runs first. If it fails, the attempt fails.
        "handoff.executor.<name>.setup" | "handoff.subagent.<name>.setup": Text("command"), "none"
            => |config, given, line| config.set_line(given, |executor| &mut executor.setup, line);
        /// A shell command that checks the result. The exit status is recorded as `verify.passed`.
        "handoff.executor.<name>.verify" | "handoff.subagent.<name>.verify": Text("command"),
            "none: what the worker says of itself"
            => |config, given, line| config.set_line(given, |executor| &mut executor.verify, line);
        /// A shell command whose first line of output is recorded as the version of the worker's
        /// program. It runs once, in your environment, for at most 10 seconds.
        "handoff.executor.<name>.versionCommand" | "handoff.subagent.<name>.versionCommand": Text("command"), "none", outside
            => |config, given, line| config.executor(given).version_command = Some(line);
        /// Record in manifests which program an attempt runs: its path, digest, size and version.
        /// If false, manifests do not tell readers where programs are on your machine.
        "handoff.recordProgram": Boolean, "`true`", outside
            => |config, _, record| config.record_program = record;
        /// The effect of a failed check: `fail` fails the attempt, which may be repeated; `keep`
        /// keeps the product and marks the item red.
        "handoff.executor.<name>.onVerifyFail" | "handoff.subagent.<name>.onVerifyFail": CHECKS, "`fail`"
            => |config, given, meaning| config.executor(given).on_verify_fail = Some(meaning);
        /// A pathspec of files that the worker must not change, such as tests and CI settings; each
        /// setting adds one. While the check runs, these files have their reference state.
        "handoff.protect" | "handoff.executor.<name>.protect" | "handoff.subagent.<name>.protect": Pathspec, "none"
            => |config, given, pathspec| config.protect_rules(given).push(ProtectRule::Pathspec(pathspec));
        /// Protects every file except those that this pathspec selects; each setting adds one. If a
        /// plan, an executor and a subagent have exceptions, a file is free only if it is among the
        /// exceptions of each.
        "handoff.protectExcept" | "handoff.executor.<name>.protectExcept" | "handoff.subagent.<name>.protectExcept":
            Pathspec, "none"
            => |config, given, pathspec| ProtectRule::add_exception(config.protect_rules(given), pathspec);
        /// The effect of a change to a protected file: `red` marks the item red, `fail` fails the
        /// attempt, `allow` only records and shows the change. `judge` records and shows the change
        /// if the check passes with the original files, and marks the item red otherwise.
        "handoff.onProtectedChange" | "handoff.executor.<name>.onProtectedChange" | "handoff.subagent.<name>.onProtectedChange":
            Choice(&[
                ("red", OnProtectedChange::Red),
                ("fail", OnProtectedChange::Fail),
                ("allow", OnProtectedChange::Allow),
                ("judge", OnProtectedChange::Judge),
            ]), "`red`, or what the item of the plan says", outside
            => |config, given, effect| match given.key.section {
                None => config.on_protected_change = Some(effect),
                Some(_) => config.executor(given).on_protected_change = Some(effect),
            };
        /// A folder outside of the repository whose files are laid over the worktree for the check
        /// only. The worker must not be able to read it. The manifest records its digest, and
        /// nothing of it is stored.
        "handoff.executor.<name>.heldOut" | "handoff.subagent.<name>.heldOut": File, "none", outside
            => |config, given, folder| config.executor(given).held_out = Some(folder);
        /// Whether reasons that later attempts see contain the output of a check with held-out
        /// files.
        "handoff.executor.<name>.heldOutFeedback" | "handoff.subagent.<name>.heldOutFeedback": Boolean, "`false`", outside
            => |config, given, yes| config.executor(given).held_out_feedback = Some(yes);
        /// Whether the check must fail before the worker starts. If it passes, the item fails with
        /// `check-not-red`.
        "handoff.executor.<name>.redFirst" | "handoff.subagent.<name>.redFirst": Boolean, "`false`"
            => |config, given, yes| config.executor(given).red_first = Some(yes);
        /// Where the check runs: in the `worktree` that the worker left, or in a `fresh` one with
        /// the base and the worker's patch, after `setup`, which runs twice then. In both, its home
        /// directory, temporary files, git directory and inputs are not those of the worker.
        "handoff.executor.<name>.verifyIn" | "handoff.subagent.<name>.verifyIn":
            Choice(&[("worktree", VerifyIn::Worktree), ("fresh", VerifyIn::Fresh)]), "`worktree`"
            => |config, given, place| config.executor(given).verify_in = Some(place);
        /// The time limit of an attempt. The item's own value takes precedence.
        "handoff.executor.<name>.timeout" | "handoff.subagent.<name>.timeout": Seconds, "`3600`"
            => |config, given, seconds| config.executor(given).timeout = Some(seconds);
        /// The maximum number of attempts of an item. The item's own value takes precedence.
        "handoff.executor.<name>.maxAttempts" | "handoff.subagent.<name>.maxAttempts": Number(1, 100), "what the queue says"
            => |config, given, count| config.executor(given).max_attempts = Some(count);
        /// Sets an environment variable for the worker.
        "handoff.executor.<name>.env" | "handoff.subagent.<name>.env": Variable, "none"
            => |config, given, (name, value)| drop(config.executor(given).env.insert(name, value));
        /// Names of your environment variables that the worker sees in addition to the default
        /// ones.
        "handoff.executor.<name>.passEnv" | "handoff.subagent.<name>.passEnv": Words, "none", outside
            => |config, given, names| config.executor(given).pass_env.extend(names);
        /// Secret environment variables. Their values are removed from transcripts, and a product
        /// that contains one is refused. A value can also come from a shell command, run once in
        /// your environment, or from a file. `~/` is your home; a relative path starts from the top
        /// of the work tree. The final newline is removed.
        "handoff.executor.<name>.secretEnv" | "handoff.subagent.<name>.secretEnv": Secrets, "none", outside
            => |config, given, names| config.executor(given).secret_env.extend(names);
    }
    "What it may reach": {
        /// How workers are confined. `auto`: as far as this machine can. `require`: completely, or
        /// nothing runs. `strict`: like `require`, and workers read only what programs need and
        /// what `readable`, `writable` and `handoff.workspace.link` name. `none`: not at all. The
        /// manifest of an attempt records its confinement.
        "handoff.sandbox" | "handoff.executor.<name>.sandbox" | "handoff.subagent.<name>.sandbox": SANDBOXES, "`auto`", outside unless_below sandbox_of
            => |config, given, value| match given.key.section {
                None => config.sandbox = value,
                Some(_) => config.executor(given).sandbox = Some(value),
            };
        /// The network that workers may reach: `any`, only this attempt's own `loopback`, or
        /// `none`.
        "handoff.network" | "handoff.executor.<name>.network" | "handoff.subagent.<name>.network": NETWORKS, "`any`", outside unless_below network_of
            => |config, given, network| match given.key.section {
                None => config.network = network,
                Some(_) => config.executor(given).network = Some(network),
            };
        /// The worker's home directory: a `private` empty one, or the `real` one without your
        /// secrets.
        "handoff.executor.<name>.home" | "handoff.subagent.<name>.home":
            Choice(&[("private", Home::Private), ("real", Home::Real)]), "`private`", outside
            => |config, given, home| config.executor(given).home = Some(home);
        /// An additional file or folder that the worker may read; each setting adds one. A path in
        /// your home directory appears at the same place in a private one.
        "handoff.executor.<name>.readable" | "handoff.subagent.<name>.readable": File, "none", outside
            => |config, given, path| config.executor(given).readable.push(path);
        /// An additional file or folder that the worker may read and write.
        "handoff.executor.<name>.writable" | "handoff.subagent.<name>.writable": File, "none", outside
            => |config, given, path| config.executor(given).writable.push(path);
        /// A folder or file in your home directory of which each attempt gets a private copy at the
        /// same place; each setting adds one. Nothing that the worker changes there reaches yours.
        /// A known agent has its settings copied, and its login stays yours. Data of
        /// sessions begins empty and is kept for the next attempt of the same item.
        "handoff.executor.<name>.private" | "handoff.subagent.<name>.private": File, "none", outside
            => |config, given, path| config.executor(given).private.push(path);
        /// A file in your home directory that the worker may change because its program renews a
        /// login in it. Of the folder around it, only what `private` names is given.
        "handoff.executor.<name>.login" | "handoff.subagent.<name>.login": File, "none", outside
            => |config, given, path| config.executor(given).login.push(path);
    }
    "How much one attempt may use": {
        /// The memory limit of all processes of an attempt together.
        "handoff.maxMemory" | "handoff.executor.<name>.maxMemory" | "handoff.subagent.<name>.maxMemory": Size, "half of the machine's"
            => |config, given, most| config.limits(given).memory = Some(most);
        /// The maximum number of processes and threads of an attempt.
        "handoff.maxProcesses" | "handoff.executor.<name>.maxProcesses" | "handoff.subagent.<name>.maxProcesses": Number(1, u64::MAX), "`4096`"
            => |config, given, most| config.limits(given).processes = Some(most);
        /// The processor time limit of each process of an attempt.
        "handoff.maxCpuTime" | "handoff.executor.<name>.maxCpuTime" | "handoff.subagent.<name>.maxCpuTime": Seconds, "none"
            => |config, given, most| config.limits(given).cpu_time = Some(most);
        /// The maximum number of open files of each process of an attempt.
        "handoff.maxOpenFiles" | "handoff.executor.<name>.maxOpenFiles" | "handoff.subagent.<name>.maxOpenFiles": Number(1, u64::MAX), "what the system says"
            => |config, given, most| config.limits(given).open_files = Some(most);
        /// The maximum size of a file that an attempt writes.
        "handoff.maxFileSize" | "handoff.executor.<name>.maxFileSize" | "handoff.subagent.<name>.maxFileSize": Size, "none"
            => |config, given, most| config.limits(given).file_size = Some(most);
        /// The disk space limit of an attempt's worktree, temporary files and home. A file counts
        /// as at least 4 KiB.
        "handoff.maxDisk" | "handoff.executor.<name>.maxDisk" | "handoff.subagent.<name>.maxDisk": Size, "`20g`"
            => |config, given, most| config.limits(given).disk = Some(most);
        /// The limit of an attempt's standard output and error together. At most
        /// `handoff.maxProductSize` of it is kept.
        "handoff.maxOutput" | "handoff.executor.<name>.maxOutput" | "handoff.subagent.<name>.maxOutput": Size, "`1g`"
            => |config, given, most| config.limits(given).output = Some(most);
    }
    "How it is driven": {
        /// The number of items that run at once in all runs on this queue.
        "handoff.queue.<name>.concurrency": Number(1, u64::MAX), "the number of cores"
            => |config, given, count| config.queue(given).concurrency = Some(count);
        /// The pattern of runs whose plan names none: `dag`, `pipeline`, `map-reduce` or `quorum`.
        "handoff.queue.<name>.pattern": Text("text"), "`dag`"
            => |config, given, pattern| config.queue(given).pattern = Some(pattern);
        /// A file of rules for all runs on the queue, relative to the top of the work tree.
        "handoff.queue.<name>.rules": File, "none"
            => |config, given, file| config.queue(given).rules = Some(file);
        /// The maximum number of attempts of an item, if neither the item nor its executor sets it.
        "handoff.queue.<name>.maxAttempts": Number(1, 100), "`2`"
            => |config, given, count| config.queue(given).max_attempts = Some(count);
        /// The number of driver crashes during an item after which the item fails.
        "handoff.maxCrashes": Number(0, u64::MAX), "`10`"
            => |config, _, count| config.max_crashes = count;
        /// The time between two signs of life of a driver, for runs that are first shared here.
        "handoff.heartbeat": Span(MIN_HEARTBEAT, MAX_HEARTBEAT), "`5s`"
            => |config, _, time| config.heartbeat = time;
        /// The silence after which others get a driver's items: at least four times the heartbeat.
        "handoff.lostAfter": Span(4 * MIN_HEARTBEAT, MAX_LOST_AFTER), "`60s`"
            => |config, _, time| config.lost_after = time;
        /// The shortest time between two pushes of a driver of a shared run.
        "handoff.via.interval": Span(0, 3_600_000), "`500ms`"
            => |config, _, time| config.via_interval = time;
        /// The time without progress, at most doubled, after which a call to a remote is ended.
        "handoff.remoteTimeout": Span(1000, 86_400_000), "`60s`"
            => |config, _, time| config.remote_timeout = time;
        /// The maximum number of items of a run.
        "handoff.maxItems": Number(0, u64::MAX), "`10000`"
            => |config, _, count| config.max_items = count;
        /// Whether data is flushed to the disk before it is reported as recorded.
        "handoff.durability": Choice(&[("strict", Durability::Strict), ("relaxed", Durability::Relaxed)]), "`strict`"
            => |config, _, durability| config.durability = durability;
    }
    "Worktrees and what comes out of them": {
        /// The folder for worktrees: outside the work tree, or ignored in it.
        "handoff.workspace.root": File, "`git-handoff` in `$XDG_CACHE_HOME` or `~/.cache`", outside
            => |config, _, folder| config.workspace_root = Some(folder);
        /// Keep the worktrees of failed attempts.
        "handoff.workspace.keep": Boolean, "`false`"
            => |config, _, keep| config.keep = keep;
        /// The disk space limit above which used worktrees are removed instead of reused.
        "handoff.workspace.cap": Size, "`10g`"
            => |config, _, bytes| config.workspace_cap = bytes;
        /// A path or pattern of untracked files to copy into every worktree; may be given more than
        /// once. The copies are not part of a patch.
        "handoff.workspace.copy": Pattern, "none"
            => |config, _, pattern| config.workspace_copy.push(pattern);
        /// A path or pattern to link into every worktree instead of copying it. An unconfined
        /// worker can write through the link. A confined one may read what `readable` would allow;
        /// secrets stay hidden.
        "handoff.workspace.link": Pattern, "none"
            => |config, _, pattern| config.workspace_link.push(pattern);
        /// Run the filter `lfs`. If false, worktrees contain the pointer files of git-lfs.
        "handoff.workspace.lfs": Boolean, "`true`"
            => |config, _, lfs| config.workspace_lfs = lfs;
        /// Apply the sparse checkout of the work tree to worktrees.
        "handoff.workspace.sparse": Boolean, "`true`"
            => |config, _, sparse| config.workspace_sparse = sparse;
        /// Give worktrees the branches, tags, remote-tracking refs and remotes of the repository.
        /// `run --reuse` then takes no product that was made with other tags.
        "handoff.workspace.refs": Boolean, "`true`"
            => |config, _, refs| config.workspace_refs = refs;
        /// Check out submodules at the commits that the base records, from local repositories. If
        /// false, their folders are empty. Changes in them are not part of a patch; see
        /// `handoff.submodules`.
        "handoff.workspace.submodules": Boolean, "`false`"
            => |config, _, submodules| config.workspace_submodules = submodules;
        /// The effect of changes inside a checked-out submodule: `refuse` fails the item; `capture`
        /// makes the product `outputs/submodules/<path>.patch`, for `git -C <path> apply --index`.
        "handoff.submodules": Either("refuse", "capture"), "`refuse`"
            => |config, _, capture| config.capture_submodules = capture;
        /// The time limit for capturing the products of an attempt, and again for saving the work
        /// of a failed one.
        "handoff.captureTimeout": Seconds, "`300`"
            => |config, _, seconds| config.capture_timeout = seconds;
        /// The folder in a worktree for the item's inputs.
        "handoff.workspace.inputs": Folder, "`inputs`"
            => |config, _, folder| config.inputs = folder;
        /// The folder in a worktree for the item's outputs. It must differ from the inputs folder.
        "handoff.workspace.outputs": Folder, "`outputs`"
            => |config, _, folder| config.outputs = folder;
        /// The maximum size of a product.
        "handoff.maxProductSize": Size, "`100m`"
            => |config, _, bytes| config.max_product_size = bytes;
    }
    "What must not be stored": {
        /// An exception for something that looks like a credential: its kind as messages name it,
        /// or `kind:pattern` for matching paths, such as `github-pat:tests/fixtures/*`.
        "handoff.secrets.allow": Credential, "none", outside
            => |config, _, allowed| config.secrets_allowed.push(allowed);
    }
    "What agents may ask for over MCP": {
        /// An executor that plans may name if an agent submits them over MCP; may be given more
        /// than once.
        "handoff.mcp.executors": Text("executor"), "every one but `command`", outside
            => |config, _, executor| config.mcp_executors.push(executor);
        /// The name of a remote that agents may push threads to and fetch them from; may be given
        /// more than once.
        "handoff.mcp.remotes": Text("remote"), "none", outside
            => |config, _, remote| config.mcp_remotes.push(remote);
        /// Let `git handoff run` without a name also drive runs that agents submitted, that is,
        /// whose first entry names an `agent:`. A run can always be driven by its name.
        "handoff.mcp.drive": Boolean, "`false`", outside
            => |config, _, drive| config.mcp_drive = drive;
    }
    "What documents and items look like": {
        /// The JSON Schema of documents with this name and version. A relative path starts from the
        /// top of the work tree.
        "handoff.schema.<id>@<version>.path": File, "none"
            => |config, given, path| config.set_schema(&given.name(), Registration::from_setting(given.setting, path));
        /// The shape that a plan's items refer to by this name. A relative path starts from the top
        /// of the work tree.
        "handoff.shape.<id>.path": File, "none"
            => |config, given, path| drop(config.shapes.insert(given.name(), Registration::from_setting(given.setting, path)));
        /// The pipeline that a plan's items refer to by this id, as `git handoff pipeline add` sets
        /// it. A relative path starts from the top of the work tree.
        "handoff.pipeline.<id>.path": File, "none"
            => |config, given, path| drop(config.pipelines.insert(given.name(), Registration::from_setting(given.setting, path)));
    }
    "What is shared": {
        /// The size limit of one fetch or one bundle.
        "handoff.maxFetchSize": Size, "`2g`"
            => |config, _, bytes| config.max_fetch_size = bytes;
    }
    "Anchors": {
        /// The kind of anchor. Another kind is one with a program `git-handoff-anchor-<kind>`.
        "handoff.anchor.<name>.type": Text("`git`, `s3`, `rfc3161` or another kind"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// All but `rfc3161`: the strength of its evidence, as far as you know it.
        "handoff.anchor.<name>.guarantee": Text("`detect`, `external` or `external-immutable`"),
            "`external-immutable` for `s3`, else `external`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// The time limit of one request.
        "handoff.anchor.<name>.timeout": Text("seconds, 1 to 600"), "`30`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// All but `s3`: the address.
        "handoff.anchor.<name>.url": Text("URL, or for `git` also a path"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `git`: a prefix of branch names for the logs.
        "handoff.anchor.<name>.branches": Text("text"), "none: logs lie below `refs/handoff/`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `rfc3161`: a PEM file of CA certificates that time stamps must chain to.
        "handoff.anchor.<name>.ca": Text("path"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the bucket.
        "handoff.anchor.<name>.bucket": Text("text"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3` and other kinds: the prefix of object names.
        "handoff.anchor.<name>.prefix": Text("letters, digits, `-`, `_`, `.`, `/`"), "`git-handoff/`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the address of the service.
        "handoff.anchor.<name>.endpoint": Text("`https://` URL, or one of this machine"), "Amazon's", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the region.
        "handoff.anchor.<name>.region": Text("text"), "`$AWS_REGION`, `$AWS_DEFAULT_REGION` or `us-east-1`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the credentials file.
        "handoff.anchor.<name>.credentials": Text("path"), "`$AWS_SHARED_CREDENTIALS_FILE` or `~/.aws/credentials`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the section of the credentials file.
        "handoff.anchor.<name>.profile": Text("text"), "`$AWS_PROFILE` or `default`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3` and other kinds: the retention period of objects.
        "handoff.anchor.<name>.retentionDays": Text("days, 1 to 36500"), "`3650`", outside
            => |config, given, text| config.set_anchor(given, text);
    }
}
