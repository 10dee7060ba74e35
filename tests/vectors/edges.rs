//! Edges of the format at which two readings of it once gave two verdicts.

use git_handoff::git::store::Edit;
use git_handoff::ledger::chain::{Draft, Head};
use git_handoff::ledger::prove;
use git_handoff::model::elsewhere::Import;
use git_handoff::model::entry::{
    Event, ItemReconciled, Outcome, Role, RunAdmitted, RunConcluded, RunSubmitted, ThreadCheckpointed,
};
use git_handoff::model::evidence::Evidence;
use git_handoff::model::format;
use git_handoff::model::name::ThreadId;
use git_handoff::model::protect_rule::ProtectRule;
use git_handoff::model::protected::{ChangeKind, OnProtectedChange};
use git_handoff::model::reused::Reused;
use git_handoff::model::thread::Content;

use super::forged::{MODIFIED, commit, finish_protected, last_end, protect, protect_by};
use super::grown::{RULE, plan};
use super::keys::wrote;
use super::others::created;
use super::planned::rest;
use super::{RUN, Vector, lose, stranger};
use crate::common::chain_builder::{BuiltChain, ChainBuilder};
use crate::common::forge::{Forge, PLAN, blob, store_product};
use crate::reuse::{continued, forged as reuse};

const PATCH: &[(&str, &[u8])] = &[("patch", b"diff --git a/x b/x\n")];
const KNOWN: &[&str] = &["--signers", "signers", "--signer", "ada@example.com"];

pub(super) const CLEAN: &[Vector] = &[
    Vector::new(
        "clean-copy-with-a-need-from-a-thread",
        "a rule copies an item that needs the latest checkpoint of a thread",
        copied_with_a_thread,
    ),
    Vector::new(
        "clean-reasons-of-a-new-copy",
        "`reasons` names an item that the same application has copied, which gives no reason",
        |forge| {
            let report = r#"{"item":{"id":"report","executor":"command","inputs":{"command":["tell"]}},"reasons":{"why":"edit-a"}}"#;
            let rule = format!(
                r#"{{"id":"retry","when":{{"items":[{{"items":["edit-a"],"are":"failed"}}]}},"create":[{{"again":"edit-a"}},{report}]}}"#
            );
            let mut run = ChainBuilder::submit(forge, &plan(&rule));
            run.fire("edit-a");
            run.fail("edit-a");
            run.skip("edit-b");
            created(&mut run);
            for item in ["edit-a~2", "edit-b~2", "report"] {
                run.fire(item);
                run.done(item, PATCH);
            }
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new(
        "clean-optional-need-of-an-artifact",
        "a need in `optional` that no item has is left out, an artifact too",
        |forge| {
            let spec = r#"{"from":"@artifacts","select":{"kind":"output","path":"docs/spec.md"}}"#;
            let more = format!(
                r#"{{"item":{{"id":"more","executor":"command","inputs":{{"command":["true"]}},"needs":{{"spec":{spec}}}}},"optional":["spec"]}}"#
            );
            let mut run = ChainBuilder::submit(forge, &plan(&after("edit-a", &more)));
            run.fire("edit-a");
            run.done("edit-a", PATCH);
            created(&mut run);
            run.fire("more");
            run.done("more", PATCH);
            run.fire("edit-b");
            run.done("edit-b", PATCH);
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new("clean-name-clash-of-keys", "a rule would create an item with the inputs `in` and `IN`", |forge| {
        let need = r#"{"from":"edit-a","select":{"kind":"patch"}}"#;
        let item = format!(
            r#"{{"item":{{"id":"join","executor":"command","inputs":{{"command":["true"]}},"needs":{{"in":{need}}}}},
                "each":{{"outputsOf":"edit-a","key":"IN","from":"edit-a","select":{{"kind":"patch"}}}}}}"#
        );
        clashing(forge, &item, &[("patch", b"diff --git a/x b/x\n"), ("outputs/one", b"one\n")]);
    }),
    Vector::new("clean-name-clash-in-a-circle", "a rule would create items that replace each other", |forge| {
        let item = |id: &str, more: &str| {
            format!(r#"{{"item":{{"id":"{id}","executor":"command","inputs":{{"command":["true"]}},{more}}}}}"#)
        };
        let items =
            [item("x", r#""replaces":"y""#), item("y", r#""replaces":"x""#), item("z", r#""depends_on":["x"]"#)];
        clashing(forge, &items.join(","), PATCH);
    }),
    Vector::new(
        "clean-name-clash-of-much-text",
        "a rule would create too many bytes, and replace an item that waits",
        |forge| {
            let text = "text ".repeat(7000);
            let items = format!(
                r#"{{"item":{{"id":"more-{{{{key}}}}","executor":"command","inputs":{{"command":["true"],"text":"{text}"}}}}}},
                {{"item":{{"id":"next-{{{{key}}}}","executor":"command","inputs":{{"command":["true"]}},"replaces":"edit-b"}}}}"#
            );
            let rule =
                after("edit-a", &items).replacen(r#""create""#, r#""forEach":{"outputsOf":"edit-a"},"create""#, 1);
            let names: Vec<String> = (0..1000).map(|number| format!("outputs/{number}")).collect();
            let outputs: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"one\n"[..])).collect();
            let mut run = ChainBuilder::submit(forge, &plan(&rule));
            run.fire("edit-a");
            run.done("edit-a", &[PATCH, &outputs].concat());
            run.add(name_clash());
            run.fire("edit-b");
            run.done("edit-b", PATCH);
            run.seal();
            forge.finish(run);
        },
    ),
    Vector::new(
        "clean-protected-submodule-replaced",
        "a file in the place of a submodule that `lib/` protects, which selects no file",
        |forge| {
            let patch = format!(
                "diff --git a/lib b/lib\ndeleted file mode 160000\nindex {one}..{none}\n--- a/lib\n+++ /dev/null\n\
                 @@ -1 +0,0 @@\n-Subproject commit {one}\ndiff --git a/lib b/lib\nnew file mode 100644\n\
                 index {none}..5626abf0f72e58d7a153368ba57db4c673c0e171\n--- /dev/null\n+++ b/lib\n@@ -0,0 +1 @@\n+one\n",
                one = "1".repeat(40),
                none = "0".repeat(40)
            );
            protecting_by(forge, "lib/", &patch, &[("lib", ChangeKind::Deleted)]);
        },
    ),
];

pub(super) const FORGED: &[Vector] = &[
    Vector::new(
        "protected-allowed-alone",
        "changes to protected files are allowed, and the manifest protects none",
        |forge| {
            let mut run = ChainBuilder::submit(forge, PLAN);
            run.fire("edit-a");
            run.done("edit-a", PATCH);
            last_end(&mut run).protected_allowed = true;
            finish_protected(forge, run);
        },
    ),
    Vector::new("protected-by-an-open-parenthesis", "a pathspec `:(src` in a manifest, which git refuses", |forge| {
        protecting_by(forge, ":(src", MODIFIED, &[]);
    }),
    Vector::new(
        "protected-patch-of-other-bytes",
        "a patch to protected files whose bytes are not those that its entry names",
        |forge| {
            let mut run = ChainBuilder::submit(forge, PLAN);
            protect(forge, &mut run, MODIFIED, &[("src/x", ChangeKind::Modified)], OnProtectedChange::Red);
            let other = blob(forge, MODIFIED.replace("src/x", "src/y").as_bytes());
            last_end(&mut run).products.values_mut().for_each(|product| product.oid = other);
            finish_protected(forge, run);
        },
    ),
    Vector::new(
        "reused-from-an-item-with-allowed-changes",
        "an item takes a change to a file that its plan protects, which another run had allowed",
        reused_with_allowed_changes,
    ),
    Vector::new("reused-from-a-run-by-a-stranger", "an item takes products of a run that another key began", |forge| {
        let mut run = reuse::taking_from(forge, &stranger(forge));
        run.fire("other");
        run.done("other", &[]);
        run.seal();
        forge.finish(run);
    })
    .with_arguments(KNOWN),
    Vector::new(
        "continues-a-run-with-a-statement-of-a-stranger",
        "the continued run holds a statement of a key that the verifier does not know",
        continued_with_a_statement,
    )
    .with_arguments(KNOWN),
    Vector::new(
        "import-from-a-run-whose-source-differs",
        "the run that was taken from took from another run, which is here, and sealed otherwise",
        |forge| {
            taking(forge, "zero", None, b"one\n");
            taking(forge, "first", Some("zero"), b"one\n");
            let chain = taking(forge, RUN, Some("first"), b"one\n");
            forge.log(&chain, &forge.signer);
            taking(forge, "zero", None, b"two\n");
        },
    ),
    Vector::new("signature-header-in-other-letters", "a signature whose first line is not ASCII", |forge| {
        commit(forge, |raw| raw.replacen("-----BEGIN SSH SIGNATURE-----", "-----BEGIN SSH SIGNATURÉ-----", 1));
    }),
    Vector::new(
        "rule-with-a-large-document-that-is-missing",
        "a rule looks into a document of more than 16 MiB, which is missing",
        |forge| {
            let mut run = ChainBuilder::submit(forge, &plan(RULE));
            let text = b"{\"score\":3}\n";
            run.document_with("score", text, |e| e.size = 17 << 20);
            rest(&mut run);
            forge.finish(run);
            lose(forge, blob(forge, text));
        },
    )
    .with_gaps(),
];

/// A rule that creates something once an item is done.
fn after(item: &str, templates: &str) -> String {
    format!(r#"{{"id":"grow","when":{{"items":[{{"items":["{item}"],"are":"done"}}]}},"create":[{templates}]}}"#)
}

fn name_clash() -> Event {
    let detail = Some("in words of its own".to_owned());
    Event::RunConcluded(RunConcluded { detail, ..RunConcluded::new("grow".parse().unwrap(), "name-clash") })
}

/// A run whose rule clashes once `edit-a` is done with these products.
fn clashing(forge: &Forge, templates: &str, products: &[(&str, &[u8])]) {
    let mut run = ChainBuilder::submit(forge, &plan(&after("edit-a", templates)));
    run.fire("edit-a");
    run.done("edit-a", products);
    run.add(name_clash());
    run.fire("edit-b");
    run.done("edit-b", PATCH);
    run.seal();
    forge.finish(run);
}

/// A run whose first item protects by a pathspec, has a patch, and records changes.
fn protecting_by(forge: &Forge, pathspec: &str, patch: &str, recorded: &[(&str, ChangeKind)]) {
    let mut run = ChainBuilder::submit(forge, PLAN);
    let rules = [ProtectRule::Pathspec(pathspec.to_owned())];
    protect_by(forge, &mut run, &rules, patch, recorded, OnProtectedChange::Red);
    finish_protected(forge, run);
}

/// Has entry 0 import something.
fn import(run: &mut ChainBuilder<'_>, name: &str, import: Import) {
    let add = |e: &mut RunSubmitted| {
        e.imports.insert(name.to_owned(), import);
    };
    add(&mut run.state.submitted);
    let Event::RunSubmitted(e) = &mut run.drafts[0].event else { panic!() };
    add(e);
}

/// A run whose item needs the state of a thread, fails, and is copied.
fn copied_with_a_thread(forge: &Forge) {
    let state = store_product(forge, b"state\n");
    let content = Content { state, summary: None, packet: None, worktree: None, base: None };
    let event = Event::ThreadCheckpointed(ThreadCheckpointed { content, origin: None });
    let edits = vec![("state".to_owned(), Edit::Blob(state.oid))];
    let draft = Draft { about: ThreadId::parse("login").unwrap().into(), event, bytes: Vec::new(), edits };
    let head = Head::unborn("refs/handoff/threads/login".to_owned());
    let (_, links) = forge.writer_with(&forge.signer).append(&head, vec![draft]).unwrap().publish().unwrap();
    let commit = String::from_utf8(forge.store.read(links[0].commit).unwrap().1).unwrap();
    let mut run = ChainBuilder::submit(
        forge,
        r#"{"id":"handoff-dag-1","items":[{"id":"take","executor":"command","inputs":{"command":["take"]},
            "needs":{"it":{"thread":"login","select":{"kind":"output","path":"state"}}}}],
            "rules":[{"id":"retry","when":{"items":[{"items":["take"],"are":"failed"}]},"create":[{"again":"take"}]}]}"#,
    );
    let evidence = store_product(forge, &Evidence::Commits(vec![commit]).canonical());
    import(&mut run, "@thread/login/latest:outputs/state", Import { product: state, evidence });
    run.fire("take");
    run.fail("take");
    created(&mut run);
    run.fire("take~2");
    run.done("take~2", PATCH);
    run.seal();
    forge.finish(run);
}

/// A run reuses a patch to `src`, which its own plan protects and that of the other run does not.
fn reused_with_allowed_changes(forge: &Forge) {
    let plan = |run: &str, protect: &str| {
        format!(
            r#"{{"id":"{run}","items":[{{"id":"edit-a","executor":"command","inputs":{{"command":["edit"]}}{protect}}}]}}"#
        )
    };
    let mut first = ChainBuilder::submit(forge, &plan("first", ""));
    let changes = [("src/x", ChangeKind::Modified)];
    protect(forge, &mut first, MODIFIED, &changes, OnProtectedChange::Allow);
    let products = last_end(&mut first).products.clone();
    first.seal();
    forge.finish(first);
    let item = "edit-a".parse().unwrap();
    let proof = prove::item(&forge.store, "refs/handoff/runs/first", &item, None).unwrap();
    let root = proof.root;
    let evidence = Some(store_product(forge, &Evidence::Proof(Box::new(proof)).canonical()));
    let mut run = ChainBuilder::submit(forge, &plan(RUN, r#","protect":["src"]"#));
    run.fire_with("edit-a", |manifest| {
        manifest.protect = [ProtectRule::Pathspec("src".to_owned())].into();
        manifest.on_protected_change = OnProtectedChange::Allow;
    });
    let reused = Some(Reused { run: "first".parse().unwrap(), item: item.clone(), root, evidence });
    let end = ItemReconciled { reused, products, ..ItemReconciled::new(item, 1, Outcome::Done) };
    run.add(Event::ItemReconciled(end));
    run.seal();
    forge.finish(run);
}

/// A run that continues one in which another key wrote a document by a statement.
fn continued_with_a_statement(forge: &Forge) {
    let bob = stranger(forge);
    let begun = || {
        let mut run = ChainBuilder::submit(forge, &crate::reuse::plan("first"));
        run.add(Event::RunAdmitted(RunAdmitted::new(bob.fingerprint(), Role::Document)));
        run
    };
    let statement = wrote(forge, &bob, "first", begun().write(&forge.signer).links[0].hash);
    let mut first = begun();
    first.document_with("notes", super::keys::NOTES, |e| e.said = Some(statement));
    first.fire("make");
    first.done("make", &[("outputs/report", b"make")]);
    let first = forge.finish(first);
    forge.finish(continued::going_on(forge, &first, |_| {}));
}

/// A sealed run of an item, which takes that of another run, if any, and hands over these bytes.
fn taking(forge: &Forge, run: &str, from: Option<&str>, bytes: &[u8]) -> BuiltChain {
    let select = r#""select":{"kind":"output","path":"report"}"#;
    let needs = from.map(|from| format!(r#","needs":{{"it":{{"run":"{from}","from":"make",{select}}}}}"#));
    let mut chain = ChainBuilder::submit(
        forge,
        &format!(
            r#"{{"id":"{run}","items":[{{"id":"make","executor":"command","inputs":{{"command":["make"]}}{}}}]}}"#,
            needs.unwrap_or_default()
        ),
    );
    if let Some(from) = from {
        let reference = format::run_ref(&from.parse().unwrap());
        let proof = prove::item(&forge.store, &reference, &"make".parse().unwrap(), None).unwrap();
        let evidence = store_product(forge, &Evidence::Proof(Box::new(proof)).canonical());
        import(
            &mut chain,
            &format!("@run/{from}/make:outputs/report"),
            Import { product: store_product(forge, bytes), evidence },
        );
    }
    chain.fire("make");
    chain.done("make", &[("outputs/report", bytes)]);
    chain.seal();
    chain.write(&forge.signer)
}
