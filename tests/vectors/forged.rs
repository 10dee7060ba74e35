//! Forged runs. By default the forger has the right key and rewrites the log.

use git_handoff::git::codec;
use git_handoff::ledger::chain::Draft;
use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::entry::{Entry, Event, ItemReconciled};
use git_handoff::model::protect_rule::ProtectRule;
use git_handoff::model::protected::{ChangeKind, OnProtectedChange, ProtectedChange};
use git_handoff::model::role::every_role;
use git_handoff::model::time::Moment;

use super::clean::{failed, stopped};
use super::{Vector, stranger};
use crate::common::chain_builder::{BuiltChain, ChainBuilder, point_to};
use crate::common::forge::{Forge, PLAN, blob, relink, store_product};

pub(super) const VECTORS: &[Vector] = &[
    Vector::new("commit-author", "another author in the commit of the last entry", |forge| {
        commit(forge, |raw| raw.replace("author human:ada", "author human:eve"));
    }),
    Vector::new(
        "commit-entry",
        "another actor in the last entry and its commit, with the signature as it was",
        |forge| {
            commit(forge, |raw| raw.replace("human:ada", "human:eve"));
        },
    ),
    Vector::new("commit-header", "one more header in the commit of the last entry", |forge| {
        commit(forge, |raw| raw.replace(" +0000\ngpgsig", " +0000\nencoding UTF-8\ngpgsig"));
    }),
    Vector::new("commit-spelling", "the last entry with a blank that its canonical form does not have", |forge| {
        commit(forge, |raw| raw.replace("{\n \"actor\":", "{ \"actor\":"));
    }),
    Vector::new("commit-two-parents", "an earlier entry as a second parent of the last", |forge| {
        let chain = forge.honest();
        let (before, other) = (chain.links[4].commit, chain.links[2].commit);
        point(forge, &chain, |raw| {
            raw.replace(&format!("parent {before}\n"), &format!("parent {before}\nparent {other}\n"))
        });
    }),
    Vector::new("signature-none", "the last entry is not signed", |forge| {
        let chain = forge.honest();
        let last = &chain.links[5];
        write(forge, &codec::payload(&last.entry, last.tree, &[chain.links[4].commit]));
    }),
    Vector::new("signature-of-another", "the last entry has the signature of another commit", |forge| {
        let chain = forge.honest();
        let last = &chain.links[5];
        let other = codec::payload(&chain.links[4].entry, last.tree, &[]);
        let signature = forge.signer.sign(&other).unwrap();
        write(forge, &codec::signed(&last.entry, last.tree, &[chain.links[4].commit], &signature));
    }),
    Vector::new("signature-by-no-writer", "every entry is signed by a key that entry 0 does not name", |forge| {
        let chain = ChainBuilder::honest(forge).write(&stranger(forge));
        forge.log(&chain, &forge.signer);
    }),
    Vector::new(
        "signature-by-a-stranger",
        "a whole run by a key that the signers do not name, with a log of its own",
        |forge| {
            let stranger = stranger(forge);
            let mut run = ChainBuilder::honest(forge);
            let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
            e.roles = every_role([stranger.fingerprint()]);
            let chain = run.write(&stranger);
            forge.log(&chain, &stranger);
        },
    ),
    Vector::new("entry-dropped", "an entry left out, the others as they were", |forge| {
        linked(forge, |entries| drop(entries.remove(2)));
    }),
    Vector::new(
        "entry-dropped-and-rechained",
        "the dispatch of an item left out, everything after it made to fit",
        |forge| {
            bent(forge, |drafts| drop(drafts.remove(1)));
        },
    ),
    Vector::new("entry-doubled", "the end of an item told twice, everything after it made to fit", |forge| {
        bent(forge, |drafts| {
            let again = again(&drafts[2]);
            drafts.insert(2, again);
        });
    }),
    Vector::new("entries-reordered", "an item is dispatched before the one that it waits for is done", |forge| {
        bent(forge, |drafts| drafts.swap(2, 3));
    }),
    Vector::new("entry-after-the-seal", "an entry behind the seal", |forge| {
        let mut run = ChainBuilder::honest(forge);
        run.close();
        forge.finish(run);
    }),
    Vector::new("entry-prev", "`prev` names another entry", |forge| {
        linked(forge, |entries| entries[3].0.prev = entries[1].0.prev);
    }),
    Vector::new("entry-seq", "a number left out in `seq`", |forge| {
        linked(forge, |entries| entries[5].0.seq = 6);
    }),
    Vector::new("entry-time", "an entry that is dated before the one before it", |forge| {
        linked(forge, |entries| entries[5].0.at = Moment::from_millis(0));
    }),
    Vector::new("plan-bytes", "a plan whose bytes are not those that entry 0 names", |forge| {
        bent(forge, |drafts| put(forge, &mut drafts[0], "plan.json", &PLAN.replace("[\"true\"]", "[\"evil\"]")));
    }),
    Vector::new("plan-size", "a plan whose size is not the one that entry 0 states", |forge| {
        bent(forge, |drafts| {
            let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
            e.plan.size += 1;
        });
    }),
    Vector::new("artifact-size", "an artifact whose size is not the one that entry 0 states", |forge| {
        bent(forge, |drafts| {
            let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
            e.artifacts.values_mut().for_each(|sealed| sealed.size += 1);
        });
    }),
    Vector::new("manifest-size", "a manifest whose size is not the one that its entry states", |forge| {
        bent(forge, |drafts| {
            let Event::ItemFired(e) = &mut drafts[1].event else { panic!() };
            e.manifest.size += 1;
        });
    }),
    Vector::new("plan-named", "a plan of another command, named by entry 0", |forge| {
        bent(forge, |drafts| {
            let plan = PLAN.replace("[\"true\"]", "[\"evil\"]");
            let Event::RunSubmitted(e) = &mut drafts[0].event else { panic!() };
            e.plan = store_product(forge, plan.as_bytes());
        });
    }),
    Vector::new("artifact-bytes", "an artifact whose bytes are not those that entry 0 names", |forge| {
        bent(forge, |drafts| put(forge, &mut drafts[0], "artifacts/docs/spec.md", "# Another\n"));
    }),
    Vector::new(
        "protected-except-not-listed",
        "a change outside of the exceptions that the entry leaves out",
        |forge| {
            protecting_by(forge, r#"{"except":["doc"]}"#, &[except(&["doc"])], &[]);
        },
    ),
    Vector::new("name-of-300000-dots", "an entry with a name of 300,000 dots, which few bytes hold", |forge| {
        renamed(forge, &".".repeat(300_000));
    }),
    Vector::new("name-of-200000-marks", "an entry with a name of 200,000 combining marks", |forge| {
        renamed(forge, &"\u{301}".repeat(200_000));
    }),
    Vector::new("protected-except-listed", "a change to an exception that the entry lists", |forge| {
        protecting_by(forge, r#"{"except":["src"]}"#, &[except(&["src"])], &[("src/x", ChangeKind::Modified)]);
    }),
    Vector::new("protected-except-widened", "a manifest with more exceptions than the plan has", |forge| {
        protecting_by(forge, r#"{"except":["doc"]}"#, &[except(&["doc", "src"])], &[]);
    }),
    Vector::new("protected-excluding", "a manifest that excludes files from what the plan protects", |forge| {
        let excluding = ProtectRule::Pathspec(":!src/x".to_owned());
        protecting_by(forge, r#"["src"]"#, &[ProtectRule::Pathspec("src".to_owned()), excluding], &[]);
    }),
    Vector::new("manifest-bytes", "a manifest whose bytes are not those that its entry names", |forge| {
        bent(forge, |drafts| put(forge, &mut drafts[1], "manifest.json", "{}"));
    }),
    Vector::new(
        "protected-without-reference",
        "a manifest that protects files, and an entry without their reference",
        |forge| {
            fired(forge, |run| {
                run.fire_with("edit-b", |manifest| manifest.protect = [ProtectRule::Pathspec("src".to_owned())].into());
            });
        },
    ),
    Vector::new("protected-not-in-order", "changes to protected files that are not sorted by their paths", |forge| {
        protected(forge, &["src/y", "src/x"]);
    }),
    Vector::new("protected-twice", "one protected file with two changes", |forge| {
        protected(forge, &["src/x", "src/x"]);
    }),
    Vector::new(
        "judged-without-a-check",
        "changes to protected files that are judged, by an item whose check did not run",
        |forge| {
            let mut run = ChainBuilder::submit(forge, PLAN);
            let change = ("src/x", ChangeKind::Modified);
            protect(forge, &mut run, MODIFIED, &[change], OnProtectedChange::Judge);
            last_end(&mut run).protected_judged = true;
            finish_protected(forge, run);
        },
    ),
    Vector::new("protected-left-out", "a change to a protected file that the entry leaves out", |forge| {
        protecting(forge, MODIFIED, &[]);
    }),
    Vector::new("protected-unchanged", "a change to a protected file that the patch does not make", |forge| {
        protecting(forge, MODIFIED, &[("src/x", ChangeKind::Modified), ("src/y", ChangeKind::Added)]);
    }),
    Vector::new("protected-of-another-kind", "a protected file that is modified, recorded as added", |forge| {
        protecting(forge, MODIFIED, &[("src/x", ChangeKind::Added)]);
    }),
    Vector::new("protected-by-the-plan-allowed", "a change that settings allow to a file of the plan", |forge| {
        let plan = PLAN.replacen("\"id\":\"edit-a\",", "\"id\":\"edit-a\",\"protect\":[\"src\"],", 1);
        assert_ne!(plan, PLAN);
        let mut run = ChainBuilder::submit(forge, &plan);
        protect(forge, &mut run, MODIFIED, &[("src/x", ChangeKind::Modified)], OnProtectedChange::Allow);
        finish_protected(forge, run);
    }),
    Vector::new("protected-renamed-away", "a protected file that is renamed, which the entry leaves out", |forge| {
        protecting(forge, "diff --git a/src/x b/x\nsimilarity index 100%\nrename from src/x\nrename to x\n", &[]);
    }),
    Vector::new("protected-mode", "another mode of a protected file, which the entry leaves out", |forge| {
        protecting(forge, "diff --git a/src/x b/src/x\nold mode 100644\nnew mode 100755\n", &[]);
    }),
    Vector::new(
        "protected-in-another-form",
        "a patch with lines that git apply reads and git does not write",
        |forge| {
            let patch = "--- a/src/x\n+++ b/src/x\n@@ -1 +1 @@\n-one\n+two\n";
            protecting(forge, patch, &[("src/x", ChangeKind::Modified)]);
        },
    ),
    Vector::new("manifest-named", "a manifest of another command, named by its entry", |forge| {
        fired(forge, |run| run.fire_with("edit-b", |manifest| manifest.argv = vec!["evil".to_owned()]));
    }),
    Vector::new("input-exchanged", "an item that consumed other bytes than those that it needs", |forge| {
        fired(forge, |run| {
            run.fire_with("edit-b", |manifest| {
                let patch = manifest.input_refs.iter_mut().find(|(key, _)| key.as_str() == "patch").unwrap();
                patch.1.digest = Digest::compute(b"evil\n");
            });
        });
    }),
    Vector::new("input-left-out", "an item that did not consume what it needs", |forge| {
        fired(forge, |run| run.fire_with("edit-b", |manifest| drop(manifest.input_refs.pop_last())));
    }),
    Vector::new("product-bytes", "a product whose bytes are not those of its SHA-256", |forge| {
        bent(forge, |drafts| {
            let Event::ItemReconciled(e) = &mut drafts[4].event else { panic!() };
            e.products.values_mut().for_each(|product| product.oid = blob(forge, b"evil\n"));
        });
    }),
    Vector::new("seal-root", "a seal of another root", |forge| {
        sealed(forge, |seal| seal.root = Digest::compute(b"evil"));
    }),
    Vector::new("seal-stopped", "a seal that says that a rule stopped, which did not", |forge| {
        forge.finish(stopped(forge, "/score", &[("again", "nothing there")]));
    }),
    Vector::new("seal-stopped-left-out", "a seal that leaves out that a rule stopped", |forge| {
        forge.finish(stopped(forge, "/grade", &[]));
    }),
    Vector::new(
        "seal-stopped-of-no-rule",
        "a seal that says that a rule stopped which the run does not have",
        |forge| {
            bent(forge, |drafts| {
                let Event::RunSealed(e) = &mut drafts[5].event else { panic!() };
                e.stopped.insert("none".parse().unwrap(), "it is not there".to_owned());
            });
        },
    ),
    Vector::new("seal-too-early", "a seal although an item waits", |forge| {
        let mut run = ChainBuilder::submit(forge, PLAN);
        run.fire("edit-a");
        run.done("edit-a", &[("patch", b"diff\n")]);
        run.seal();
        forge.finish(run);
    }),
    Vector::new("log-of-another-root", "the log says another root", |forge| {
        let chain = ChainBuilder::honest(forge).write(&forge.signer);
        forge.log_as(&chain, &forge.signer, |sealed| sealed.root = Some(Digest::compute(b"evil")));
    }),
    Vector::new("log-of-another-story", "the run rewritten, the log as it was", |forge| {
        forge.honest();
        failed(forge).write(&forge.signer);
    }),
    Vector::new("cut-back", "the run's ref moved back to before the seal, the log as it was", |forge| {
        let chain = forge.honest();
        forge.point_at(chain.links[4].commit);
    }),
];

/// Records changes of `edit-a` to protected files, in this order.
fn protected(forge: &Forge, paths: &[&str]) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    run.fire_with("edit-a", |manifest| manifest.protect = [ProtectRule::Pathspec("src".to_owned())].into());
    run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
    let e = last_end(&mut run);
    e.reference = Some(forge.store.empty_tree());
    let added = |path: &&str| ProtectedChange { path: (*path).to_owned(), change: ChangeKind::Added };
    e.protected = paths.iter().map(added).collect();
    forge.finish(run);
}

/// Rewrites the commit of the last entry, as text.
pub(super) fn commit(forge: &Forge, bend: impl FnOnce(String) -> String) {
    let chain = forge.honest();
    point(forge, &chain, bend);
}

/// Gives the output of the last item that ended another name.
pub(super) fn renamed(forge: &Forge, name: &str) {
    let chain = forge.honest();
    let raw = |at: usize| String::from_utf8(forge.store.read(chain.links[at].commit).unwrap().1).unwrap();
    let at = (0..chain.links.len()).rev().find(|at| raw(*at).contains("outputs/report.md")).unwrap();
    write(forge, raw(at).replace("report.md", name).as_bytes());
}

fn point(forge: &Forge, chain: &BuiltChain, bend: impl FnOnce(String) -> String) {
    let raw = String::from_utf8(forge.store.read(chain.head.commit.unwrap()).unwrap().1).unwrap();
    let forged = bend(raw.clone());
    assert_ne!(raw, forged);
    write(forge, forged.as_bytes());
}

/// Points the run at a commit of these bytes.
fn write(forge: &Forge, raw: &[u8]) {
    forge.point_at(forge.store.write(gix::objs::Kind::Commit, raw).unwrap());
}

/// Bends entries and trees, and links and signs them as they are; the log is as it was.
pub(super) fn linked(forge: &Forge, bend: impl FnOnce(&mut Vec<(Entry, Oid)>)) {
    let chain = forge.honest();
    let mut entries = chain.links.iter().map(|link| (link.entry.clone(), link.tree)).collect();
    bend(&mut entries);
    forge.point_at(relink(forge, &entries));
}

/// Bends the story before it is written; links, seal, signatures and log are true to it.
pub(super) fn bent(forge: &Forge, bend: impl FnOnce(&mut Vec<Draft>)) {
    let mut run = ChainBuilder::honest(forge);
    bend(&mut run.drafts);
    forge.finish(run);
}

/// A patch that modifies `src/x`.
pub(super) const MODIFIED: &str = "diff --git a/src/x b/src/x\nindex 5626abf0f72e58d7a153368ba57db4c673c0e171..\
                        f719efd430d52bcfc8566a43b2eb655688d38871 100644\n--- a/src/x\n+++ b/src/x\n\
                        @@ -1 +1 @@\n-one\n+two\n";

/// Tells a story in which the first item protects `src`, has a patch, and records changes.
pub(super) fn protecting(forge: &Forge, patch: &str, recorded: &[(&str, ChangeKind)]) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    protect(forge, &mut run, patch, recorded, OnProtectedChange::Red);
    finish_protected(forge, run);
}

/// Tells a story in which the first item protects, by a plan with `written` as its `protect`, what
/// these rules do.
pub(super) fn protecting_by(forge: &Forge, written: &str, rules: &[ProtectRule], recorded: &[(&str, ChangeKind)]) {
    let plan = PLAN.replacen("\"inputs\"", &format!("\"protect\":{written},\"inputs\""), 1);
    let mut run = ChainBuilder::submit(forge, &plan);
    protect_by(forge, &mut run, rules, MODIFIED, recorded, OnProtectedChange::Red);
    finish_protected(forge, run);
}

/// Returns the rule that protects every file except some.
pub(super) fn except(pathspecs: &[&str]) -> ProtectRule {
    ProtectRule::Except { except: pathspecs.iter().map(|pathspec| (*pathspec).to_owned()).collect() }
}

pub(super) fn protect(
    forge: &Forge,
    run: &mut ChainBuilder<'_>,
    patch: &str,
    recorded: &[(&str, ChangeKind)],
    effect: OnProtectedChange,
) {
    let rules = [ProtectRule::Pathspec("src".to_owned())];
    protect_by(forge, run, &rules, patch, recorded, effect);
}

pub(super) fn protect_by(
    forge: &Forge,
    run: &mut ChainBuilder<'_>,
    rules: &[ProtectRule],
    patch: &str,
    recorded: &[(&str, ChangeKind)],
    effect: OnProtectedChange,
) {
    run.fire_with("edit-a", |manifest| {
        manifest.protect = rules.iter().cloned().collect();
        manifest.on_protected_change = effect;
    });
    run.done("edit-a", &[("patch", patch.as_bytes())]);
    let e = last_end(run);
    e.reference = Some(forge.store.empty_tree());
    let change = |(path, change): &(&str, ChangeKind)| ProtectedChange { path: (*path).to_owned(), change: *change };
    e.protected = recorded.iter().map(change).collect();
    e.protected_allowed = effect == OnProtectedChange::Allow;
}

pub(super) fn finish_protected(forge: &Forge, mut run: ChainBuilder<'_>) {
    run.fire("edit-b");
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    forge.finish(run);
}

/// Tells the story with another dispatch of the second item.
pub(super) fn fired(forge: &Forge, fire: impl FnOnce(&mut ChainBuilder<'_>)) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    run.fire("edit-a");
    run.done("edit-a", &[("patch", b"diff --git a/x b/x\n")]);
    fire(&mut run);
    run.done("edit-b", &[("outputs/report.md", b"fine\n")]);
    run.seal();
    forge.finish(run);
}

/// Tells the story with another seal.
pub(super) fn sealed(forge: &Forge, bend: impl FnOnce(&mut git_handoff::model::entry::RunSealed)) {
    let honest = ChainBuilder::honest(forge).write(&forge.signer);
    let Event::RunSealed(mut seal) = honest.links[5].entry.event.clone() else { panic!() };
    bend(&mut seal);
    let mut run = ChainBuilder::honest(forge);
    run.true_seal = false;
    run.drafts[5].event = Event::RunSealed(seal);
    forge.finish(run);
}

pub(super) fn again(draft: &Draft) -> Draft {
    draft.clone()
}

/// Points at other bytes where the entry names those of a file.
pub(super) fn put(forge: &Forge, draft: &mut Draft, path: &str, text: &str) {
    point_to(&mut draft.event, path, blob(forge, text.as_bytes()));
}

/// Returns the end of an item, which is the last entry of a run.
pub(super) fn last_end<'r>(run: &'r mut ChainBuilder<'_>) -> &'r mut ItemReconciled {
    let Some(Event::ItemReconciled(e)) = run.drafts.last_mut().map(|draft| &mut draft.event) else { panic!() };
    e
}
