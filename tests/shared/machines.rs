//! What one machine lacks is no matter of the run: its driver takes no work, and others do it.

use serde_json::{Value, json};

use crate::bad_days::mount::Mount;
use crate::common::repo::{after, item, wait_for};

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
    wait_for("a driver that takes no work", || full.is_over() || full.said().contains("nothing more is started"));
    assert!(!full.is_over(), "{}", full.said());
    let (status, said) = hub.drive("near").wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let (status, said) = full.wait();
    assert_eq!(status.code(), Some(0), "{said}");
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
    wait_for("the note", || lacking.is_over() || lacking.said().lines().any(|line| line == note));
    assert!(!lacking.is_over(), "{}", lacking.said());
    // Its beat says so, and `status` shows it.
    let declines = || {
        let (_, out, err) = hub.command("repo", &["status", "--drivers", "--json", "r"]);
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        shown["drivers"][0]["declines"].clone()
    };
    wait_for("a beat", || declines() == json!([{ "why": why, "items": ["made"] }]));
    let (_, out, _) = hub.command("repo", &["status", "--drivers", "r"]);
    assert!(out.lines().any(|line| line.ends_with(&format!("does not run made; it lacks: {why}"))), "{out}");
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
    let (status, said) = able.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let (status, said) = lacking.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    hub.ends_well(3);
    assert!(hub.of_kind("item.retried").is_empty() && hub.of_kind("item.requeued").is_empty());
}

#[test]
fn a_driver_ends_when_its_own_key_is_revoked() {
    let waits = "until test -e \"$HOME/../go\"; do sleep 0.02; done";
    let hub = Hub::new(&plan(&[item("a", waits), after("b", &["a"], "true")]));
    let driver = hub.drive("repo");
    let key = hub.wait_for("item.fired", "a");
    assert_eq!(key["attempt"], 1);
    let (code, line, said) = hub.command("repo", &["key"]);
    assert_eq!(code, Some(0), "{said}");
    hub.repo.env.write(
        "key.pub",
        &line.split_whitespace().skip_while(|word| !word.starts_with("ssh-")).collect::<Vec<_>>().join(" "),
    );
    let printed = std::process::Command::new("ssh-keygen").arg("-lf").arg(hub.repo.path("key.pub")).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let fingerprint = printed.split_whitespace().nth(1).unwrap();
    hub.repo.env.write("revoked", &format!("{fingerprint}\n"));
    let file = hub.repo.path("revoked");
    hub.repo.env.git(["config", "--global", "handoff.revoked", file.to_str().unwrap()]).success();
    let (status, said) = driver.wait();
    assert_eq!(status.code(), Some(1), "{said}");
    let error = format!("error: the key {fingerprint}, with which this driver of the run \"r\" signs, is revoked here");
    assert!(said.lines().any(|line| line == error), "{said}");
    // Nothing was recorded with it since.
    assert_eq!(hub.entries().last().unwrap()["kind"], "item.fired");
}
