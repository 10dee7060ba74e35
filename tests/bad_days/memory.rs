//! Small inputs that expand to gigabytes: every command ends with a clear message within a limited
//! address space.

use std::io::Write as _;
use std::process::{Command, Stdio};

use git_handoff::git::store::object_oid;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::{Entry, Event, Product};
use gix::objs::Kind;

use crate::common::chain_builder::{ChainBuilder, point_to};
use crate::common::forge::{Forge, PLAN, relink};
use crate::common::report::find_row;
use crate::common::{Environment, Output, program_path};

/// The address space of the program and of every git that it starts, in KiB: less than half of what
/// `docs/explanation/threat-model.md` allows, and less than [`HUGE`]. A quarter of it is for the
/// file of the program, which is large where it is not optimised.
const ROOM: u64 = 215 << 10;

/// The fixed part of the address space that `docs/explanation/threat-model.md` states, in KiB.
const STATED: u64 = 512 << 10;

/// The bytes of a blob that would not fit into [`ROOM`].
const HUGE: u64 = 216 << 20;

/// The size of a blob that git would build without a limit.
const HUGER: u64 = 520 << 20;

/// The number of bytes that one delta instruction copies.
const UNIT: u64 = 64 << 10;

/// The run that strangers write.
const RUN: &str = "handoff-dag-1";

/// A repository of another person.
struct Stranger {
    forge: Forge,
    env: Environment,
}

impl Stranger {
    fn new() -> Self {
        let env = Environment::empty();
        std::fs::create_dir(env.repo()).unwrap();
        env.git(["init", "--quiet"]).success();
        env.git(["commit", "--quiet", "--allow-empty", "--message", "Start"]).success();
        Self { forge: Forge::new(), env }
    }

    /// Puts a blob of zeros into a pack, of so many units, as a difference from the first of them.
    fn zeros(&self, units: u64) -> Oid {
        let base = vec![0; usize::try_from(UNIT).unwrap()];
        let base_name = object_oid(self.forge.store.hash_kind(), gix::objs::Kind::Blob, &base).unwrap();
        let mut delta = varint(UNIT);
        delta.extend(varint(units * UNIT));
        delta.extend(vec![0x80; usize::try_from(units).unwrap()]);
        self.pack(&[(3, None, &base), (7, Some(base_name), &delta)]);
        let mut hasher = gix::hash::hasher(self.forge.store.hash_kind());
        hasher.update(format!("blob {}\0", units * UNIT).as_bytes());
        (0..units).for_each(|_| hasher.update(&base));
        Oid(hasher.try_finalize().unwrap())
    }

    /// Makes git index a pack of these entries: kind, delta base, and bytes.
    fn pack(&self, entries: &[(u8, Option<Oid>, &[u8])]) {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        for (kind, base, bytes) in entries {
            let mut size = bytes.len() as u64;
            let mut byte = (kind << 4) | (size & 15) as u8;
            size >>= 4;
            while size > 0 {
                pack.push(byte | 0x80);
                byte = (size & 127) as u8;
                size >>= 7;
            }
            pack.push(byte);
            pack.extend(base.iter().flat_map(|base| base.0.as_slice()));
            pack.extend(deflated(bytes));
        }
        let mut hasher = gix::hash::hasher(self.forge.store.hash_kind());
        hasher.update(&pack);
        pack.extend(hasher.try_finalize().unwrap().as_slice());
        let mut git = Command::new("git");
        git.args(["index-pack", "--stdin"]).current_dir(self.forge.path()).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = git.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&pack).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// Stores everything whole and compressed, instead of as differences.
    fn store_whole(&self) {
        self.forge.git(&["-c", "core.bigFileThreshold=1m", "repack", "-adFq"]);
    }

    /// Puts the run into a bundle.
    fn bundle(&self) {
        let path = self.env.path().join("bundle").display().to_string();
        let run = format!("refs/handoff/runs/{RUN}");
        self.forge.git(&["-c", "core.bigFileThreshold=1g", "bundle", "create", "--quiet", &path, &run]);
        let size = std::fs::metadata(path).unwrap().len();
        assert!(size < 4 << 20, "a stranger needs {size} bytes");
    }

    /// Runs the program with little room.
    fn bounded(&self, arguments: &str) -> Output {
        self.bounded_to(ROOM, arguments)
    }

    fn bounded_to(&self, room: u64, arguments: &str) -> Output {
        self.env.shell("repo", &format!("ulimit -v {room}; exec {} {arguments}", program_path()))
    }

    /// Fetches the run with plain git, which checks nothing.
    fn plain_fetch(&self) {
        let path = self.forge.path().display().to_string();
        let run = format!("refs/handoff/runs/{RUN}:refs/handoff/runs/{RUN}");
        // As it comes, and not one object to a file.
        self.env.git(["-c", "fetch.unpackLimit=1", "fetch", "--quiet", &path, &run]).success();
    }

    /// Makes sure that the bundle and the fetched run are refused with a word that says why, and
    /// that nothing dies of either.
    fn is_refused(&self, row: &str, why: &str) {
        self.bundle();
        let output = self.bounded("verify --bundle ../bundle").exit(3);
        assert!(output.stdout.contains(&format!("✗ {row}")) && output.stdout.contains(why), "{output}");
        self.env.git(["remote", "add", "origin", &self.forge.path().display().to_string()]).success();
        let fetch_output = self.bounded("fetch origin").exit(1);
        // Refused for lack of memory, before its kind is known.
        assert!([why, "more memory"].iter().any(|why| fetch_output.stderr.contains(why)), "{fetch_output}");
        assert_eq!(self.env.git(["for-each-ref", "refs/handoff/remotes/origin/runs"]).success(), "");
        self.plain_fetch();
        self.ends_everywhere(why);
    }

    /// Makes sure that no command dies of what plain git took in.
    fn ends_everywhere(&self, why: &str) {
        let output = self.bounded(&format!("verify {RUN}")).exit(3);
        assert!(output.stdout.contains(why), "{output}");
        for command in [
            &format!("verify --json {RUN}"),
            &format!("show {RUN}"),
            &format!("log {RUN}"),
            &format!("status {RUN}"),
            &format!("cat {RUN} plan.json"),
            "status",
            "runs",
            "doctor",
        ] {
            let command_output = self.bounded(command);
            assert!(command_output.status.is_some_and(|code| code < 64), "{command}: {command_output}");
        }
    }
}

/// Returns bytes as zlib stores them without compressing them.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let chunks: Vec<&[u8]> = bytes.chunks(0xffff).collect();
    for (at, chunk) in chunks.iter().enumerate() {
        let length = u16::try_from(chunk.len()).unwrap();
        out.push(u8::from(at + 1 == chunks.len()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(*chunk);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    out.extend(((b << 16) | a).to_be_bytes());
    out
}

/// Returns a number as differences begin with it.
fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number > 127 {
        out.push((number & 127) as u8 | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap());
    out
}

/// A run in which the file that ends like this is another.
fn with(stranger: &Stranger, file: &str, oid: Oid) {
    // The delta base of the zeros is part of the run, so that the delta is sent.
    let base = vec![0; usize::try_from(UNIT).unwrap()];
    let mut chain_builder = ChainBuilder::submit(&stranger.forge, PLAN);
    chain_builder.fire("edit-a");
    chain_builder.done("edit-a", &[("patch", &base)]);
    chain_builder.fire("edit-b");
    chain_builder.done("edit-b", &[]);
    chain_builder.seal();
    let draft = chain_builder.drafts.iter_mut().find(|draft| draft.event.files().contains_key(file)).unwrap();
    point_to(&mut draft.event, file, oid);
    stranger.forge.finish(chain_builder);
}

#[test]
fn a_plan_of_gigabytes_is_refused_before_it_is_read() {
    let stranger = Stranger::new();
    let huge = stranger.zeros(HUGE / UNIT);
    with(&stranger, "plan.json", huge);
    stranger.store_whole();
    stranger.is_refused("plan", "at most 33554432 are read");
}

#[test]
fn so_is_a_manifest_that_has_room_enough() {
    let stranger = Stranger::new();
    let large = stranger.zeros((64 << 20) / UNIT);
    with(&stranger, "manifest.json", large);
    stranger.is_refused("manifest", "at most 16777216 are read");
}

#[test]
fn fetch_rejects_deltas_that_expand_too_far() {
    let stranger = Stranger::new();
    let huge = stranger.zeros(HUGE / UNIT);
    with(&stranger, "plan.json", huge);
    stranger.bundle();
    let why = "more memory";
    let output = stranger.bounded("verify --bundle ../bundle").exit(1);
    assert!(output.stderr.contains(why), "{output}");
    stranger.env.git(["remote", "add", "origin", &stranger.forge.path().display().to_string()]).success();
    let fetch_output = stranger.bounded("fetch origin").exit(1);
    assert!(fetch_output.stdout.contains(why) || fetch_output.stderr.contains(why), "{fetch_output}");
    stranger.plain_fetch();
    stranger.ends_everywhere("at most 33554432 are read");
}

#[test]
fn git_is_bounded_where_nothing_else_bounds_it() {
    let stranger = Stranger::new();
    let huge = stranger.zeros(HUGER / UNIT);
    with(&stranger, "plan.json", huge);
    stranger.bundle();
    let output = stranger.env.handoff(["verify", "--bundle", "../bundle"]).exit(1);
    insta::assert_snapshot!(output.stderr, @"error: the objects in ../bundle have more than 349414400 bytes, the limit for a file of its size");
}

#[test]
fn a_product_of_any_size_is_hashed_piece_by_piece() {
    let stranger = Stranger::new();
    let units = HUGE / UNIT;
    let oid = stranger.zeros(units);
    let mut hasher = git_handoff::model::digest::Hasher::default();
    (0..units).for_each(|_| hasher.update(&vec![0; usize::try_from(UNIT).unwrap()]));
    let sha256 = hasher.finish().0;
    let mut chain_builder = ChainBuilder::submit(&stranger.forge, PLAN);
    chain_builder.fire("edit-a");
    // The delta base of the zeros is part of the run, so that the delta is sent.
    let base = vec![0; usize::try_from(UNIT).unwrap()];
    chain_builder.done("edit-a", &[("patch", &base), ("outputs/huge", b"")]);
    let draft = chain_builder.drafts.last_mut().unwrap();
    let Event::ItemReconciled(e) = &mut draft.event else { panic!() };
    let product = Product { sha256, oid, size: HUGE };
    *e.products.get_mut(&"outputs/huge".parse().unwrap()).unwrap() = product;
    chain_builder.fire("edit-b");
    chain_builder.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    chain_builder.seal();
    stranger.forge.finish(chain_builder);
    stranger.plain_fetch();
    let output = stranger.bounded(&format!("verify {RUN}"));
    insta::assert_snapshot!(find_row(&output.stdout, "content"), @"✗ content    outputs/huge of edit-a: object 4efb1bd14037e511068c862b57c4d5ed9b0d2d9f has 226492416 bytes and is stored as a delta, which needs more memory than is available; `git -c core.bigFileThreshold=4m repack -adF` stores it whole");
    stranger.env.git(["-c", "core.bigFileThreshold=4m", "repack", "-adFq"]).success();
    let unbounded_output = stranger.bounded(&format!("verify {RUN}"));
    insta::assert_snapshot!(find_row(&unbounded_output.stdout, "content"), @"✓ content    3 products and 1 artifact, 216.1 MiB re-hashed");
    stranger.store_whole();
    stranger.bundle();
    let bundle_output = stranger.bounded("verify --bundle ../bundle");
    insta::assert_snapshot!(find_row(&bundle_output.stdout, "content"), @"✓ content    3 products and 1 artifact, 216.1 MiB re-hashed");
}

#[test]
fn a_commit_with_a_message_of_gigabytes_is_refused() {
    let stranger = Stranger::new();
    let chain = stranger.forge.honest();
    let last = chain.links.last().unwrap();
    let head =
        format!("tree {}\nparent {}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\n", last.tree, last.commit);
    let base = [head.as_bytes(), &vec![b'x'; usize::try_from(UNIT).unwrap()]].concat();
    let name = gix::objs::compute_hash(gix::hash::Kind::Sha1, Kind::Commit, &base).unwrap();
    // It continues its own delta base, so that this is sent, too.
    let own = head.replace(&last.commit.to_string(), &name.to_string());
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    let units = (128 << 20) / UNIT;
    let size = base.len() as u64 + units * UNIT;
    // Its headers as they are, then the message again and again.
    let mut delta = [varint(base.len() as u64), varint(size)].concat();
    for part in own.as_bytes().chunks(127) {
        delta.push(u8::try_from(part.len()).unwrap());
        delta.extend(part);
    }
    let length = u8::try_from(head.len()).unwrap();
    (0..=units).for_each(|_| delta.extend([0x81, length]));
    hasher.update(format!("commit {size}\0").as_bytes());
    hasher.update(own.as_bytes());
    (0..=units).for_each(|_| hasher.update(&base[head.len()..]));
    let commit = Oid(hasher.try_finalize().unwrap());
    stranger.pack(&[(1, None, &base), (7, Some(Oid(name)), &delta)]);
    stranger.forge.point_at(commit);
    stranger.is_refused("chain", "at most 33554432 are read");
}

#[test]
fn entries_that_come_to_more_than_they_take_are_not_read_on() {
    let stranger = Stranger::new();
    let chain = stranger.forge.honest();
    // Each is one that may be; git stores each as a difference of a few bytes from the next.
    let actor = "x".repeat(12 << 20);
    let mut entries: Vec<(Entry, Oid)> = Vec::new();
    for link in chain.links.into_iter().take(4) {
        let prev = entries.last().map(|(before, _)| before.hash());
        entries.push((Entry { actor: actor.clone(), prev, ..link.entry }, link.tree));
    }
    stranger.forge.point_at(relink(&stranger.forge, &entries));
    stranger.forge.git(&["-c", "pack.threads=1", "repack", "-adfq", "--depth=50", "--window=10"]);
    stranger.bundle();
    let output = stranger.bounded_to(STATED, "verify --bundle ../bundle").exit(3);
    insta::assert_snapshot!(find_row(&output.stdout, "chain"), @"✗ chain      the chain: the objects have 100668102 bytes so far, more than 64 MiB and 1024 times their stored size");
}
