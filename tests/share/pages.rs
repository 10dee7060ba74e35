//! A web page in the place of a remote is no answer, and a repository without runs is one.

use serde_json::Value;

use super::{RUN, pushed, server};
use crate::anchor::answers::{Answer, serve};

const PAGES: [&str; 3] = ["<html>Sign in</html>", "<html>\n<p>Sign in</p>\n</html>\n", ""];

#[test]
fn web_page_is_no_list_of_runs() {
    let env = pushed();
    env.handoff_in("clone", ["fetch"]).success();
    for page in PAGES {
        let (url, _) = serve(move |_, _| Answer { headers: "Content-Type: text/html\r\n".into(), ..Answer::ok(page) });
        env.git_in("clone", ["remote", "set-url", "origin", &url]).success();
        for command in [&["fetch", "--json"][..], &["fetch", "origin", RUN, "--json"], &["push", "--all", "--json"]] {
            let output = env.handoff_in("clone", command).exit(1);
            let error: Value = serde_json::from_str(&output.stderr).unwrap();
            assert_eq!(error["code"], "not-git", "{output}");
            let message = error["message"].as_str().unwrap();
            assert!(
                message.starts_with("origin does not answer like a git repository, but with text/html"),
                "{output}"
            );
            assert_eq!(message.contains("<html>"), !page.is_empty(), "{output}");
        }
    }
    // The URL after `url.<base>.insteadOf` counts, not the name.
    let (url, _) = serve(|_, _| Answer::ok(PAGES[0]));
    env.git_in("clone", ["config", &format!("url.{url}/.insteadOf"), "hub:"]).success();
    env.git_in("clone", ["remote", "set-url", "origin", "hub:x"]).success();
    let output = env.handoff_in("clone", ["fetch"]).exit(1);
    insta::assert_snapshot!(output.stderr, @"error: origin does not answer like a git repository, but with no content type: <html>Sign in</html>");
}

#[test]
fn a_repository_without_runs_is_an_answer() {
    let env = pushed();
    let url = server::serve(env.path());
    env.git_in(".", ["init", "--quiet", "--bare", "empty"]).success();
    env.git_in(".", ["clone", "--quiet", "--bare", "hub", "plain"]).success();
    for reference in env.git_in("plain", ["for-each-ref", "--format=%(refname)", "refs/handoff"]).success().lines() {
        env.git_in("plain", ["update-ref", "-d", reference]).success();
    }
    for name in ["empty", "plain"] {
        let output = env.handoff(["fetch", &format!("{url}/{name}")]).exit(0);
        assert!(output.stderr.starts_with(&format!("there are no runs or threads on {name}-")), "{output}");
    }
    // Served as plain files, with nothing in it and with a branch.
    for refs in ["", "1111111111111111111111111111111111111111\trefs/heads/main\n"] {
        let (second_url, _) = serve(move |request, _| match request {
            request if request.contains("/info/refs") => Answer::ok(refs),
            request if request.contains("/HEAD") => Answer::ok("ref: refs/heads/main\n"),
            _ => Answer { status: "404 Not Found", ..Answer::ok("") },
        });
        let output = env.handoff(["fetch", &format!("{second_url}/x")]).exit(0);
        assert!(output.stderr.starts_with("there are no runs or threads on x-"), "{output}");
    }
}
