//! Servers that answer with something else than what was asked for: the place could not be asked,
//! and holds no less for it.

use std::sync::Mutex;

use super::answers::{Answer, serve};
use super::tsa::Authority;
use super::{RUN, sealed};
use crate::common::Environment;
use crate::common::report::find_line;

/// Answers that a proxy, a portal or a console gives with status 200, and how each is shown.
const PAGES: [(&str, &str, &str); 5] = [
    ("text/html", "<html>console</html>", "<html>console</html>"),
    ("text/html", "<!doctype html>\n<html>\n<p>Sign in</p>\n</html>\n", "<"),
    ("text/html", "<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\"><p/></html>\n", "<"),
    ("application/json", "{\"error\":\"blocked\"}", "{\"error\":\"blocked\"}"),
    ("text/plain", "", ""),
];

fn page(kind: &'static str, body: &'static str) -> String {
    let (url, _) = serve(move |_, _| Answer { headers: format!("Content-Type: {kind}\r\n"), ..Answer::ok(body) });
    url
}

/// Takes away every run and log.
fn lose_all(env: &Environment) {
    for reference in env.git(["for-each-ref", "--format=%(refname)", "refs/handoff"]).success().lines() {
        env.git(["update-ref", "-d", reference]).success();
    }
}

fn silent(env: &Environment, why: &str) {
    for command in [&["anchor", "check"][..], &["verify", "--all"]] {
        let output = env.handoff(command).exit(3);
        assert!(
            output.stderr.starts_with(&format!("error: the anchor a does not say what it holds: {why}")),
            "{output}"
        );
    }
}

#[test]
fn git_anchor_fails_behind_a_page() {
    let env = sealed();
    env.git_in("", ["init", "--quiet", "--bare", "vault.git"]).success();
    env.handoff(["anchor", "add", "a", "git", "../vault.git"]).success();
    env.handoff(["anchor", "push"]).success();
    lose_all(&env);
    insta::assert_snapshot!(env.handoff(["anchor", "check"]).exit(3).stderr, @"error: the ref refs/handoff/runs/handoff-dag-1 is gone, but the anchor a holds the run");
    for (kind, body, message) in PAGES {
        let url = format!("{}/vault.git", page(kind, body));
        let end = if message.is_empty() { String::new() } else { format!(": {message}") };
        let why = format!("{url} does not answer like a git repository, but with {kind}{end}");
        env.git(["config", "handoff.anchor.a.url", &url]).success();
        silent(&env, &why);
        let added = env.handoff(["anchor", "add", "b", "git", &url]).exit(1);
        assert!(added.stderr.starts_with(&format!("error: {why}")), "{added}");
        assert!(env.git(["config", "--get-regexp", r"^handoff\.anchor\.b\."]).status == Some(1));
    }
}

#[test]
fn s3_anchor_fails_behind_a_page() {
    let env = sealed();
    let with = |key: &str, value: &str| env.git(["config", &format!("handoff.anchor.a.{key}"), value]).success();
    with("type", "s3");
    with("bucket", "evidence");
    lose_all(&env);
    let error = "<?xml version=\"1.0\"?><Error><Code>InternalError</Code><Message>Try again.</Message></Error>";
    let plain = "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>";
    let own: [(&str, &str, &str); 4] = [
        ("application/xml", error, "S3 answers InternalError (status 200): Try again."),
        ("application/xml", plain, "the answer is not one of S3's: <ListBucketResult>"),
        ("application/xml", "<ListVersionsResult>", "the answer is not one of S3's: "),
        ("application/xml", "<ObjectLockConfiguration/>", ""),
    ];
    for (kind, body, message) in PAGES.into_iter().chain(own) {
        let whole = message.starts_with("S3 answers") || message.starts_with("the answer");
        let why = if whole { message.to_owned() } else { format!("the answer is not one of S3's: {message}") };
        let url = page(kind, body);
        with("endpoint", &url);
        silent(&env, &why);
        let added = env.handoff(["anchor", "add", "b", "s3", "evidence", "--endpoint", &url]).exit(1);
        let no_lock = "error: the bucket has no Object Lock, so its writers could change the objects\n";
        let as_said = added.stderr.starts_with(&format!("error: {why}"));
        // Asked for the lock, this form is one of the right kind, and says that there is none.
        assert!(
            if body.starts_with("<ObjectLock") { added.stderr.starts_with(no_lock) } else { as_said || whole },
            "{added}"
        );
    }
}

#[test]
fn a_server_that_lists_no_versions_is_not_configured() {
    let env = sealed();
    let lock = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";
    let listings = [
        ("<ListBucketResult/>", Some("<ListBucketResult/>")),
        (
            "<ListVersionsResult><Contents><Key>k</Key></Contents></ListVersionsResult>",
            Some("it lists the object k where versions were asked for"),
        ),
        (
            "<ListVersionsResult><Prefix>other/</Prefix></ListVersionsResult>",
            Some("it lists what begins with \"other/\" instead of \"git-handoff/\""),
        ),
        ("<ListVersionsResult><IsTruncated>false</IsTruncated></ListVersionsResult>", None),
    ];
    for (at, (listing, why)) in listings.into_iter().enumerate() {
        let (url, _) =
            serve(move |request, _| Answer::ok(if request.contains("object-lock") { lock } else { listing }));
        let output = env.handoff(["anchor", "add", &format!("place-{at}"), "s3", "evidence", "--endpoint", &url]);
        match why {
            Some(why) => {
                let error = format!("error: the answer is not one of S3's: {why}\n");
                assert_eq!((output.stderr.as_str(), output.status), (error.as_str(), Some(1)));
            }
            None => output.ends(0),
        }
    }
}

#[test]
fn push_fails_when_the_object_is_not_locked() {
    let env = sealed();
    let lock = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>";
    // It keeps what is put, and drops the headers that lock it.
    let locked_object: Mutex<Vec<u8>> = Mutex::default();
    let (url, _) = serve(move |request, body| {
        let mut stored = locked_object.lock().unwrap();
        if request.starts_with("PUT") {
            *stored = body.to_vec();
            return Answer { status: "204 No Content", ..Answer::ok("") };
        }
        if request.contains("object-lock") || stored.is_empty() {
            return Answer::ok(if request.contains("object-lock") { lock } else { "<ListVersionsResult/>" });
        }
        if !request.contains("versions=") {
            return Answer::ok(stored.clone());
        }
        let key = request.split("prefix=").nth(1).unwrap().split('&').next().unwrap();
        let size = stored.len();
        Answer::ok(format!(
            "<ListVersionsResult><EncodingType>url</EncodingType><Version><Key>{key}</Key><VersionId>1</VersionId>\
             <LastModified>2026-06-04T03:00:00Z</LastModified><Size>{size}</Size></Version></ListVersionsResult>"
        ))
    });
    env.handoff(["anchor", "add", "a", "s3", "evidence", "--endpoint", &url]).success();
    let output = env.handoff(["anchor", "push"]).exit(1);
    insta::assert_snapshot!(output.stderr, @"
    error: a: what was put of run handoff-dag-1 can be taken away again: it is under no retention
    hint: aws s3api create-bucket --object-lock-enabled-for-bucket --bucket NAME
    ");
    // It is there now, and worth less.
    env.handoff(["anchor", "push"]).success();
    let checked = env.handoff(["anchor", "check"]).exit(0).stdout;
    let row = checked.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(row, format!("{RUN} a external holds it is under no retention"));
}

#[test]
fn a_refusal_of_s3_comes_with_what_helps() {
    let env = sealed();
    let credentials = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or: \
                       git config handoff.anchor.NAME.profile PROFILE";
    let rights = "grant the key s3:ListBucketVersions, s3:GetObjectVersion, s3:GetObjectRetention and, to publish, \
                  s3:PutObject and s3:PutObjectRetention";
    let region = "git config handoff.anchor.NAME.region REGION   # when you add the anchor: --region REGION";
    for (status, code, hint) in [
        (
            "403 Forbidden",
            "RequestTimeTooSkewed",
            "date -u   # set the clock of this machine, then the same command again",
        ),
        ("403 Forbidden", "SignatureDoesNotMatch", credentials),
        ("400 Bad Request", "ExpiredToken", credentials),
        ("403 Forbidden", "AccessDenied", rights),
        ("400 Bad Request", "AuthorizationHeaderMalformed", region),
        ("307 Temporary Redirect", "TemporaryRedirect", region),
        ("404 Not Found", "NoSuchBucket", "aws s3api create-bucket --object-lock-enabled-for-bucket --bucket NAME"),
        ("503 Slow Down", "SlowDown", "the same command again, a little later"),
    ] {
        let (url, _) = serve(move |_, _| Answer {
            status,
            headers: "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n".to_owned(),
            body: format!("<Error><Code>{code}</Code><Message>It says why.</Message></Error>").into(),
        });
        let output = env.handoff(["anchor", "add", "a", "s3", "evidence", "--endpoint", &url]).exit(1);
        assert_eq!(find_line(&output.stderr, "hint: "), format!("hint: {hint}"), "{code}");
        if code == "RequestTimeTooSkewed" {
            insta::assert_snapshot!(find_line(&output.stderr, "error: "), @"error: S3 answers RequestTimeTooSkewed (status 403): It says why. Its answer is dated Mon, 01 Jan 2024 00:00:00 GMT, and it is 2026-06-04T02:00:05.000Z here.");
        }
    }
}

#[test]
fn a_time_stamping_authority_behind_a_page_is_not_configured() {
    let env = sealed();
    let ca = Authority::new(&env.path().join("tsa"), &["-algorithm", "ed25519"]).ca();
    for (kind, body, text) in PAGES {
        let output = env.handoff(["anchor", "add", "tsa", "rfc3161", &page(kind, body), "--ca", &ca]).exit(1);
        let message = if body.is_empty() { "it is empty" } else { text };
        assert!(output.stderr.starts_with(&format!("error: the answer is no time stamp: {message}")), "{output}");
    }
    let down = |_: &str, _: &[u8]| Answer { status: "502 Bad Gateway", ..Answer::ok("<h1>Bad Gateway</h1>") };
    let output = env.handoff(["anchor", "add", "tsa", "rfc3161", &serve(down).0, "--ca", &ca]).exit(1);
    assert!(output.stderr.starts_with("error: it answers with status 502: <h1>Bad Gateway</h1>"), "{output}");
    assert!(env.handoff(["anchor", "list"]).success().starts_with("local"), "{RUN}");
}
