//! The programs that send requests to anchors: ours over curl, and those of other people.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use git_handoff::model::digest::Digest;

use super::{RUN, forge, row, sealed, verify};
use crate::common::Environment;
use crate::common::report::find_line;

/// A secret that only the program and curl may know.
const SECRET: &str = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY";

/// Puts a program for a kind of anchor into `PATH`.
fn install(env: &Environment, kind: &str, script: &str) {
    let path = format!("programs/git-handoff-anchor-{kind}");
    env.write(&path, script);
    fs::set_permissions(env.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Configures an anchor without asking it.
fn configure(env: &Environment, settings: &[(&str, &str)]) {
    for (key, value) in settings {
        env.git(["config", &format!("handoff.anchor.vault.{key}"), value]).success();
    }
}

/// Returns the program on the page about programs.
fn example_program() -> String {
    let page = include_str!("../../docs/how-to/write-an-anchor.md");
    let block = page.split("<!-- tried: folder -->\n```sh\n").nth(1).unwrap();
    block.split("```").next().unwrap().to_owned()
}

#[test]
fn a_kind_of_ones_own_is_configured_and_judged_like_the_others() {
    let env = sealed();
    install(&env, "folder", &example_program());
    let place = env.path().join("write once");
    let add =
        |name: &str, folder: &Path| env.handoff(["anchor", "add", name, "program", "folder", folder.to_str().unwrap()]);
    let failed = add("vault", &place).exit(1);
    let why = find_line(&failed.stderr, "error: ");
    assert!(why.starts_with("error: it could not be reached: git-handoff-anchor-folder failed with exit status: 1: "));
    fs::create_dir(&place).unwrap();
    add("vault", &place).success();
    assert_eq!(row(&verify(&env, &[], 3)), "vault: it holds nothing of the run");
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).success(), @"vault  new  run  handoff-dag-1");
    insta::assert_snapshot!(env.handoff(["anchor", "push"]).success(), @"vault  up-to-date  run  handoff-dag-1");
    assert_eq!(row(&verify(&env, &[], 0)), "vault: folder (external)");
    configure(&env, &[("guarantee", "external-immutable")]);
    assert_eq!(verify(&env, &[], 0)["guarantee"], "external-immutable");
    forge(&env);
    assert_eq!(verify(&env, &[], 3)["failure"], "root");
    let pushed = env.handoff(["anchor", "push"]).exit(3).stderr;
    assert!(pushed.starts_with("error: vault: it holds the root "), "{pushed}");
}

#[test]
fn a_program_that_misbehaves_is_never_a_pass() {
    let env = sealed();
    let cases = [
        ("no-json", "echo hello", "git-handoff-anchor-no-json gives no answer of the right form, but: hello"),
        (
            "no-body",
            r#"echo '{"status":"200","body":"?"}'"#,
            "git-handoff-anchor-no-body gives no answer of the right form",
        ),
        ("silent", "cat >/dev/null", "git-handoff-anchor-silent gives no answer of the right form, but:"),
        ("fails", "echo broken >&2; exit 7", "git-handoff-anchor-fails failed with exit status: 7: broken"),
        ("killed", "kill -KILL $$", "git-handoff-anchor-killed failed with exit status: 137: "),
        ("refuses", r#"printf '%s\n' '{"error":"x","message":"no\nway"}'"#, "no way"),
    ];
    for (kind, script, why) in cases {
        install(&env, kind, &format!("#!/bin/sh\n{script}\n"));
        configure(&env, &[("type", kind), ("url", "place")]);
        let report = verify(&env, &[], 3);
        assert_eq!(report["failure"], "anchor-missing");
        let detail = row(&report);
        assert!(detail.starts_with(&format!("vault: it could not be reached: {why}")), "{kind}: {detail}");
    }
    install(&env, "endless", "#!/bin/sh\nyes\n");
    configure(&env, &[("type", "endless")]);
    assert_eq!(row(&verify(&env, &[], 3)), "vault: the answer is longer than 4194304 bytes");
    // Without its program, a kind is none.
    configure(&env, &[("type", "gone")]);
    insta::assert_snapshot!(env.handoff(["verify", RUN]).exit(1).stderr, @"
    error: the setting `handoff.anchor.vault.type` is no kind of anchor
    caused by: there is no program git-handoff-anchor-gone beside git-handoff or in PATH
    hint: git config --show-origin --get-all handoff.anchor.vault.type
    ");
}

/// Waits until a file has a number in each line, and returns them.
fn numbers(path: &Path, many: usize) -> Vec<i32> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        let numbers: Vec<i32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if numbers.len() == many {
            return numbers;
        }
        assert!(Instant::now() < until, "{text:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until none of the processes runs any more.
fn end(pids: &[i32]) {
    let until = Instant::now() + Duration::from_secs(60);
    let runs = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
    };
    while pids.iter().any(runs) {
        assert!(Instant::now() < until, "they run on: {pids:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that answers nothing, and starts another that does not end either.
fn hanging(env: &Environment) -> PathBuf {
    let pids = env.path().join("pids");
    let script = format!("#!/bin/sh\nsleep 600 &\nprintf '%s\\n' $$ $! >>'{}'\nwait\n", pids.display());
    install(env, "hangs", &script);
    configure(env, &[("type", "hangs"), ("url", "place")]);
    pids
}

#[test]
fn a_program_that_hangs_is_killed_with_all_that_it_started() {
    let env = sealed();
    let pids = hanging(&env);
    configure(&env, &[("timeout", "1")]);
    assert_eq!(row(&verify(&env, &[], 3)), "vault: there was no answer after 1 seconds");
    end(&numbers(&pids, 2));
}

#[test]
fn a_program_ends_with_git_handoff() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let env = sealed();
        let pids = hanging(&env);
        let mut command = env.command("git-handoff", "repo");
        let mut child = command.args(["verify", RUN]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = numbers(&pids, 2);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait().unwrap().success());
        end(&started);
    }
}

/// Returns the arguments or the environment of each process of a program.
fn of_processes(file: &str, program: &str) -> Vec<String> {
    let read = |path: PathBuf| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let matching =
        processes.filter(|path| program.is_empty() || read(path.join("comm")).is_some_and(|n| n.trim() == program));
    matching.filter_map(|path| read(path.join(file))).collect()
}

/// A server that records the head of each request, and what can be seen of processes meanwhile.
#[derive(Clone, Default)]
struct Seen {
    heads: Arc<Mutex<Vec<String>>>,
    arguments: Arc<Mutex<Vec<String>>>,
    of_curl: Arc<Mutex<Vec<String>>>,
}

impl Seen {
    /// Serves until the test's process ends; returns the URL.
    fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let own = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                own.answer(stream);
            }
        });
        url
    }

    fn answer(&self, mut stream: TcpStream) {
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        self.heads.lock().unwrap().push(head.join("\n") + "\n");
        self.arguments.lock().unwrap().extend(of_processes("cmdline", ""));
        self.of_curl.lock().unwrap().extend(of_processes("environ", "curl"));
        let body = "<ListVersionsResult/>";
        let length = body.len();
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    }
}

#[test]
fn a_secret_is_on_no_command_line_and_in_no_environment_of_another() {
    let env = sealed();
    let captured = Seen::default();
    configure(&env, &[("type", "s3"), ("bucket", "evidence"), ("endpoint", &captured.serve())]);
    let mut command = env.command("git-handoff", "repo");
    command.args(["verify", RUN]).env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.env("AWS_SESSION_TOKEN", format!("token-{SECRET}"));
    env.ended(command).ends(3);
    let (heads, arguments, of_curl) =
        (captured.heads.lock().unwrap(), captured.arguments.lock().unwrap(), captured.of_curl.lock().unwrap());
    assert!(heads[0].contains("Credential=AKID/") && heads[0].contains(&format!("token-{SECRET}")), "{}", heads[0]);
    assert!(arguments.iter().any(|line| line.starts_with("curl\0")), "curl ran meanwhile");
    assert!(!arguments.iter().any(|line| line.contains(SECRET)));
    // Other tests may run curl at the same time.
    let of_curl: Vec<_> = of_curl.iter().filter(|all| all.contains(env.path().to_str().unwrap())).collect();
    assert!(!of_curl.is_empty() && !of_curl.iter().any(|all| all.contains(SECRET)));
}

#[test]
fn the_configuration_goes_before_the_environment_and_that_before_the_file() {
    let env = sealed();
    let captured = Seen::default();
    configure(&env, &[("type", "s3"), ("bucket", "evidence"), ("endpoint", &captured.serve())]);
    env.write(
        "home/.aws/credentials",
        "[default]\naws_access_key_id=F\naws_secret_access_key = s\n# [other]\n[ other ]\naws_access_key_id = O\n\
         aws_secret_access_key = s=\"t\\\naws_session_token = tok\n[half]\naws_access_key_id = H\n",
    );
    let both = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "s")];
    let ask = |variables: &[(&str, &str)]| {
        let mut command = env.command("git-handoff", "repo");
        command.args(["verify", "--json", RUN]).envs(variables.iter().copied());
        let output = env.ended(command).exit(3);
        let heads = std::mem::take(&mut *captured.heads.lock().unwrap()).join("\n");
        let key = heads.split("Credential=").nth(1).map(|rest| rest.split('/').next().unwrap().to_owned());
        (key, heads.contains("x-amz-security-token: tok"), row(&super::json(&output)).to_owned())
    };
    let key = |variables: &[(&str, &str)]| ask(variables).0;
    assert_eq!(key(&[]).as_deref(), Some("F"));
    assert_eq!(key(&both).as_deref(), Some("E"));
    assert_eq!(key(&both[..1]).as_deref(), Some("F"));
    assert_eq!(key(&[("AWS_PROFILE", "other")]).as_deref(), Some("O"));
    assert_eq!(key(&[("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")]), None);
    assert_eq!(key(&[("AWS_PROFILE", "half")]), None);
    configure(&env, &[("profile", "other")]);
    assert_eq!(ask(&both), (Some("O".into()), true, "lock: it holds nothing of the run".replace("lock", "vault")));
    configure(&env, &[("credentials", "~/.aws/credentials")]);
    assert_eq!(key(&both).as_deref(), Some("O"));
    configure(&env, &[("profile", "half")]);
    let half = "vault: $TEST/home/.aws/credentials has no access key and secret in its section [half]";
    assert_eq!(ask(&both), (None, false, half.to_owned()));
    configure(&env, &[("credentials", "~/gone")]);
    let gone = "vault: the credentials in $TEST/home/gone could not be read";
    assert_eq!(ask(&both), (None, false, gone.to_owned()));
}

#[test]
fn missing_curl_gives_a_hint() {
    let env = sealed();
    let folder = env.path().join("few");
    fs::create_dir(&folder).unwrap();
    for program in ["awk", "base64", "cat", "git", "sed", "sh", "tr"] {
        let found = env.shell("", &format!("command -v {program}")).success();
        symlink(found.trim(), folder.join(program)).unwrap();
    }
    configure(&env, &[("type", "s3"), ("bucket", "evidence"), ("endpoint", "http://127.0.0.1:1")]);
    let mut command = env.command("git-handoff", "repo");
    command.args(["verify", "--json", RUN]).env("PATH", folder);
    let output = env.ended(command).exit(3);
    assert_eq!(
        row(&super::json(&output)),
        "vault: it could not be reached: curl is missing, which sends requests; install it: sudo apt-get install curl"
    );
}

/// Computes the code of a message by HMAC with SHA-256.
fn code(key: &[u8], message: &str) -> [u8; 32] {
    let pad = |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or_default() ^ with).collect() };
    let inner = Digest::compute(&[&pad(0x36), message.as_bytes()].concat());
    *Digest::compute(&[&pad(0x5c)[..], inner.as_bytes()].concat()).as_bytes()
}

/// Returns the signature that a request must have, by the rules of AWS, version 4.
fn signature(head: &str, signed: &str, scope: &str) -> String {
    let (first, rest) = head.split_once('\n').unwrap();
    let [method, target, _] = first.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| {
        let mut headers = rest.lines().filter_map(|line| line.split_once(':'));
        headers.find(|(own, _)| own.eq_ignore_ascii_case(name)).unwrap().1.trim()
    };
    let headers: Vec<String> = signed.split(';').map(|name| format!("{name}:{}\n", header(name))).collect();
    let headers = headers.concat();
    let payload = header("x-amz-content-sha256");
    let request = format!("{method}\n{path}\n{query}\n{headers}\n{signed}\n{payload}");
    let hash = Digest::compute(request.as_bytes()).hex();
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{hash}", header("x-amz-date"));
    let key = scope.split('/').fold(format!("AWS4{SECRET}").into_bytes(), |key, part| code(&key, part).to_vec());
    Digest::from_bytes(code(&key, &text)).hex()
}

#[test]
fn requests_match_the_aws_signature_examples() {
    let env = sealed();
    let captured = Seen::default();
    configure(
        &env,
        &[("type", "s3"), ("bucket", "evidence"), ("endpoint", &captured.serve()), ("region", "eu-central-1")],
    );
    for (arguments, code) in [(&["verify", RUN][..], 3), (&["anchor", "push"], 1)] {
        let mut command = env.command("git-handoff", "repo");
        command
            .args(arguments)
            .env("AWS_ACCESS_KEY_ID", "AKID")
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_SESSION_TOKEN", "tok/en==");
        env.ended(command).ends(code);
    }
    let heads = captured.heads.lock().unwrap();
    assert!(heads.iter().any(|head| head.starts_with("PUT ")) && heads[0].starts_with("GET "), "{heads:?}");
    for head in heads.iter() {
        let between = |from: &str, to: &str| head.split(from).nth(1).unwrap().split(to).next().unwrap().to_owned();
        let (signed, scope) = (between("SignedHeaders=", ","), between("Credential=AKID/", ","));
        assert!(scope.ends_with("/eu-central-1/s3/aws4_request"), "{scope}");
        assert_eq!(between("Signature=", "\n"), signature(head, &signed, &scope), "{head}");
        let must = head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0.to_ascii_lowercase()));
        let must = must.filter(|name| name == "host" || name.starts_with("x-amz-"));
        must.for_each(|name| assert!(signed.split(';').any(|one| one == name), "{name} is not signed"));
    }
}
