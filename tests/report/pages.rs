//! The files that the command writes.

use std::fs;

use crate::common::repo::TestRepo;
use crate::common::{assert_output, finished};

/// A run with a done, a red, a failed and a skipped item.
pub(super) fn mixed() -> TestRepo {
    let repo = TestRepo::new();
    repo.config("handoff.executor.red.command", "echo red >>a.txt");
    repo.config("handoff.executor.red.verify", "exit 1");
    repo.config("handoff.executor.red.onVerifyFail", "keep");
    repo.config("handoff.executor.fails.command", "exit 3");
    repo.config("handoff.executor.fails.maxAttempts", "1");
    repo.config("handoff.queue.default.concurrency", "1");
    let items = serde_json::json!([
        { "id": "makes", "executor": "command", "inputs": { "command": "echo b >outputs/b; echo a >>a.txt" } },
        { "id": "takes", "executor": "command", "inputs": { "command": "cat inputs/b >outputs/c" },
          "needs": { "b": { "from": "makes", "select": { "kind": "output", "path": "b" } } } },
        { "id": "red", "executor": "red" },
        { "id": "fails", "executor": "fails" },
        { "id": "waits", "executor": "command", "inputs": { "command": "true" }, "depends_on": ["fails"] },
    ]);
    repo.drive("mixed", items.as_array().unwrap()).ends(4);
    repo.env.handoff(["close", "mixed"]).success();
    repo
}

#[test]
fn a_page_is_a_file_of_the_run_s_name_or_a_stream() {
    let env = finished();
    assert_output!(env.handoff(["report", "handoff-dag-1"]), @"
    ------- stderr -------
    wrote handoff-dag-1.html
    ");
    let page = fs::read_to_string(env.repo().join("handoff-dag-1.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\" data-verdict=\"not-recomputed\">"));
    assert!(page.contains(">nothing has been recomputed in this page</p>"));
    let streamed = env.handoff(["report", "handoff-dag-1", "-o", "-"]).success();
    assert_eq!(streamed.len(), page.len());
    env.handoff(["report", "handoff-dag-1", "-o", "sub/page.html"]).ends(1);
    fs::create_dir(env.repo().join("sub")).unwrap();
    env.handoff_in("repo/sub", ["report", "handoff-dag-1"]).success();
    assert!(env.repo().join("sub/handoff-dag-1.html").exists());
}

#[test]
fn report_rejects_bad_input_and_writes_nothing() {
    let env = finished();
    let before = env.git(["status", "--porcelain", "--ignored"]).success();
    assert_output!(env.handoff(["report", "nothing"]), @r#"
    ------- stderr -------
    error: there is no run "nothing" here
    hint: git handoff runs
    [exit status: 1]
    "#);
    assert_output!(env.handoff(["report"]), @"
    ------- stderr -------
    error: the following required arguments were not provided:
      <NAMES>...

    Usage: git handoff report <NAMES>...

    For more information, try '-h'.
    [exit status: 2]
    ");
    assert_output!(env.handoff(["report", "handoff-dag-1", "--content", "most"]), @"
    ------- stderr -------
    error: invalid value 'most' for '--content <WHICH>'
      [possible values: none, small, all]

    For more information, try '-h'.
    [exit status: 2]
    ");
    assert_output!(env.handoff(["report", "handoff-dag-1", "-o", "missing/page.html"]), @"
    ------- stderr -------
    error: cannot write missing/page.html
    caused by: No such file or directory (os error 2)
    [exit status: 1]
    ");
    let status = env.git(["status", "--porcelain", "--ignored"]).success();
    assert_eq!(status, before);
}

#[test]
fn the_hash_of_the_script_is_that_of_the_page() {
    let env = finished();
    let hash = env.handoff_in("home", ["report", "--script-hash"]).success();
    let page = env.handoff(["report", "handoff-dag-1", "-o", "-"]).success();
    let (_, script) = page.split_once("<script id=\"script\">").unwrap();
    let (script, _) = script.split_once("</script>").unwrap();
    assert_eq!(git_handoff::model::digest::Digest::compute(script.as_bytes()).to_string(), hash.trim_end());
    assert!(page.contains(hash.trim_end()));
}

/// The page makes no request and has no style or script that a strict policy would have to allow.
#[test]
fn a_page_refers_to_nothing_outside() {
    let repo = mixed();
    let page = repo.env.handoff(["report", "mixed", "-o", "-"]).success();
    let (body, _) = page.split_once("<script").unwrap();
    for word in ["http:", "https:", " style=", "url(", "@import", "<link", "<iframe", "<object"] {
        let body = body.replace("http://www.w3.org/2000/svg", "");
        assert!(!body.contains(word), "{word}");
    }
}

#[test]
fn report_omits_contents_with_its_option() {
    let repo = mixed();
    let page = |content: &str| {
        let page = repo.env.handoff(["report", "mixed", "-o", "-", "--content", content]).success();
        page.split_once("<script").unwrap().0.to_owned()
    };
    let (none, all) = (page("none"), page("all"));
    let row = |html: &str, line: &str| html.lines().any(|text| text == line);
    let left_out = "<tr><th scope=\"row\">Product <bdi>outputs/b</bdi></th><td class=\"code\">\
        sha256:0263829989b6fd954f72baaf2fc64bc2e2f01d692d4de72986ea808f6e99813f, 2 bytes, left out of this page</td></tr>";
    assert!(row(&none, left_out) && !row(&all, left_out));
    assert!(!none.contains("<pre") && all.contains("<pre"));
}

/// A device is not replaced by a file.
#[test]
fn a_page_goes_into_a_pipe_as_it_goes_into_a_file() {
    let env = finished();
    env.handoff(["report", "handoff-dag-1"]).success();
    let line = "mkfifo pipe && (cat pipe >copy & git-handoff report handoff-dag-1 -o pipe; wait) && test -p pipe";
    env.shell("repo", line).success();
    let size = |name: &str| fs::metadata(env.repo().join(name)).unwrap().len();
    assert_eq!(size("copy"), size("handoff-dag-1.html"));
}
