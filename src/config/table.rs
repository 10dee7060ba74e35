//! Every setting: what it does, its name, what its value may be, what holds without it, and where it goes.
//!
//! This is the one place that a setting is added to, besides the field that it fills. `docs/settings.md` and the manual page are
//! written from it.

use super::OnVerifyFail;
use super::entry::{Entry, Group};
use super::kind::{
    Boolean, Choice, Credential, Either, File, Folder, Kind as _, Number, Pattern, Read as _, Seconds, Size, Text,
    Variable, Words,
};
use super::registration::Registration;
use super::secret_env::Secrets;
use crate::git::store::Durability;
use crate::model::confinement::{Asked, Home, Network};

/// The words for how much confines workers.
const SANDBOXES: Choice<Asked> =
    Choice(&[("auto", Asked::Auto), ("require", Asked::Require), ("strict", Asked::Strict), ("none", Asked::None)]);

/// The words for whom they may speak to.
const NETWORKS: Choice<Network> =
    Choice(&[("any", Network::Any), ("loopback", Network::Loopback), ("none", Network::None)]);

/// The words for what a verify command means that does not pass.
const CHECKS: Choice<OnVerifyFail> = Choice(&[("fail", OnVerifyFail::Fail), ("keep", OnVerifyFail::Keep)]);

/// Makes the table. An entry reads: what it does, its names, the kind of its value, its default; `outside` where it decides whom
/// or what to trust, so that it does not count in a file inside the work tree, but for a value that is no less strict than what holds
/// without it, as what stands behind `unless_below` says; and how its value is taken.
macro_rules! settings {
    ($($title:literal: { $(
        $(#[doc = $sentence:literal])+
        $($name:literal)|+: $kind:expr, $default:literal $(, $outside:ident $(unless_below $held:ident)?)?
            => |$config:pat_param, $given:pat_param, $value:pat_param| $take:expr;
    )+ })+) => {
        /// Every setting, in the order in which they are documented.
        pub const SETTINGS: &[Group] = &[$(Group { title: $title, entries: &[$(Entry {
            names: &[$($name),+],
            sentence: concat!($($sentence),+).trim_ascii(),
            default: $default,
            tracked: settings!(tracked $($outside)?),
            asks_no_less: settings!(stricter $kind $($(, $held)?)?),
            says: || $kind.says(),
            set: |config, given| {
                let $value = $kind.read(given.setting)?;
                let ($config, $given) = (config, given);
                $take;
                Ok(())
            },
        }),+] }),+];
    };
    (stricter $kind:expr) => { None };
    (stricter $kind:expr, $held:ident) => {
        // What makes no sense asks for nothing.
        Some(|config, given| $kind.read(given.setting).is_ok_and(|value| value >= config.$held(given)))
    };
    (tracked) => { true };
    (tracked outside) => { false };
}

settings! {
    "Whom to trust": {
        /// The key that entries are signed with: its file, or its public half as git takes it (`ssh-…`, `key::…`) where an agent has
        /// the other. An empty one asks for the repository's own.
        "handoff.signingKey": Text("path or public key"),
            "`user.signingKey` where `gpg.format` is `ssh`, else the repository's own, made on first use", outside
            => |config, _, key| config.signing_key = Some(key);
        /// The allowed-signers file: with it, `verify` trusts no other key.
        "handoff.signers": File, "none: the key that you sign with is known, and no other is refused", outside
            => |config, _, file| config.signers = Some(file);
        /// The file of the keys that are trusted no more.
        "handoff.revoked": File, "none", outside
            => |config, _, file| config.revoked = Some(file);
    }
    "Who does the work": {
        /// The command line that does an item, run in the item's worktree by `sh -c`. Files that a command line names by an absolute path may be
        /// read, unless it stands in a file inside the work tree.
        "handoff.executor.<name>.command" | "handoff.subagent.<name>.command": Text("command"), "none"
            => |config, given, line| config.set_line(given, |executor| &mut executor.command, line);
        /// The command line that runs before it; where it fails, the attempt fails.
        "handoff.executor.<name>.setup" | "handoff.subagent.<name>.setup": Text("command"), "none"
            => |config, given, line| config.set_line(given, |executor| &mut executor.setup, line);
        /// The command line that runs after it; its end is recorded as `verify.passed`. Where it does not pass, the attempt fails.
        "handoff.executor.<name>.verify" | "handoff.subagent.<name>.verify": Text("command"),
            "none: what the worker says of itself"
            => |config, given, line| config.set_line(given, |executor| &mut executor.verify, line);
        /// What it means that this does not pass: `fail` fails the attempt, which is tried again like any other; `keep` keeps the
        /// product and marks the item red.
        "handoff.executor.<name>.onVerifyFail" | "handoff.subagent.<name>.onVerifyFail": CHECKS, "`fail`"
            => |config, given, meaning| config.executor(given).on_verify_fail = Some(meaning);
        /// After how long an attempt is ended; what the item says counts before it.
        "handoff.executor.<name>.timeout" | "handoff.subagent.<name>.timeout": Seconds, "`3600`"
            => |config, given, seconds| config.executor(given).timeout = Some(seconds);
        /// How many attempts an item gets; what the item says counts before it.
        "handoff.executor.<name>.maxAttempts" | "handoff.subagent.<name>.maxAttempts": Number(1, 100), "what the queue says"
            => |config, given, count| config.executor(given).max_attempts = Some(count);
        /// An environment variable that is set for it.
        "handoff.executor.<name>.env" | "handoff.subagent.<name>.env": Variable, "none"
            => |config, given, (name, value)| drop(config.executor(given).env.insert(name, value));
        /// The environment variables of yours that it sees besides the few that all see.
        "handoff.executor.<name>.passEnv" | "handoff.subagent.<name>.passEnv": Words, "none", outside
            => |config, given, names| config.executor(given).pass_env.extend(names);
        /// The same for secrets: their values are taken out of transcripts before those are hashed, and no product may have one in
        /// it. A value can also come from a command, run once by `sh -c` with your environment, or from a file; `~/` is your home,
        /// and a relative path starts from the top of the work tree. The last line end is no part of it.
        "handoff.executor.<name>.secretEnv" | "handoff.subagent.<name>.secretEnv": Secrets, "none", outside
            => |config, given, names| config.executor(given).secret_env.extend(names);
    }
    "What it may reach": {
        /// What confines workers: whatever this machine can enforce, all of it or nothing runs, all of it and of files only what programs
        /// need to run and what `readable`, `writable` and `handoff.workspace.link` name, nothing. What one attempt had is in its manifest.
        "handoff.sandbox" | "handoff.executor.<name>.sandbox" | "handoff.subagent.<name>.sandbox": SANDBOXES, "`auto`", outside unless_below sandbox_of
            => |config, given, asked| match given.key.section {
                None => config.sandbox = asked,
                Some(_) => config.executor(given).sandbox = Some(asked),
            };
        /// Whom workers may speak to: everybody, only themselves, nobody.
        "handoff.network" | "handoff.executor.<name>.network" | "handoff.subagent.<name>.network": NETWORKS, "`any`", outside unless_below network_of
            => |config, given, network| match given.key.section {
                None => config.network = network,
                Some(_) => config.executor(given).network = Some(network),
            };
        /// Which home directory it has: one of its own, or yours without what is secret in it.
        "handoff.executor.<name>.home" | "handoff.subagent.<name>.home":
            Choice(&[("private", Home::Private), ("real", Home::Real)]), "`private`", outside
            => |config, given, home| config.executor(given).home = Some(home);
        /// A file or folder that it may read besides what every worker may; each setting adds one. One of your home directory is found at the
        /// same place below a private one.
        "handoff.executor.<name>.readable" | "handoff.subagent.<name>.readable": File, "none", outside
            => |config, given, path| config.executor(given).readable.push(path);
        /// The same for one that it may write as well.
        "handoff.executor.<name>.writable" | "handoff.subagent.<name>.writable": File, "none", outside
            => |config, given, path| config.executor(given).writable.push(path);
    }
    "How much one attempt may use": {
        /// The memory of all processes of one attempt together.
        "handoff.maxMemory" | "handoff.executor.<name>.maxMemory" | "handoff.subagent.<name>.maxMemory": Size, "half of the machine's"
            => |config, given, most| config.limits(given).memory = Some(most);
        /// How many processes and threads one attempt may have at a time.
        "handoff.maxProcesses" | "handoff.executor.<name>.maxProcesses" | "handoff.subagent.<name>.maxProcesses": Number(1, u64::MAX), "`4096`"
            => |config, given, most| config.limits(given).processes = Some(most);
        /// The processor time of each process of one attempt.
        "handoff.maxCpuTime" | "handoff.executor.<name>.maxCpuTime" | "handoff.subagent.<name>.maxCpuTime": Seconds, "none"
            => |config, given, most| config.limits(given).cpu_time = Some(most);
        /// How many files each process of one attempt may have open.
        "handoff.maxOpenFiles" | "handoff.executor.<name>.maxOpenFiles" | "handoff.subagent.<name>.maxOpenFiles": Number(1, u64::MAX), "what the system says"
            => |config, given, most| config.limits(given).open_files = Some(most);
        /// How large a file one attempt may write.
        "handoff.maxFileSize" | "handoff.executor.<name>.maxFileSize" | "handoff.subagent.<name>.maxFileSize": Size, "none"
            => |config, given, most| config.limits(given).file_size = Some(most);
        /// What the worktree, the temporary files and the home of one attempt may take on the disk, where each file counts 4 KiB at least.
        "handoff.maxDisk" | "handoff.executor.<name>.maxDisk" | "handoff.subagent.<name>.maxDisk": Size, "`20g`"
            => |config, given, most| config.limits(given).disk = Some(most);
        /// What one attempt may write to its standard output and error; of what it writes, as much is kept as a product may have.
        "handoff.maxOutput" | "handoff.executor.<name>.maxOutput" | "handoff.subagent.<name>.maxOutput": Size, "`1g`"
            => |config, given, most| config.limits(given).output = Some(most);
    }
    "How it is driven": {
        /// How many items run at the same time, in all runs of the repository on this queue. Any setting of a queue makes its name known.
        "handoff.queue.<name>.concurrency": Number(1, u64::MAX), "the number of cores"
            => |config, given, count| config.queue(given).concurrency = Some(count);
        /// How its runs grow, where their plans do not say so: `dag`, `pipeline`, `map-reduce` or `quorum`; see patterns.md.
        "handoff.queue.<name>.pattern": Text("text"), "`dag`"
            => |config, given, pattern| config.queue(given).pattern = Some(pattern);
        /// The file of the rules that it adds to those of its runs, relative to the top of the work tree.
        "handoff.queue.<name>.rules": File, "none"
            => |config, given, file| config.queue(given).rules = Some(file);
        /// How many attempts an item gets where neither it nor its executor says so.
        "handoff.queue.<name>.maxAttempts": Number(1, 100), "`2`"
            => |config, given, count| config.queue(given).max_attempts = Some(count);
        /// How many attempts of an item a crash of the driver may take before the item fails.
        "handoff.maxCrashes": Number(0, u64::MAX), "`10`"
            => |config, _, count| config.max_crashes = count;
        /// How many items a run may have.
        "handoff.maxItems": Number(0, u64::MAX), "`10000`"
            => |config, _, count| config.max_items = count;
        /// Whether what was written is on the disk before it counts.
        "handoff.durability": Choice(&[("strict", Durability::Strict), ("relaxed", Durability::Relaxed)]), "`strict`"
            => |config, _, durability| config.durability = durability;
    }
    "Worktrees and what comes out of them": {
        /// The folder that worktrees are made in: outside the work tree, or ignored in it.
        "handoff.workspace.root": File, "`git-handoff` in `$XDG_CACHE_HOME` or `~/.cache`", outside
            => |config, _, folder| config.workspace_root = Some(folder);
        /// Whether the worktrees of attempts that failed are left where they are.
        "handoff.workspace.keep": Boolean, "`false`"
            => |config, _, keep| config.keep = keep;
        /// How much worktrees may take on the disk before spent ones are removed instead of being used again.
        "handoff.workspace.cap": Size, "`10g`"
            => |config, _, bytes| config.workspace_cap = bytes;
        /// What is copied from the work tree into every worktree, tracked files excepted; may be given more than once. None of it
        /// is part of a patch.
        "handoff.workspace.copy": Pattern, "none"
            => |config, _, pattern| config.workspace_copy.push(pattern);
        /// What every worktree has a symbolic link to instead of a copy; where nothing confines a worker, it writes through it,
        /// and where something does, it finds there what it would by `readable`: no secret.
        "handoff.workspace.link": Pattern, "none"
            => |config, _, pattern| config.workspace_link.push(pattern);
        /// Whether the filter `lfs` runs: without it worktrees hold the pointers of git-lfs.
        "handoff.workspace.lfs": Boolean, "`true`"
            => |config, _, lfs| config.workspace_lfs = lfs;
        /// Whether worktrees leave out what the sparse checkout of the work tree leaves out.
        "handoff.workspace.sparse": Boolean, "`true`"
            => |config, _, sparse| config.workspace_sparse = sparse;
        /// Give worktrees the branches, the tags, the remote-tracking refs and the remotes of the repository. `run --reuse` takes no
        /// product that was made with other tags; with `false` it does not depend on them.
        "handoff.workspace.refs": Boolean, "`true`"
            => |config, _, refs| config.workspace_refs = refs;
        /// Whether submodules are checked out, at the commits that the base names and from what is on this machine; without it their
        /// folders have no files. What becomes of their files is no part of a patch: `handoff.submodules` says what is.
        "handoff.workspace.submodules": Boolean, "`false`"
            => |config, _, submodules| config.workspace_submodules = submodules;
        /// What an item's change to the files of a submodule is that is checked out: a reason for the item to fail, or a product,
        /// `outputs/submodules/<path>.patch`, which `git -C <path> apply --index` takes.
        "handoff.submodules": Either("refuse", "capture"), "`refuse`"
            => |config, _, capture| config.capture_submodules = capture;
        /// How long it may take to take what an attempt left, once that has ended, and as long again to save the work of one that failed.
        "handoff.captureTimeout": Seconds, "`300`"
            => |config, _, seconds| config.capture_timeout = seconds;
        /// The folder in a worktree that holds what an item needs.
        "handoff.workspace.inputs": Folder, "`inputs`"
            => |config, _, folder| config.inputs = folder;
        /// The folder in a worktree that an item writes what it hands over to; not the one that holds what it needs.
        "handoff.workspace.outputs": Folder, "`outputs`"
            => |config, _, folder| config.outputs = folder;
        /// How large a product may be.
        "handoff.maxProductSize": Size, "`100m`"
            => |config, _, bytes| config.max_product_size = bytes;
    }
    "What must not be stored": {
        /// What is stored and handed on although it looks like a credential: a shape, as messages name it, or a shape in files whose
        /// path is like a pattern, in which `*` stands for anything: `github-pat:tests/fixtures/*`.
        "handoff.secrets.allow": Credential, "none", outside
            => |config, _, allowed| config.secrets_allowed.push(allowed);
    }
    "What agents may ask for over MCP": {
        /// An executor that plans may name which are submitted by the tool `submit`; may be given several times. Without it, every one but `command`.
        "handoff.mcp.executors": Text("executor"), "every one but `command`", outside
            => |config, _, executor| config.mcp_executors.push(executor);
        /// A remote that agents may push threads to and fetch threads from, by its name; may be given several times.
        "handoff.mcp.remotes": Text("remote"), "none", outside
            => |config, _, remote| config.mcp_remotes.push(remote);
        /// Whether `git handoff run` without a name drives the runs that agents submitted, too: those whose first entry is in the name of
        /// an `agent:`. By its name each can be driven.
        "handoff.mcp.drive": Boolean, "`false`", outside
            => |config, _, drive| config.mcp_drive = drive;
    }
    "What documents and items look like": {
        /// The JSON Schema of documents of this name and version; a relative path starts from the top of the work tree.
        "handoff.schema.<id>@<version>.path": File, "none"
            => |config, given, path| config.set_schema(&given.name(), Registration::of(given.setting, path));
        /// The shape that a plan's items refer to by this name; a relative path starts from the top of the work tree.
        "handoff.shape.<id>.path": File, "none"
            => |config, given, path| drop(config.shapes.insert(given.name(), Registration::of(given.setting, path)));
        /// The pipeline that a plan's items refer to by this id, as `git handoff pipeline add` sets it; a relative path starts from the top
        /// of the work tree.
        "handoff.pipeline.<id>.path": File, "none"
            => |config, given, path| drop(config.pipelines.insert(given.name(), Registration::of(given.setting, path)));
    }
    "What is shared": {
        /// The most that one fetch or one bundle may bring.
        "handoff.maxFetchSize": Size, "`2g`"
            => |config, _, bytes| config.max_fetch_size = bytes;
    }
    "Anchors": {
        /// What it is: another repository, a bucket, or a time-stamping authority.
        "handoff.anchor.<name>.type": Text("`git`, `s3` or `rfc3161`"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `git`, `s3`: how strong its word is, as you know it.
        "handoff.anchor.<name>.guarantee": Text("`detect`, `external` or `external-immutable`"),
            "`external` for `git`, `external-immutable` for `s3`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// How long one question to it may take.
        "handoff.anchor.<name>.timeout": Text("seconds, 1 to 600"), "`30`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `git`, `rfc3161`: where it is.
        "handoff.anchor.<name>.url": Text("URL, or for `git` also a path"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `git`: the prefix of the branches that hold the logs.
        "handoff.anchor.<name>.branches": Text("text"), "none: logs lie below `refs/handoff/`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `rfc3161`: the file of CA certificates in PEM that its time stamps must lead to.
        "handoff.anchor.<name>.ca": Text("path"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the bucket that objects are put into.
        "handoff.anchor.<name>.bucket": Text("text"), "none: there must be one", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the prefix of the objects' names.
        "handoff.anchor.<name>.prefix": Text("letters, digits, `-`, `_`, `.`, `/`"), "`git-handoff/`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the service.
        "handoff.anchor.<name>.endpoint": Text("`https://` URL, or one of this machine"), "Amazon's", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the region of the bucket.
        "handoff.anchor.<name>.region": Text("text"), "`$AWS_REGION`, `$AWS_DEFAULT_REGION` or `us-east-1`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the file of credentials.
        "handoff.anchor.<name>.credentials": Text("path"), "`$AWS_SHARED_CREDENTIALS_FILE` or `~/.aws/credentials`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: the section of the credentials file.
        "handoff.anchor.<name>.profile": Text("text"), "`$AWS_PROFILE` or `default`", outside
            => |config, given, text| config.set_anchor(given, text);
        /// `s3`: for how long an object is locked when it is put.
        "handoff.anchor.<name>.retentionDays": Text("days, 1 to 36500"), "`3650`", outside
            => |config, given, text| config.set_anchor(given, text);
    }
}
