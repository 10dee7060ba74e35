//! Items that are not run, because a sealed run by a known key had just the same to do: what is
//! taken, from whom, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod continued;
pub(crate) mod forged;

use base64ct::{Base64, Encoding as _};
use git_handoff::model::name::ItemId;
use serde_json::{Value, json};

use crate::common::assert_output;
use crate::common::repo::TestRepo;
use crate::common::report::{find_entry, find_line, find_row, verdict};

/// Returns the plan of a run of two items.
pub(crate) fn plan(run: &str) -> String {
    format!(
        r#"{{"id":"{run}","items":[{{"id":"make","executor":"command","inputs":{{"command":["make"]}}}},
        {{"id":"other","executor":"command","inputs":{{"command":["other"]}}}}]}}"#
    )
}

fn id(text: &str) -> ItemId {
    text.parse().unwrap()
}

/// Says on the disk that it was run, and leaves a product.
fn counted(id: &str) -> Value {
    json!({ "id": id, "executor": "command", "inputs": {
        "command": format!("echo {id} >>$HOME/../runs; mkdir outputs; echo out >outputs/report; echo three >>a.txt"),
    } })
}

/// Executions since the last call.
fn ran(repo: &TestRepo) -> String {
    let file = repo.path("runs");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A repository with the sealed run `first` of the items `build`, which `check` needs.
fn sealed() -> (TestRepo, Vec<Value>) {
    let repo = TestRepo::new();
    let mut check = counted("check");
    check["needs"] = json!({ "report": { "from": "build", "select": { "kind": "output", "path": "report" } } });
    let items = vec![counted("build"), check];
    repo.drive("first", &items).ends(0);
    assert_eq!(ran(&repo), "build check");
    (repo, items)
}

#[test]
fn products_of_a_trusted_run_are_reused() {
    let (repo, items) = sealed();
    repo.submit("second", &items);
    assert_output!("reuse_run", repo.env.handoff(["run", "second", "--reuse"]).exit(0));
    assert_eq!(ran(&repo), "");
    assert_output!("reuse_status", repo.env.handoff(["status", "--json", "second"]));
    let log = repo.env.handoff(["log", "second"]).success();
    insta::assert_snapshot!(find_entry(&log, "item.reconciled build"), @"item.reconciled build #1: done, reused from first/build, sealed as c6755263");
    assert_output!("reuse_show", repo.env.handoff(["show", "second/check"]));
    assert_output!("reuse_verify", repo.env.handoff(["verify", "second"]));
    repo.passes_fsck();
    assert_output!("lineage_reused", repo.env.handoff(["lineage", "second/check:outputs/report"]));
    // It needs nothing of the other run.
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/first"]).success();
    let report = repo.env.handoff(["verify", "second"]).success();
    insta::assert_snapshot!(find_row(&report, "handoff"), @"✓ handoff    1 input ref accounted for, 2 items of other runs proven");
    assert_output!("lineage_proven", repo.env.handoff(["lineage", "second/check"]));
    // Products are those of any other item.
    assert_eq!(repo.env.handoff(["cat", "second/build:outputs/report"]).success(), "out\n");
    repo.env.handoff(["prove", "second/build:patch"]).success();
}

#[test]
fn a_check_that_hands_nothing_over_is_not_made_again_either() {
    let repo = TestRepo::new();
    let check = json!({ "id": "check", "executor": "command", "inputs": { "command": "echo check >>$HOME/../runs" } });
    repo.drive("first", std::slice::from_ref(&check)).ends(0);
    repo.submit("second", &[check]);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    assert_eq!(ran(&repo), "check");
    let report = repo.env.handoff(["verify", "second"]).success();
    insta::assert_snapshot!(find_row(&report, "handoff"), @"✓ handoff    0 input refs, 1 item of other runs proven");
}

#[test]
fn work_that_changed_protected_files_is_done_again() {
    let repo = TestRepo::new();
    repo.config("handoff.protect", "a.txt");
    repo.config("handoff.executor.command.onProtectedChange", "allow");
    let items = [counted("build")];
    repo.drive("first", &items).ends(0);
    repo.submit("second", &items);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    assert_eq!(ran(&repo), "build build");
    let adopted = repo.env.handoff(["adopt-run", "first", "--id", "third", "--json"]).success();
    let adopted: Value = serde_json::from_str(&adopted).unwrap();
    assert_eq!((&adopted["taken"], &adopted["left"]), (&json!([]), &json!(1)));
}

#[test]
fn work_that_was_done_with_other_tags_is_done_again() {
    let (repo, items) = sealed();
    let refs = |item: &str| {
        let answer: Value = serde_json::from_str(&repo.env.handoff(["show", "--json", item]).success()).unwrap();
        answer["manifest"]["claims"]["tags"].clone()
    };
    let branches = |run: &str| {
        let log = repo.env.handoff(["log", "--json", run]).success();
        let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.map(|entry| entry["claims"]["branches"].clone()).find(Value::is_string).unwrap()
    };
    repo.env.git(["tag", "v1"]).success();
    repo.submit("second", &items);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    assert_eq!(ran(&repo), "build check");
    assert!(refs("first/build").is_string() && refs("first/build") != refs("second/build"));
    // With the same tags it is the same work: branches are those of one clone, and what they were
    // is recorded of both.
    repo.env.git(["tag", "-d", "v1"]).success();
    repo.env.git(["branch", "other"]).success();
    repo.env.git(["notes", "add", "-m", "note"]).success();
    repo.submit("third", &items);
    repo.env.handoff(["run", "third", "--reuse"]).success();
    assert_eq!((ran(&repo), refs("third/build")), (String::new(), refs("first/build")));
    assert_ne!(branches("third"), branches("first"));
    // Where worktrees have no refs, none of them counts.
    repo.config("handoff.workspace.refs", "false");
    repo.drive("fourth", &items).ends(0);
    assert_eq!((ran(&repo).as_str(), refs("fourth/build")), ("build check", Value::Null));
    repo.env.git(["tag", "v2"]).success();
    repo.submit("fifth", &items);
    repo.env.handoff(["run", "fifth", "--reuse"]).success();
    assert_eq!(ran(&repo), "");
    repo.env.handoff(["verify", "--all"]).success();
}

#[test]
fn reuse_reads_the_verified_head() {
    let (repo, mut items) = sealed();
    // Between two items that are taken another one has the seal without its signature.
    let forge = "cd $HOME/../repo; run=refs/handoff/runs/first; git cat-file commit $run | sed '/^gpgsig/,/-----END/d' >../forged; \
                 git update-ref $run $(git hash-object -t commit -w ../forged)";
    items.push(
        json!({ "id": "between", "executor": "command", "inputs": { "command": forge }, "depends_on": ["build"] }),
    );
    items[1]["depends_on"] = json!(["between"]);
    repo.submit("second", &items);
    let before = repo.env.git(["rev-parse", "refs/handoff/runs/first"]).success();
    repo.env.handoff(["run", "second", "--reuse"]).success();
    assert_ne!(repo.env.git(["rev-parse", "refs/handoff/runs/first"]).success(), before);
    repo.env.handoff(["verify", "first"]).ends(3);
    assert_eq!(ran(&repo), "");
    // The copy that is here by now is not what was taken from, which is nothing against what was.
    let report = repo.env.handoff(["verify", "second"]).exit(3).stdout;
    assert_eq!(verdict(&report), "✗ MISMATCH");
    insta::assert_snapshot!(find_row(&report, "handoff"), @"✗ handoff    run first, a source of its imports, is here, but different: signature: entry 5: it is not signed");
    repo.env.git(["update-ref", "refs/handoff/runs/first", before.trim()]).success();
    let verify_answer = repo.env.handoff(["verify", "second"]).success();
    insta::assert_snapshot!(find_row(&verify_answer, "handoff"), @"✓ handoff    1 input ref accounted for, 2 items of other runs proven");
}

#[test]
fn an_imported_product_is_not_reported_as_made() {
    let (repo, items) = sealed();
    repo.submit("second", &items);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    let reused = |run: &str| {
        let lines = repo.env.handoff(["export", run, "--format", "in-toto"]).success();
        let statement = |line: &str| {
            let envelope: Value = serde_json::from_str(line).unwrap();
            let payload = Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap();
            let statement: Value = serde_json::from_slice(&payload).unwrap();
            statement["predicate"]["runDetails"]["byproducts"][1]["annotations"]["reused"].clone()
        };
        lines.lines().map(statement).collect::<Vec<_>>()
    };
    assert!(reused("first").iter().all(Value::is_null));
    for item in reused("second") {
        assert_eq!(item["run"], "first");
    }
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/first"]).success();
    repo.env.handoff(["apply", "second/build"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Applied"]).success();
    let made = repo.env.handoff(["whence", "HEAD"]).success();
    insta::assert_snapshot!(find_line(&made, "  reused  "), @"  reused   from first/build, sealed as c6755263: nothing was run here");
    let refused = repo.env.handoff(["export", "second", "--format", "bundle-json"]).exit(1).stderr;
    insta::assert_snapshot!(refused, @r#"error: the item "build" took its products from the run first, and this format knows no items but those that were run"#);
}

#[test]
fn reuse_needs_its_option() {
    let (repo, items) = sealed();
    repo.drive("second", &items).ends(0);
    assert_eq!(ran(&repo), "build check");
}

#[test]
fn another_task_is_run() {
    let (repo, mut items) = sealed();
    items[0]["inputs"]["more"] = json!("said");
    repo.submit("second", &items);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    // `build` makes the same bytes, so `check` has the same task.
    assert_eq!(ran(&repo), "build");
    repo.env.write("repo/new.txt", "new");
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Another base"]).success();
    repo.submit("third", &items);
    repo.env.handoff(["run", "third", "--reuse"]).success();
    assert_eq!(ran(&repo), "build check");
    repo.env.handoff(["verify", "--all"]).success();
}

#[test]
fn reuse_skips_open_red_or_damaged_runs() {
    let repo = TestRepo::new();
    let mut items = vec![counted("build"), json!({ "id": "wait", "executor": "approval" })];
    repo.drive("open", &items).ends(4);
    assert_eq!(ran(&repo), "build");
    items.pop();
    repo.submit("second", &items);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    assert_eq!(ran(&repo), "build");
    // A product is gone.
    let product =
        repo.env.git(["rev-parse", "refs/handoff/runs/second^{/item.reconciled build }:outputs/report"]).success();
    repo.env.git(["update-ref", "-d", "refs/handoff/runs/open"]).success();
    crate::common::loosen(&repo.env.repo());
    let (dir, file) = product.trim().split_at(2);
    std::fs::remove_file(repo.env.repo().join(format!(".git/objects/{dir}/{file}"))).unwrap();
    repo.submit("third", &items);
    repo.env.handoff(["run", "third", "--reuse"]).success();
    assert_eq!(ran(&repo), "build");
    // Red.
    repo.config("handoff.executor.red.command", "mkdir outputs; echo out >outputs/report");
    repo.config("handoff.executor.red.verify", &format!("echo red >>{}; false", repo.path("runs").display()));
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    let red = [json!({ "id": "build", "executor": "red" })];
    repo.drive("red", &red).ends(4);
    repo.submit("again", &red);
    repo.env.handoff(["run", "again", "--reuse"]).ends(4);
    assert_eq!(ran(&repo), "red red");
}

/// A repository in which the schema `list@1` says nothing but lists, and the sealed run `first` of
/// an item that makes no list.
fn typed() -> (TestRepo, Value) {
    let repo = TestRepo::new();
    repo.env.write("repo/list.json", r#"{"type":"array"}"#);
    repo.config("handoff.schema.list@1.path", "list.json");
    let make = json!({ "id": "make", "executor": "command", "inputs": {
        "command": "echo make >>$HOME/../runs; mkdir outputs; echo '{}' >outputs/report",
    } });
    repo.drive("first", std::slice::from_ref(&make)).ends(0);
    assert_eq!(ran(&repo), "make");
    (repo, make)
}

#[test]
fn reuse_checks_declared_products() {
    let (repo, make) = typed();
    repo.config("handoff.queue.default.maxAttempts", "1");
    let list = json!({ "kind": "output", "path": "report", "schema": "list@1" });
    let document = json!({ "kind": "document", "name": "notes", "path": "report" });
    let typed = json!({ "kind": "document", "name": "notes", "path": "report", "schema": "list@1" });
    // Another that is not handed over, one that is no list, and documents, which the other run had
    // not.
    let cases = [
        ("missing", json!({ "kind": "output", "path": "other" }), 4),
        ("list", list, 4),
        ("document", document.clone(), 0),
        ("typed", typed, 4),
    ];
    for (run, declared, code) in cases {
        let mut item = make.clone();
        item["produces"] = json!([declared]);
        repo.submit(run, &[item]);
        repo.env.handoff(["run", run, "--reuse"]).ends(code);
        assert_eq!(ran(&repo), "make", "{run}");
    }
    // One with the document is taken from by those that declare it, and by no others.
    let mut item = make.clone();
    item["produces"] = json!([document]);
    repo.submit("again", &[item]);
    repo.env.handoff(["run", "again", "--reuse"]).success();
    assert_eq!(ran(&repo), "");
    repo.submit("plain", &[make]);
    repo.env.handoff(["run", "plain", "--reuse"]).success();
    assert_eq!(ran(&repo), "");
    for run in ["document", "again", "plain"] {
        repo.env.handoff(["verify", run]).success();
    }
}

#[test]
fn reuse_accepts_a_fetched_run_with_a_known_key() {
    let (repo, items) = sealed();
    repo.env.git_in(".", ["init", "--quiet", "--bare", "hub"]).success();
    repo.env.git(["remote", "add", "origin", "../hub"]).success();
    repo.env.git(["push", "--quiet", "--set-upstream", "origin", "main"]).success();
    repo.env.handoff(["push", "--all"]).success();
    repo.env.git_in(".", ["clone", "--quiet", "hub", "clone"]).success();
    repo.env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    repo.env.handoff_in("clone", ["fetch"]).success();
    let plan = |run: &str| repo.plan(run, &items);
    repo.env.handoff_in("clone", ["submit", &plan("theirs")]).success();
    repo.env.handoff_in("clone", ["run", "theirs", "--reuse"]).success();
    assert_eq!(ran(&repo), "build check", "the key is unknown here");
    let line = repo.env.handoff(["key"]).success();
    repo.env.write("home/signers", &line);
    let signers = repo.path("home/signers").display().to_string();
    repo.env.git_in("clone", ["config", "gpg.ssh.allowedSignersFile", &signers]).success();
    repo.env.git_in("clone", ["update-ref", "-d", "refs/handoff/runs/theirs"]).success();
    repo.env.handoff_in("clone", ["submit", &plan("ours")]).success();
    repo.env.handoff_in("clone", ["run", "ours", "--reuse"]).success();
    assert_eq!(ran(&repo), "");
    let report = repo.env.handoff_in("clone", ["verify", "ours"]).success();
    assert!(find_row(&report, "signature").ends_with(" · trusted as ada@example.com"), "{report}");
    insta::assert_snapshot!(find_row(&report, "handoff"), @"✓ handoff    1 input ref accounted for, 2 items of other runs proven");
    // With the other key revoked, everything that depends on it is distrusted.
    let key = line.split_whitespace().skip_while(|word| *word != "ssh-ed25519").collect::<Vec<_>>().join(" ");
    let fingerprint = git_handoff::ledger::sign::public_fingerprint(&key).unwrap();
    repo.env.write("home/revoked", &format!("{fingerprint}\n"));
    let verify_answer = repo.env.handoff_in("clone", ["verify", "ours", "--revoked", "../home/revoked"]).exit(3).stdout;
    assert_eq!(verdict(&verify_answer), "✗ UNTRUSTED");
    insta::assert_snapshot!(find_row(&verify_answer, "signature"), @"✗ signature  entry 2: the products that item build reuses: the key SHA256:DEO2ec9dfhoj9ux7LrEW9Oh9Uw08+F4hxRh44DkcNSg is revoked (and 3 more)");
}

#[test]
fn the_way_back_names_everything_once() {
    let repo = TestRepo::new();
    repo.env.write("spec.md", "# Spec");
    let needs = |from: &str, select: Value| json!({ "from": from, "select": select });
    let out = |path: &str| json!({ "kind": "output", "path": path });
    let mut left = counted("left");
    left["needs"] = json!({ "spec": needs("@artifacts", out("spec.md")), "base": needs("base", out("report")) });
    let mut right = counted("right");
    right["needs"] = json!({ "base": needs("base", out("report")),
                             "notes": needs("@documents", json!({ "kind": "document", "name": "notes" })) });
    let mut top = counted("top");
    top["needs"] = json!({ "l": needs("left", out("report")), "r": needs("right", json!({ "kind": "patch" })) });
    top["depends_on"] = json!(["sign-off"]);
    let sign = json!({ "id": "sign-off", "executor": "approval", "depends_on": ["base"] });
    let plan = json!({ "id": "r", "artifacts": { "spec.md": "spec.md" },
                       "items": [counted("base"), left, right, sign, top] });
    repo.env.write("plan.json", &plan.to_string());
    repo.env.handoff(["submit", "../plan.json"]).success();
    repo.env.handoff(["doc", "put", "r", "notes", "a.txt"]).success();
    repo.env.handoff(["run", "r"]).ends(4);
    repo.env.handoff(["approve", "r/sign-off"]).success();
    repo.env.handoff(["run", "r"]).success();
    assert_output!("lineage_tree", repo.env.handoff(["lineage", "r/top:patch"]));
    assert_output!("lineage_json", repo.env.handoff(["--json", "lineage", "r/left"]));
    for (wrong, code) in [("r", 2), ("r/none", 1), ("r/top:outputs/none", 1), ("none/top", 1)] {
        repo.env.handoff(["lineage", wrong]).ends(code);
    }
}

#[test]
fn the_way_back_finds_the_run_that_is_meant_among_others_of_its_name() {
    let (repo, items) = sealed();
    repo.submit("second", &items);
    repo.env.handoff(["run", "second", "--reuse"]).success();
    for hub in ["one", "two"] {
        repo.env.git_in(".", ["init", "--quiet", "--bare", hub]).success();
        repo.env.git(["remote", "add", hub, &format!("../{hub}")]).success();
        repo.env.git(["push", "--quiet", hub, "HEAD:refs/heads/main"]).success();
        repo.env.handoff(["push", hub, "--all"]).success();
    }
    repo.env.git_in(".", ["clone", "--quiet", "--branch", "main", "--origin", "one", "one", "clone"]).success();
    repo.env.git_in("clone", ["remote", "add", "two", "../two"]).success();
    repo.env.git_in("clone", ["config", "handoff.signingKey", ""]).success();
    repo.env.handoff_in("clone", ["fetch", "one"]).success();
    repo.env.handoff_in("clone", ["fetch", "two"]).success();
    let way = |what: &str| repo.env.handoff_in("clone", ["lineage", what]).success();
    let lineage = way("one/second/check");
    insta::assert_snapshot!(lineage, @"
    second/check  by command
      report = second/build:outputs/report  54034ac5  by command
        first/build  reused  by command
      first/check  reused  by command
        report = first/build:outputs/report  54034ac5  by command, as above
    ");
    // Whose copy has been spoilt is passed over while there is another.
    let forge = "!run=refs/handoff/remotes/one/runs/first; git cat-file commit $run | sed '/^gpgsig/,/-----END/d' >../forged; \
                 git update-ref $run $(git hash-object -t commit -w ../forged)";
    repo.env.git_in("clone", ["-c", &format!("alias.forge={forge}"), "forge"]).success();
    assert_eq!(way("one/second/check"), lineage);
    // A run of our own of that name is another run.
    let plan = repo.plan("first", &[counted("check")]);
    repo.env.handoff_in("clone", ["submit", &plan]).success();
    repo.env.handoff_in("clone", ["run", "first"]).success();
    assert_eq!(way("one/second/check"), lineage);
}

#[test]
fn the_way_back_names_who_wrote_what_was_consumed() {
    let repo = TestRepo::new();
    let notes = json!({ "from": "@documents", "select": { "kind": "document", "name": "notes" } });
    let make =
        json!({ "id": "make", "executor": "command", "needs": { "notes": notes }, "inputs": { "command": "true" } });
    repo.submit("r", &[make]);
    for (author, text) in [("human:ada", "x"), ("human:bob", "y"), ("human:cy", "x")] {
        repo.env.write("text", text);
        repo.env.handoff(["--actor", author, "doc", "put", "r", "notes", "../text"]).success();
    }
    repo.env.handoff(["run", "r"]).success();
    repo.env.write("text", "z");
    let stdout = repo.env.handoff(["lineage", "r/make"]).success();
    insta::assert_snapshot!(stdout, @"
    r/make  by command
      notes = document notes of r  2d711642  by human:cy
    ");
}
