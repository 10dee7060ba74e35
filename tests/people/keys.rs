//! A key goes, another one comes: rotation in one repository.

use serde_json::{Value, json};

use super::{as_person, items, person, signer, statuses};
use crate::common::repo::TestRepo;
use crate::common::report::find_line;
use crate::common::{Output, assert_output};

/// A run of which the first item is done, in a repository that knows its own key, and a second key.
fn begun() -> TestRepo {
    let repo = TestRepo::new();
    person(&repo.env, "bob");
    let signers = repo.env.handoff(["key", "--principal", "ada"]).success();
    repo.env.write("home/signers", &signers);
    repo.config("gpg.ssh.allowedSignersFile", &repo.path("home/signers").display().to_string());
    repo.submit("r", &items());
    repo.env.handoff(["run", "r"]).ends(4);
    repo
}

fn bob(repo: &TestRepo, args: &[&str]) -> Output {
    as_person(&repo.env, "repo", "bob", args)
}

/// The line that `git handoff key` prints for the second key.
fn line(repo: &TestRepo) -> String {
    bob(repo, &["key", "--principal", "bob@example.com"]).success().trim().to_owned()
}

#[test]
fn a_key_that_was_admitted_for_all_takes_a_run_over_and_seals_it() {
    let repo = begun();
    assert_output!(
        "people_keys_rotation_1",
        repo.env.handoff(["admit", "r", &line(&repo), "--as", "own,work,seal,approve"])
    );
    let key = bob(&repo, &["--json", "key"]).success();
    let key = serde_json::from_str::<Value>(&key).unwrap()["fingerprint"].as_str().unwrap().to_owned();
    let line = format!("admitted   {key} as own, work, approve, seal");
    assert_eq!(find_line(&repo.env.handoff(["show", "r"]).success(), "admitted "), line);
    let log = repo.env.handoff(["log", "r"]).success();
    for role in ["own", "work", "seal", "approve"] {
        assert!(log.contains(&format!("  run.admitted r: the key {key} has the role {role}\n")), "{log}");
    }
    bob(&repo, &["approve", "r/sign-off"]).success();
    bob(&repo, &["run", "r"]).success();
    assert!(repo.is_sealed("r"));
    let last = repo.entries("r").pop().unwrap();
    assert_eq!(last["kind"], "run.sealed");
    assert_output!("people_keys_rotation_2", repo.env.handoff(["verify", "r"]));
    repo.passes_fsck();
    // The proof carries the admission, and holds with nothing else at hand.
    let proof: Value = serde_json::from_str(&repo.env.handoff(["prove", "r/ship:outputs/shipped"]).success()).unwrap();
    assert!(proof["admitted"]["commit"].as_str().unwrap().contains("\nrun.admitted r\n"), "{proof}");
    repo.env.write("home/proof.json", &proof.to_string());
    assert_output!("people_keys_rotation_3", repo.env.handoff_in("home", ["verify", "--proof", "proof.json"]));
    let since: Value = serde_json::from_str(&repo.env.handoff(["prove", "r", "--since", "2"]).success()).unwrap();
    assert!(since["admitted"].is_object());
    // A proof without it, or with what is none, proves nothing.
    let mut without = proof.clone();
    without.as_object_mut().unwrap().remove("admitted");
    let mut other = proof.clone();
    other["admitted"] = json!({ "commit": proof["first"]["commit"], "path": proof["first"]["path"] });
    let mut unplaced = proof.clone();
    unplaced["admitted"]["path"] = json!([]);
    for (forged, row) in [(without, "signature"), (other, "chain"), (unplaced, "root")] {
        repo.env.write("home/forged.json", &forged.to_string());
        let report = repo.env.handoff_in("home", ["verify", "--proof", "forged.json"]).exit(3).stdout;
        assert!(report.contains(&format!("✗ {row}")), "{row}: {report}");
    }
}

#[test]
fn new_key_is_not_listed_when_the_old_one_seals() {
    let repo = begun();
    repo.env.handoff(["admit", "r", &line(&repo), "--as", "seal"]).success();
    repo.env.handoff(["abandon", "r"]).success();
    let proof: Value = serde_json::from_str(&repo.env.handoff(["prove", "r/build"]).success()).unwrap();
    assert!(proof.get("admitted").is_none(), "{proof}");
}

#[test]
fn an_owner_closes_what_only_another_key_seals() {
    for (command, kind) in [("close", "run.closed"), ("abandon", "run.cancelled"), ("cancel", "run.cancelled")] {
        let repo = begun();
        repo.env.handoff(["reject", "r/sign-off"]).success();
        repo.env.handoff(["run", "r"]).ends(4);
        repo.env.handoff(["admit", "r", &line(&repo), "--as", "own"]).success();
        let ended = bob(&repo, &[command, "r"]);
        let stderr = ended.stderr.clone();
        ended.success();
        assert_eq!(repo.entries("r").last().unwrap()["kind"], kind, "{command}");
        let key = signer(&repo.env, "bob").fingerprint();
        let hint =
            format!("hint: an owner that entry 0 names can give you the role: git handoff admit r {key} --as seal");
        let why = format!("warning: r has ended and is not sealed: the key {key} does not have the role seal");
        assert_eq!((find_line(&stderr, "warning: "), find_line(&stderr, "hint: ")), (&*why, &*hint), "{command}");
        // Once more is a refusal, which says the same.
        let close_stderr = bob(&repo, &["close", "r"]).exit(1).stderr;
        let second_why =
            format!("error: the key {key}, which does not have the role seal, cannot do this in the run \"r\"");
        assert_eq!(
            (find_line(&close_stderr, "error: "), find_line(&close_stderr, "hint: ")),
            (&*second_why, &*hint),
            "{command}"
        );
        // The hint is true, also now that the run has ended.
        repo.env.handoff(["admit", "r", &key, "--as", "seal"]).success();
        bob(&repo, &["close", "r"]).success();
        assert!(repo.is_sealed("r"), "{command}");
        repo.env.handoff(["verify", "r"]).ends(4);
        assert_eq!(statuses(&repo, "r"), "done failed skipped");
    }
}

#[test]
fn an_owner_from_later_on_admits_others_and_none_that_seals() {
    let repo = begun();
    let carol = person(&repo.env, "carol");
    repo.env.handoff(["admit", "r", &line(&repo), "--as", "own,seal"]).success();
    bob(&repo, &["admit", "r", &carol, "--as", "approve,own"]).success();
    assert_output!("people_keys_seal_by_later_owner", bob(&repo, &["admit", "r", &carol, "--as", "seal"]).exit(1));
    // If one is refused, none is recorded.
    bob(&repo, &["admit", "r", &carol, "--as", "work,seal"]).ends(1);
    as_person(&repo.env, "repo", "carol", &["approve", "r/sign-off"]).success();
    let stderr = as_person(&repo.env, "repo", "carol", &["run", "r"]).exit(1).stderr;
    insta::assert_snapshot!(stderr, @r#"
    error: the key SHA256:FHnkzsBz7f3dqcYQZJQyowjlHgsBFgnGnG6b00R1Wo4, which does not have the role work, cannot do this in the run "r"
    hint: an owner of the run can give you the role (without an owner: git handoff adopt-run r --id ID): git handoff admit r SHA256:FHnkzsBz7f3dqcYQZJQyowjlHgsBFgnGnG6b00R1Wo4 --as work
    "#);
    repo.env.handoff(["run", "r"]).success();
    repo.env.handoff(["verify", "r"]).success();
}

#[test]
fn the_hint_names_the_role_that_is_missing() {
    let repo = begun();
    let key = signer(&repo.env, "bob").fingerprint();
    let refused = |args: &[&str], role: &str| {
        let stderr = bob(&repo, args).exit(1).stderr;
        assert!(
            find_line(&stderr, "hint: ").ends_with(&format!(": git handoff admit r {key} --as {role}")),
            "{stderr}"
        );
    };
    refused(&["approve", "r/sign-off"], "approve");
    refused(&["run", "r"], "work");
    refused(&["cancel", "r"], "own");
    refused(&["abandon", "r"], "own");
    refused(&["close", "r"], "work");
    refused(&["admit", "r", &key, "--as", "own"], "own");
    refused(&["doc", "put", "r", "notes", "a.txt"], "document");
    repo.env.handoff(["admit", "r", &key, "--as", "work,approve"]).success();
    bob(&repo, &["approve", "r/sign-off"]).success();
    // All is done, and what is missing is the seal.
    refused(&["run", "r"], "seal");
    assert_eq!(statuses(&repo, "r"), "done done done");
    repo.env.handoff(["admit", "r", &key, "--as", "seal"]).success();
    bob(&repo, &["run", "r"]).success();
    repo.env.handoff(["verify", "r"]).success();
}

#[test]
fn a_key_is_admitted_by_whatever_names_it() {
    let repo = begun();
    let (line, key) = (line(&repo), signer(&repo.env, "bob").fingerprint());
    let public = signer(&repo.env, "bob").public().to_openssh().unwrap();
    repo.env.write("home/bob.line", &format!("# from Bob\n\n{line}\n"));
    repo.env.write("home/bob.pub", &format!("{} bob@laptop\n", public.trim()));
    repo.env.write("home/bob.fingerprint", &format!("{key}\n"));
    let forms = ["../home/bob.line", "../home/bob.pub", "../home/bob.fingerprint", &line, &public, &key];
    for (form, role) in forms.iter().zip(["own", "work", "approve", "document", "seal", "seal"]) {
        let admitted = repo.env.handoff(["admit", "r", form, "--as", role]);
        if *form == key {
            assert_output!("people_keys_has_role", admitted.exit(1));
        } else {
            assert_eq!(admitted.success(), format!("r: {key} may {role}\n"));
        }
    }
    // Existing and duplicate roles are omitted.
    let carol = person(&repo.env, "carol");
    repo.env.handoff(["admit", "r", &carol, "--as", "work"]).success();
    let answer: Value = serde_json::from_str(
        &repo.env.handoff(["admit", "r", &carol, "--as", "seal,work,own,own", "--json"]).success(),
    )
    .unwrap();
    assert_eq!(answer, json!({"schema": "git-handoff.admit/1", "run": "r", "key": carol, "roles": ["own", "seal"]}));
}

#[test]
fn admit_rejects_invalid_keys_with_a_reason() {
    let repo = begun();
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7";
    repo.env.write("home/two", &format!("{}\n{}\n", line(&repo), line(&repo)));
    repo.env.write("home/empty", "# nothing\n");
    repo.env.write("home/words", "my key\n");
    let holds = "holds neither a public key, nor a line of `git handoff key`, nor a fingerprint";
    let neither = "is neither the fingerprint of a key, nor a public key, nor a file that holds one";
    for (form, why) in [
        ("../home/bob", "../home/bob is a private key: name the file of its public key, which ends with .pub"),
        ("../home/two", "../home/two has more than one line: name a file with one key, or the fingerprint"),
        ("../home/empty", &format!("../home/empty {holds}")),
        ("../home/words", &format!("../home/words {holds}")),
        ("../home/none", &format!("\"../home/none\" {neither}")),
        ("SHA256:abc", &format!("\"SHA256:abc\" {neither}")),
        (rsa, "this is no public key that can sign here"),
    ] {
        let stderr = repo.env.handoff(["admit", "r", form, "--as", "own"]).exit(2).stderr;
        assert_eq!(find_line(&stderr, "error: "), format!("error: {why}"), "{form}");
    }
    repo.env.handoff(["admit", "r", &line(&repo), "--as", "chief"]).ends(2);
    repo.env.handoff(["admit", "r", &line(&repo), "--as", ""]).ends(2);
    repo.env.handoff(["admit", "r", &line(&repo)]).ends(2);
}

#[test]
fn a_key_that_seals_from_the_beginning_needs_no_admission() {
    let repo = TestRepo::new();
    person(&repo.env, "bob");
    let line = line(&repo);
    let file = repo.plan("r", &items());
    repo.env.handoff(["submit", &file, "--admit", &format!("{line}=work,approve,seal")]).success();
    let signers = repo.env.handoff(["key", "--principal", "ada"]).success();
    repo.env.write("home/signers", &signers);
    repo.config("gpg.ssh.allowedSignersFile", &repo.path("home/signers").display().to_string());
    bob(&repo, &["run", "r"]).ends(4);
    bob(&repo, &["approve", "r/sign-off"]).success();
    bob(&repo, &["run", "r"]).success();
    repo.env.handoff(["verify", "r"]).success();
    let proof: Value = serde_json::from_str(&repo.env.handoff(["prove", "r/ship"]).success()).unwrap();
    assert!(proof.get("admitted").is_none());
}
