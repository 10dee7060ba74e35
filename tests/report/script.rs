//! The second implementation of the format, in JavaScript: it agrees with the program on every
//! vector, and on every page that the program writes.

use std::fs;
use std::process::Command;

use crate::common::repo::TestRepo;
use crate::report::pages::mixed;

/// Runs a script with node, which `.ci/prepare` installs, and returns its last line.
#[track_caller]
fn node(script: &str, arguments: &[&std::path::Path]) -> String {
    let mut command = Command::new("node");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).arg(script).args(arguments);
    let output = command.output().expect("node is installed; see .ci/prepare");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn every_vector_has_the_same_verdict() {
    let last = node("tests/interop/vectors.mjs", &[]);
    let index = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/vectors/vectors.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let lists = ["vectors", "threads", "proofs", "refused"];
    let all = lists.map(|list| index[list].as_array().unwrap().len()).iter().sum::<usize>();
    assert!(last.starts_with(&format!("{all} of {all} agree")), "{last}");
}

#[test]
fn every_change_of_a_page_is_found() {
    let repo = mixed();
    repo.env.handoff(["report", "mixed", "-o", "../mixed.html"]).success();
    node("tests/interop/pages.mjs", &[&repo.env.path().join("mixed.html")]);
}

#[test]
fn pages_of_all_kinds_are_recomputed() {
    let repo = mixed();
    hostile(&repo);
    repo.env.shell("repo", "printf '<b>\\0' >../state").success();
    repo.env.handoff(["checkpoint", "login", "--state", "../state", "--summary", "</script>"]).success();
    repo.env.handoff(["fork", "login", "--as", "fork"]).success();
    let pages: [(&str, &[&str]); 6] = [
        ("hostile", &["hostile"]),
        ("open", &["open"]),
        ("none", &["mixed", "--content", "none"]),
        ("all", &["mixed", "--content", "all"]),
        ("several", &["mixed", "hostile", "open", "login"]),
        ("threads", &["login", "fork"]),
    ];
    let mut paths = Vec::new();
    for (name, arguments) in pages {
        let path = repo.env.path().join(format!("{name}.html"));
        repo.env.handoff([&["report", "-o", path.to_str().unwrap()], arguments].concat()).success();
        paths.push(path);
    }
    let mut arguments = vec![std::path::Path::new("--only-check")];
    arguments.extend(paths.iter().map(std::path::PathBuf::as_path));
    node("tests/interop/pages.mjs", &arguments);
}

/// The evidence of a page has no log that is about nothing on it, also if the log is a true one.
#[test]
fn a_log_of_another_run_in_the_evidence_is_found() {
    let repo = mixed();
    repo.drive("other", &[crate::common::repo::item("a", "true")]).ends(0);
    let page = repo.env.path().join("mixed.html");
    repo.env.handoff(["report", "mixed", "-o", page.to_str().unwrap()]).success();
    repo.env.git(["init", "--quiet", "--bare", "../scratch.git"]).success();
    let logs = |run: &str| {
        let file = format!("../{run}.bundle");
        repo.env.handoff(["bundle", run, "--output", &file]).success();
        repo.env.git_in("scratch.git", ["fetch", "--quiet", &file, "refs/handoff/*:refs/handoff/*"]).success();
        let listed = repo.env.git(["bundle", "list-heads", &file]).success();
        let names = listed.lines().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned);
        names.filter(|name| name.starts_with("refs/handoff/logs/")).collect::<Vec<_>>()
    };
    let (own, other) = (logs("mixed"), logs("other"));
    assert!(!own.is_empty() && other.iter().all(|log| !own.contains(log)), "{own:?} {other:?}");
    let judged = |texts: &[String]| {
        let evidence = repo.env.path().join("forged.bundle");
        let mut words = vec!["bundle", "create", "--quiet", evidence.to_str().unwrap(), "refs/handoff/runs/mixed"];
        words.extend(texts.iter().map(String::as_str));
        repo.env.git_in("scratch.git", words).success();
        node("tests/interop/pages.mjs", &[std::path::Path::new("--evidence"), &evidence, &page])
    };
    assert_eq!(judged(&own), "partial");
    let both = [own, other.clone()].concat();
    assert_eq!(judged(&both), format!("tampered; {} in the evidence is about nothing on the page", other[0]));
}

/// Runs whose names and contents have a meaning in HTML, and one that is still open.
fn hostile(repo: &TestRepo) {
    let command = "printf '<script>alert(1)</script>\\r\\n\\x00\\xff' >outputs/x; printf 'a&b\\n' >'outputs/1'; \
                   printf '\\n\\xe2\\x80\\xae]]>' >'outputs/0'; printf '\\x89PNG\\r\\n\\x1a\\n' >outputs/i.png";
    let items = serde_json::json!([
        { "id": "a\"b'<i>&amp;", "executor": "command", "inputs": { "command": command, "goal": "--><svg onload=x>" } },
        { "id": "日本\u{5d0}", "executor": "command", "inputs": { "command": "exit 1" }, "maxAttempts": 1,
          "needs": { "10": { "from": "a\"b'<i>&amp;", "select": { "kind": "output", "path": "1" } },
                     "9": { "from": "a\"b'<i>&amp;", "select": { "kind": "output", "path": "0" } } } },
    ]);
    repo.drive("hostile", items.as_array().unwrap()).ends(4);
    repo.submit("open", items.as_array().unwrap());
}
