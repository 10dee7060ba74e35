//! A driver takes no work while its machine lacks something, and other drivers do the work.

use serde_json::{Value, json};

use crate::bad_days::mount::Mount;
use crate::common::repo::{after, item, wait_for};
use crate::common::report::find_line;

use super::{Hub, plan};

#[test]
fn a_driver_with_a_full_disk_leaves_the_work_to_others() {
    let items: Vec<_> = (0..4).map(|at| item(&format!("i{at}"), "echo x >outputs/x")).collect();
    let hub = Hub::new(&plan(&items));
    let Some(mount) = Mount::tmpfs("2m", &hub.repo.path("small")) else { return };
    mount.fill(0);
    hub.clone("near", &[]);
    let small = hub.repo.path("small");
    hub.repo.config("handoff.workspace.root", small.to_str().unwrap());
    let mut full = hub.drive("repo");
    wait_for("a driver that takes no work", || full.is_over() || full.stderr().contains("nothing more is started"));
    assert!(!full.is_over(), "{}", full.stderr());
    let (status, output) = hub.drive("near").wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let (full_status, full_output) = full.wait();
    assert_eq!(full_status.code(), Some(0), "{full_output}");
    hub.ends_well(4);
    // Nothing failed, and each attempt on the full disk was handed back.
    assert!(hub.of_kind("item.retried").is_empty());
    let back = hub.of_kind("item.requeued");
    assert!(!back.is_empty() && back.iter().all(|entry| entry["reason"] == "operator"), "{back:?}");
}

#[test]
fn a_machine_without_a_program_declines_the_item() {
    let mut made = item("made", "");
    made["inputs"]["command"] = json!(["special"]);
    let hub = Hub::new(&plan(&[made, item("plain", "echo x >outputs/x"), after("last", &["made"], "true")]));
    let mut lacking = hub.drive("repo");
    hub.wait_for("item.reconciled", "plain");
    let why = "the program `special` is not installed here";
    let note = format!("made: cannot be run here: {why}; it is left to other machines");
    wait_for("the note", || lacking.is_over() || lacking.stderr().lines().any(|line| line == note));
    assert!(!lacking.is_over(), "{}", lacking.stderr());
    // Its beat says so, and `status` shows it.
    let declines = || {
        let (_, out, err) = hub.command("repo", &["status", "--drivers", "--json", "r"]);
        let drivers_report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        drivers_report["drivers"][0]["declines"].clone()
    };
    wait_for("a beat", || declines() == json!([{ "why": why, "items": ["made"] }]));
    let (_, out, _) = hub.command("repo", &["status", "--drivers", "r"]);
    assert!(out.lines().any(|line| line.ends_with(&format!("does not run made; it lacks: {why}"))), "{out}");
    // So do `status` and `waiting`, since no driver can run it.
    let line = |command: &[&str], start: &str| {
        let (_, second_out, err) = hub.command("repo", command);
        let line =
            second_out.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{second_out}{err}"));
        line.split_once(" lacks: ").unwrap().1.to_owned()
    };
    assert_eq!(line(&["status", "r"], "made: declined by every driver: driver "), why);
    assert_eq!(line(&["waiting"], "r/made: declined by every driver: driver "), why);
    let (_, waiting_out, _) = hub.command("repo", &["waiting", "--json"]);
    let waiting: Value = serde_json::from_str(&waiting_out).unwrap();
    assert_eq!((&waiting["declined"][0]["item"], &waiting["declined"][0]["byAll"]), (&"made".into(), &true.into()));
    hub.clone("able", &[]);
    hub.repo.env.write("bin/special", "#!/bin/sh\n");
    hub.repo.env.shell("", "chmod +x bin/special").success();
    let able = hub.drive_with("able", |command| {
        let path =
            command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path.map(ToOwned::to_owned));
        let path = path.or_else(|| std::env::var_os("PATH")).unwrap();
        let mut with = hub.repo.path("bin:").into_os_string();
        with.push(path);
        command.env("PATH", with);
    });
    let (status, output) = able.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let (lacking_status, lacking_output) = lacking.wait();
    assert_eq!(lacking_status.code(), Some(0), "{lacking_output}");
    hub.ends_well(3);
    assert!(hub.of_kind("item.retried").is_empty() && hub.of_kind("item.requeued").is_empty());
}

/// Returns the fingerprint of a public key in a file.
fn fingerprint(hub: &Hub, file: &str) -> String {
    let printed = std::process::Command::new("ssh-keygen").arg("-lf").arg(hub.repo.path(file)).output().unwrap();
    String::from_utf8(printed.stdout).unwrap().split_whitespace().nth(1).unwrap().to_owned()
}

/// Revokes a key in one clone.
fn revoke(hub: &Hub, clone: &str, key: &str) {
    hub.repo.env.write("revoked", &format!("{key}\n"));
    let file = hub.repo.path("revoked");
    hub.repo.env.git_in(clone, ["config", "handoff.revoked", file.to_str().unwrap()]).success();
}

/// Returns a command that waits for a file.
fn waits(file: &str) -> String {
    format!("until test -e \"$HOME/../{file}\"; do sleep 0.02; done; echo x >outputs/x")
}

#[test]
fn a_driver_ends_when_its_own_key_is_revoked() {
    let hub = Hub::new(&plan(&[item("a", &waits("never")), after("b", &["a"], "true")]));
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "a");
    let line = hub.repo.env.handoff(["key"]).success();
    let key: Vec<&str> = line.split_whitespace().skip_while(|word| !word.starts_with("ssh-")).collect();
    hub.repo.env.write("key.pub", &key.join(" "));
    let second_key = fingerprint(&hub, "key.pub");
    revoke(&hub, "repo", &second_key);
    let (status, output) = driver.wait();
    assert_eq!(status.code(), Some(1), "{output}");
    let error = format!("error: the key {second_key}, with which this driver of the run \"r\" signs, is revoked here");
    assert!(output.lines().any(|row| row == error), "{output}");
    // Nothing was recorded with it since.
    assert_eq!(hub.entries().last().unwrap()["kind"], "item.fired");
}

#[test]
fn a_driver_takes_nothing_more_from_a_key_that_is_revoked_while_it_runs() {
    let hub = Hub::new(&plan(&[item("a", &waits("never")), item("b", &waits("go"))]));
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    hub.admit_b();
    let first = hub.drive("repo");
    hub.wait_for("item.fired", "a");
    let _second = hub.drive("b");
    hub.wait_for("item.fired", "b");
    let key = fingerprint(&hub, "b/key.pub");
    revoke(&hub, "repo", &key);
    let note = format!("the key {key} is revoked here: nothing more is taken from it");
    wait_for("the note", || first.stderr().lines().any(|line| line == note));
    hub.repo.env.write("go", "");
    hub.wait_for("item.reconciled", "b");
    let (status, output) = first.wait();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains(&format!("of the key {key}: the key is revoked here")), "{output}");
    assert_eq!(hub.repo.item("r", "b").status, "running");
}

#[test]
fn driver_that_does_not_wait_names_the_next_command() {
    let approval = json!({ "id": "sign-off", "executor": "approval", "depends_on": ["a"] });
    let hub = Hub::new(&plan(&[item("a", "echo x >outputs/x"), approval, after("b", &["sign-off"], "true")]));
    let (status, output) = hub.drive("repo").wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let again = "git handoff run r --via origin";
    let line = format!("no driver waits for the decision; who decides takes the run up again: {again}");
    assert!(output.lines().any(|text| text == line), "{output}");
    let (code, _, stderr) = hub.command("repo", &["approve", "r/sign-off"]);
    assert_eq!((code, find_line(&stderr, "hint: ")), (Some(0), format!("hint: {again}").as_str()));
    let (second_status, second_output) = hub.drive("repo").wait();
    assert_eq!(second_status.code(), Some(0), "{second_output}");
    assert_eq!(hub.of_kind("run.sealed").len(), 1);
}

#[test]
fn a_driver_without_slots_joins_and_leaves_the_work_to_others() {
    let hub = Hub::new(&plan(&[item("i0", &waits("go")), item("i1", "true"), item("i2", "true"), item("i3", "true")]));
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "1"]).success();
    let driver = hub.drive("repo");
    hub.wait_for("item.fired", "i0");
    hub.clone("b", &[]);
    let dir = hub.repo.path("b");
    let watching = hub.repo.start_with(&["run", "r", "--via", "origin", "-j", "0"], |command| {
        command.current_dir(dir).env_remove("HANDOFF_CLOCK");
    });
    let note = "r: joined without working: other drivers run its items";
    wait_for("the note", || watching.stderr().lines().any(|line| line == note));
    hub.wait_for_beats(2);
    // It would have had time to claim the items that are ready.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(hub.of_kind("item.fired").len(), 1);
    let (_, out, stderr) = hub.command("b", &["status", "r", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{stderr}"));
    assert_eq!(status["pace"], Value::Null, "no item ended yet");
    hub.repo.env.write("go", "");
    for any_driver in [driver, watching] {
        let (driver_status, output) = any_driver.wait();
        assert_eq!(driver_status.code(), Some(0), "{output}");
    }
    hub.ends_well(4);
    let fired = hub.of_kind("item.fired");
    assert!(fired.iter().all(|entry| entry["driver"] == fired[0]["driver"]), "{fired:?}");
    let (code, _, run_stderr) = hub.command("b", &["run", "r", "-j", "0"]);
    assert_eq!(code, Some(2), "{run_stderr}");
    assert_eq!(find_line(&run_stderr, "error: "), "error: --jobs 0 runs nothing here, so it needs --via");
}

#[test]
fn status_estimates_the_end_from_the_last_items() {
    let items: Vec<_> = (0..8).map(|at| item(&format!("i{at}"), "sleep 0.1")).collect();
    let hub = Hub::new(&plan(&[&items[..], &[item("w0", &waits("go")), item("w1", &waits("go"))]].concat()));
    hub.repo.env.git(["config", "--global", "handoff.queue.default.concurrency", "2"]).success();
    let driver = hub.drive("repo");
    wait_for("eight ends", || hub.of_kind("item.reconciled").len() == 8);
    hub.wait_for("item.fired", "w1");
    let (_, out, stderr) = hub.command("repo", &["status", "r", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{stderr}"));
    let pace = &status["pace"];
    let of = |field: &str| pace[field].as_u64().unwrap_or_else(|| panic!("{status}"));
    assert_eq!((of("items"), of("leftMs")), (7, of("withinMs") * 2 / 7));
    let (_, status_out, _) = hub.command("repo", &["status", "r"]);
    assert!(
        status_out.lines().any(|line| line.starts_with("about ") && line.contains(" left, as the last 7 items took "))
    );
    hub.repo.env.write("go", "");
    let (driver_status, output) = driver.wait();
    assert_eq!(driver_status.code(), Some(0), "{output}");
}
