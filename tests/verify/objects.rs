//! Tampering with what lies on disk: objects, refs, and the files by which git can be told to look
//! elsewhere.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::common::chain_builder::{BuiltChain, ChainBuilder, point_to};
use crate::common::forge::{Forge, assert_fails, assert_intact, assert_says, blob, relink, row_of};

use git_handoff::git::codec;
use git_handoff::git::refs;
use git_handoff::model::digest::Oid;
use git_handoff::model::entry::{Entry, Event};
use git_handoff::model::time::Moment;
use git_handoff::verify::{Chain, Code, Error, Failure, State, check_incoming};

const RUN: &str = "refs/handoff/runs/handoff-dag-1";

fn entries(chain: &BuiltChain) -> Vec<(Entry, Oid)> {
    chain.links.iter().map(|link| (link.entry.clone(), link.tree)).collect()
}

type Bend = fn(&mut Vec<(Entry, Oid)>);

#[test]
fn entries_cannot_be_dropped_doubled_or_moved() {
    let forge = Forge::new();
    let chain = forge.honest();
    let honest = entries(&chain);
    let try_with = |bend: Bend, expected: &str| {
        let mut bent = honest.clone();
        bend(&mut bent);
        forge.point_at(relink(&forge, &bent));
        assert_says(&forge.verify(), "chain", expected);
    };
    try_with(|e| drop(e.remove(2)), "entry 3 stands where entry 2 belongs");
    try_with(|e| e.insert(2, e[2].clone()), "entry 2 stands where entry 3 belongs");
    try_with(|e| e.swap(2, 3), "entry 3 stands where entry 2 belongs");
    try_with(|e| e[3].0.prev = e[1].0.prev, "entry 3 does not name the hash of the entry before it");
    try_with(|e| e[5].0.at = Moment::from_millis(0), "entry 5 is dated before the entry before it");
    try_with(|e| e[4].0.actor = "human:eve".to_owned(), "entry 5 does not name the hash of the entry before it");
    forge.point_at(relink(&forge, &honest));
    assert_intact(&forge.verify());
}

#[test]
fn a_cut_back_run_contradicts_the_log() {
    let forge = Forge::new();
    let chain = forge.honest();
    forge.point_at(chain.links[4].commit);
    let report = forge.verify();
    assert_says(&report, "anchor", "refs/handoff/logs/SHA256%3A… says that the run was sealed after 5 entries");
    assert_eq!((report.failure, report.headline), (Some(Failure::Root), "TAMPERED"));
}

#[test]
fn a_commit_is_byte_for_byte_what_its_entry_makes() {
    let forge = Forge::new();
    let chain = forge.honest();
    let tip = chain.head.commit.unwrap();
    let raw = String::from_utf8(forge.store.read(tip).unwrap().1).unwrap();
    let try_with = |commit_text: String, expected: &str| {
        forge.point_at(forge.store.write(gix::objs::Kind::Commit, commit_text.as_bytes()).unwrap());
        assert_says(&forge.verify(), "chain", expected);
    };
    try_with(
        raw.replace("author human:ada", "author human:eve"),
        "commit …: the commit's bytes differ from those that its entry determines",
    );
    try_with(
        raw.replace(" +0000\ngpgsig", " +0000\nencoding UTF-8\ngpgsig"),
        "commit …: the commit's bytes differ from those that its entry determines",
    );
    try_with(raw.replace("{\n \"actor\":", "{ \"actor\":"), "commit …: the entry is not in canonical form");
    try_with(
        raw.replace("\n\nrun.sealed", "\n\nrun.SEALED"),
        "commit …: the commit's bytes differ from those that its entry determines",
    );
    try_with(
        raw.replace("\"v\": 2", "\"v\": 3"),
        "commit …: the entry has format version 3; this program reads version 2",
    );
    for number in ["1152921504606846976", "18446744073709551615", "1e400", "5.0", "-5", "null"] {
        let raw = raw.replace("\"seq\": 5", &format!("\"seq\": {number}"));
        forge.point_at(forge.store.write(gix::objs::Kind::Commit, raw.as_bytes()).unwrap());
        assert_fails(&forge.verify(), "chain", "entry");
    }
    for number in ["9007199254740992", "9007199254740993", "-9007199254740992", "1.0", "5e0", "0.5"] {
        try_with(
            raw.replace("\"seq\": 5", &format!("\"seq\": {number}")),
            "commit …: a number of the entry is no integer within ±(2^53−1)",
        );
    }
    let parent = format!("parent {}\n", chain.links[4].commit);
    try_with(raw.replace(&parent, &format!("{parent}parent {}\n", chain.links[3].commit)), "entry 5 has 2 parents");
}

/// Writes a commit's signature in another way.
type Respell = fn(&str) -> String;

#[test]
fn a_signature_is_byte_for_byte_what_openssh_writes() {
    let forge = Forge::new();
    let chain = forge.honest();
    let tip = chain.head.commit.unwrap();
    let raw = String::from_utf8(forge.store.read(tip).unwrap().1).unwrap();
    let other = "entry 5: the signature is not in the form that OpenSSH writes";
    let unread = "entry 5: the signature cannot be read";
    let bends: [(&str, Respell, &str); 7] = [
        (
            "a blank behind the last line",
            |commit_text| commit_text.replace("END SSH SIGNATURE-----\n", "END SSH SIGNATURE----- \n"),
            unread,
        ),
        (
            "a blank behind the first line",
            |commit_text| commit_text.replace("BEGIN SSH SIGNATURE-----\n", "BEGIN SSH SIGNATURE----- \n"),
            unread,
        ),
        ("a CR", |commit_text| commit_text.replace("END SSH SIGNATURE-----\n", "END SSH SIGNATURE-----\r\n"), other),
        (
            "an empty line behind it",
            |commit_text| commit_text.replace("END SSH SIGNATURE-----\n", "END SSH SIGNATURE-----\n \n"),
            other,
        ),
        ("an empty line before it", |commit_text| commit_text.replace("gpgsig ", "gpgsig \n "), other),
        ("a tab", |commit_text| commit_text.replace("\n U1NIU0lH", "\n \tU1NIU0lH"), unread),
        (
            "other line lengths",
            |commit_text| {
                let shorter = "gpgsig -----BEGIN SSH SIGNATURE-----\n U1\n NI";
                commit_text.replace("gpgsig -----BEGIN SSH SIGNATURE-----\n U1NI", shorter)
            },
            unread,
        ),
    ];
    for (what, bend, why) in bends {
        let bent = bend(&raw);
        assert!(bent != raw, "{what} changes nothing");
        forge.point_at(forge.store.write(gix::objs::Kind::Commit, bent.as_bytes()).unwrap());
        let report = forge.verify();
        assert_says(&report, "signature", why);
        assert_eq!(report.rows.chain.state, State::Ok, "{what}\n{}", report.to_text(false));
    }
}

#[test]
fn a_folder_is_what_git_would_write() {
    let forge = Forge::new();
    let chain = forge.honest();
    let hex = |oid: Oid| oid.0.as_slice().to_vec();
    let tip = chain.links[5].tree;
    let (_, root) = forge.store.read(tip).unwrap();
    let empty = forge.store.write(gix::objs::Kind::Tree, b"").unwrap();
    let mut with_empty = [b"40000 aaa\0".to_vec(), hex(empty)].concat();
    with_empty.extend(&root);
    let blob = forge.store.write_blob(b"x").unwrap();
    let mut unsorted = root.clone();
    unsorted.extend([b"100644 aaa\0".to_vec(), hex(blob)].concat());
    let mut script = root.clone();
    script.extend([b"100755 run.sh\0".to_vec(), hex(blob)].concat());
    for bytes in [with_empty, unsorted, script] {
        let tree = forge.store.write(gix::objs::Kind::Tree, &bytes).unwrap();
        let mut bent = entries(&chain);
        bent[5].1 = tree;
        let refused = check_incoming(&forge.store, Chain::Run(&chain.run), None, relink(&forge, &bent)).unwrap_err();
        assert_eq!(refused, "the tree of entry 5 does not have exactly what the entry names");
    }
}

#[test]
fn an_unsigned_entry_fails_the_signature() {
    let forge = Forge::new();
    let chain = forge.honest();
    let last = &chain.links[5];
    let raw = codec::payload(&last.entry, last.tree, &[chain.links[4].commit]);
    forge.point_at(forge.store.write(gix::objs::Kind::Commit, &raw).unwrap());
    assert_says(&forge.verify(), "signature", "entry 5: it is not signed");
    let other = codec::payload(&chain.links[4].entry, last.tree, &[]);
    let second_raw =
        codec::signed(&last.entry, last.tree, &[chain.links[4].commit], &forge.signer.sign(&other).unwrap());
    forge.point_at(forge.store.write(gix::objs::Kind::Commit, &second_raw).unwrap());
    let report = forge.verify();
    assert_says(&report, "signature", "entry 5: the signature does not match");
    assert_eq!(report.headline, "TAMPERED");
}

#[test]
fn whatever_a_ref_points_at_gets_a_report() {
    let forge = Forge::new();
    let chain = forge.honest();
    let blob = forge.store.write_blob(b"x").unwrap();
    forge.git(&["tag", "-a", "-m", "x", "release", "HEAD"]);
    let tag = forge.git(&["rev-parse", "refs/tags/release"]).parse().unwrap();
    let cases = [
        (blob, "object … is a blob, not an entry"),
        (chain.head.tree.unwrap(), "object … is a tree, not an entry"),
        (tag, "object … is a tag, not an entry"),
        (forge.base, "commit …: the commit is not an entry: the message is not a subject and an entry"),
    ];
    for (oid, expected) in cases {
        forge.point_at(oid);
        assert_says(&forge.verify(), "chain", expected);
    }
    forge.git(&["symbolic-ref", RUN, "refs/heads/main"]);
    assert_says(&forge.verify(), "chain", "the ref is a symbolic one, to refs/heads/main");
    fs::write(forge.path().join(".git").join(RUN), "garbage\n").unwrap();
    assert_says(
        &forge.verify(),
        "chain",
        "the ref cannot be read: Reference content could not be parsed, input=\"garbage\\n\"",
    );
    fs::write(forge.path().join(".git").join(RUN), "1".repeat(40)).unwrap();
    assert_says(&forge.verify(), "chain", "the chain: object … is not in the repository");
}

#[test]
fn a_long_history_of_something_else_ends() {
    let forge = Forge::new();
    let mut stream = String::new();
    for at in 0..20_000 {
        let commit = format!("commit {RUN}\ncommitter a <a@b> {at} +0000\ndata 1\nx\n");
        stream.push_str(&commit);
    }
    let mut import = Command::new("git");
    import.args(["fast-import", "--quiet"]).current_dir(forge.path()).stdin(Stdio::piped());
    let mut child = import.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let report = forge.verify();
    assert_says(&report, "chain", "101 commits are no entries; the history before them was not read");
    assert_eq!(row_of(&report, "chain").codes, [Code::Entry]);
}

#[test]
fn replace_refs_grafts_and_shallow_files_have_no_say() {
    let forge = Forge::new();
    let chain = forge.honest();
    let before = forge.verify().to_text(false);
    let commit = chain.links[3].commit.to_string();
    forge.git(&["replace", &commit, &chain.links[2].commit.to_string()]);
    let patch = forge.git(&["rev-parse", &format!("{RUN}^{{/item.reconciled edit-a }}:patch")]);
    let other = forge.store.write_blob(b"another\n").unwrap().to_string();
    forge.git(&["replace", &patch, &other]);
    fs::create_dir_all(forge.path().join(".git/info")).unwrap();
    fs::write(forge.path().join(".git/info/grafts"), format!("{commit}\n")).unwrap();
    fs::write(forge.path().join(".git/shallow"), format!("{commit}\n")).unwrap();
    assert_eq!(forge.verify().to_text(false), before);
    // A tampered object behind the replaced and grafted one is found all the same.
    let mut bent = entries(&chain);
    bent[1].0.actor = "human:eve".to_owned();
    forge.point_at(relink(&forge, &bent));
    assert_fails(&forge.verify(), "chain", "order, entry 2");
}

#[test]
fn a_large_replaced_product_is_read_as_it_is_stored() {
    let forge = Forge::new();
    let large = vec![7; (4 << 20) + 1];
    let mut run = crate::common::chain_builder::ChainBuilder::submit(&forge, crate::common::forge::PLAN);
    run.fire("edit-a");
    run.done("edit-a", &[("patch", &large)]);
    run.fire("edit-b");
    run.done("edit-b", &[]);
    run.seal();
    let chain = forge.finish(run);
    let Event::ItemReconciled(e) = &chain.links[2].entry.event else { panic!() };
    let other = forge.store.write_blob(b"another\n").unwrap().to_string();
    forge.git(&["replace", "-f", &e.products.values().next().unwrap().oid.to_string(), &other]);
    assert_intact(&forge.verify());
}

#[test]
fn a_run_that_nothing_knows_is_no_report() {
    let forge = Forge::new();
    let run = "nobody".parse().unwrap();
    forge.git(&["branch", "refs/handoff/runs/nobody"]);
    let found = git_handoff::verify::verify(&forge.store, &run, "refs/handoff/runs/nobody", &forge.options());
    assert!(matches!(found, Err(Error::NoSuchRun(_))), "{found:?}");
}

#[test]
fn a_run_that_a_log_remembers_has_vanished() {
    let forge = Forge::new();
    forge.honest();
    forge.git(&["update-ref", "-d", RUN]);
    let run = "handoff-dag-1".parse().unwrap();
    let found = git_handoff::verify::verify(&forge.store, &run, RUN, &forge.options());
    assert!(matches!(found, Err(Error::Vanished { .. })), "{found:?}");
}

#[test]
fn foreign_text_cannot_move_the_cursor() {
    let forge = Forge::new();
    forge.point_at(forge.base);
    let mut report = forge.verify();
    report.actor = Some("eve\x1b[2J\u{202e}".to_owned());
    report.rows.chain.detail = "a\nb".to_owned();
    let text = report.to_text(false);
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}') && text.lines().count() == 10, "{text}");
    assert_eq!(report.rows.content.state, State::NotApplicable);
}

#[test]
fn a_ref_is_read_by_its_full_name_only() {
    let forge = Forge::new();
    forge.git(&["branch", RUN]);
    assert_eq!(refs::read(&forge.store, RUN).unwrap(), None);
    let chain = forge.honest();
    assert_eq!(refs::read(&forge.store, RUN).unwrap(), chain.head.commit);
    forge.git(&["symbolic-ref", RUN, "refs/heads/main"]);
    let message = refs::read(&forge.store, RUN).unwrap_err().to_string();
    assert_eq!(message, format!("{RUN} is a symbolic ref, to refs/heads/main"));
}

#[test]
fn a_large_blob_is_copied_as_it_is_stored() {
    let forge = Forge::new();
    let large = vec![7; (4 << 20) + 1];
    let oid = forge.store.write_blob(&large).unwrap();
    let other = forge.store.write_blob(b"another\n").unwrap().to_string();
    forge.git(&["replace", "-f", &oid.to_string(), &other]);
    let mut copied = Vec::new();
    forge.store.copy_blob(oid, &mut copied).unwrap();
    assert!(copied == large);
}

#[test]
fn a_parent_that_is_no_commit_cuts_the_chain_off() {
    let forge = Forge::new();
    let chain = forge.honest();
    let mut parents = vec![forge.store.write_blob(b"no commit\n").unwrap()];
    for link in &chain.links {
        let signature = forge.signer.sign(&codec::payload(&link.entry, link.tree, &parents)).unwrap();
        let raw = codec::signed(&link.entry, link.tree, &parents, &signature);
        parents = vec![forge.store.write(gix::objs::Kind::Commit, &raw).unwrap()];
    }
    forge.point_at(parents[0]);
    let report = forge.verify();
    assert_says(&report, "chain", "the chain: object … is a blob, not a commit");
    assert_eq!(report.rows.chain.codes, [Code::Object]);
    for row in ["root", "anchor", "handoff", "plan", "manifest"] {
        assert_eq!(row_of(&report, row).state, State::NotApplicable, "{row}");
    }
}

#[test]
fn a_second_submission_does_not_exchange_the_plan() {
    let forge = Forge::new();
    let mut run = ChainBuilder::honest(&forge);
    let mut second = run.drafts[0].clone();
    point_to(&mut second.event, "plan.json", blob(&forge, b"{}"));
    run.drafts.insert(3, second);
    forge.finish(run);
    let report = forge.verify();
    assert_eq!(report.rows.chain.codes, [Code::Misplaced]);
}
