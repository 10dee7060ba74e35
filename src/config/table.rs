//! Every setting: what it does, its name, what its value may be, what holds without it, and where it goes.
//!
//! This is the one place that a setting is added to, besides the field that it fills. `docs/settings.md` and the manual page are
//! written from it.

use super::entry::{Entry, Group};
use super::kind::{
    Boolean, Choice, Credential, File, Folder, Kind as _, Number, Read as _, Seconds, Size, Text, Variable, Words,
};
use super::registration::Registration;
use super::secret_env::Secrets;
use crate::git::store::Durability;

/// Makes the table. An entry reads: what it does, its names, the kind of its value, its default; `outside` where it decides whom
/// or what to trust, so that it does not count in a file inside the work tree; and how its value is taken.
macro_rules! settings {
    ($($title:literal: { $(
        $(#[doc = $sentence:literal])+
        $($name:literal)|+: $kind:expr, $default:literal $(, $outside:ident)?
            => |$config:pat_param, $given:pat_param, $value:pat_param| $take:expr;
    )+ })+) => {
        /// Every setting, in the order in which they are documented.
        pub const SETTINGS: &[Group] = &[$(Group { title: $title, entries: &[$(Entry {
            names: &[$($name),+],
            sentence: concat!($($sentence),+).trim_ascii(),
            default: $default,
            tracked: settings!(tracked $($outside)?),
            says: || $kind.says(),
            set: |config, given| {
                let $value = $kind.read(given.setting)?;
                let ($config, $given) = (config, given);
                $take;
                Ok(())
            },
        }),+] }),+];
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
        /// The command line that does an item, run in the item's worktree by `sh -c`.
        "handoff.executor.<name>.command" | "handoff.subagent.<name>.command": Text("command"), "none"
            => |config, given, line| config.executor(given).command = Some(line);
        /// The command line that runs before it; where it fails, the attempt fails.
        "handoff.executor.<name>.setup" | "handoff.subagent.<name>.setup": Text("command"), "none"
            => |config, given, line| config.executor(given).setup = Some(line);
        /// The command line that runs after it; its end is recorded as `verify.passed`.
        "handoff.executor.<name>.verify" | "handoff.subagent.<name>.verify": Text("command"),
            "none: what the worker says of itself"
            => |config, given, line| config.executor(given).verify = Some(line);
        /// After how long an attempt is ended; what the item says counts before it.
        "handoff.executor.<name>.timeout" | "handoff.subagent.<name>.timeout": Seconds, "`7200`"
            => |config, given, seconds| config.executor(given).timeout = Some(seconds);
        /// How many attempts an item gets; what the item says counts before it.
        "handoff.executor.<name>.maxAttempts" | "handoff.subagent.<name>.maxAttempts": Number(1, 100), "what the queue says"
            => |config, given, count| config.executor(given).max_attempts = Some(count);
        /// An environment variable that is set for it.
        "handoff.executor.<name>.env" | "handoff.subagent.<name>.env": Variable, "none"
            => |config, given, (name, value)| drop(config.executor(given).env.insert(name, value));
        /// The environment variables of yours that it sees besides the few that all see.
        "handoff.executor.<name>.passEnv" | "handoff.subagent.<name>.passEnv": Words, "none"
            => |config, given, names| config.executor(given).pass_env.extend(names);
        /// The same for secrets: their values are taken out of transcripts before those are hashed, and no product may have one in
        /// it. A value can also come from a command, run once by `sh -c` with your environment, or from a file; `~/` is your home,
        /// and a relative path starts from the top of the work tree. The last line end is no part of it.
        "handoff.executor.<name>.secretEnv" | "handoff.subagent.<name>.secretEnv": Secrets, "none"
            => |config, given, names| config.executor(given).secret_env.extend(names);
    }
    "How it is driven": {
        /// How many items run at the same time. Any setting of a queue makes its name known.
        "handoff.queue.<name>.concurrency": Number(1, u64::MAX), "the number of cores"
            => |config, given, count| config.queue(given).concurrency = Some(count);
        /// The word for how its runs are driven, which they record.
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
        "handoff.workspace.root": File, "`git-handoff` in `$XDG_CACHE_HOME` or `~/.cache`"
            => |config, _, folder| config.workspace_root = Some(folder);
        /// Whether the worktrees of attempts that failed are left where they are.
        "handoff.workspace.keep": Boolean, "`false`"
            => |config, _, keep| config.keep = keep;
        /// The folder in a worktree that holds what an item needs.
        "handoff.workspace.inputs": Folder, "`inputs`"
            => |config, _, folder| config.inputs = folder;
        /// The folder in a worktree that an item writes what it hands over to.
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
    "What documents and items look like": {
        /// The JSON Schema of documents of this name and version; a relative path starts from the top of the work tree.
        "handoff.schema.<id>@<version>.path": File, "none"
            => |config, given, path| config.set_schema(&given.name(), Registration::of(given.setting, path));
        /// The shape that a plan's items refer to by this name; a relative path starts from the top of the work tree.
        "handoff.shape.<id>.path": File, "none"
            => |config, given, path| drop(config.shapes.insert(given.name(), Registration::of(given.setting, path)));
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
