//! Differences between two checkpoints, by field and as a patch.

use serde_json::json as value;

use super::{json, packet, repository, save, text};

#[test]
fn states_that_are_json_are_compared_by_fields_and_all_else_as_a_patch() {
    let env = repository();
    packet(&env, &value!({}));
    let old = br#"{"done": ["a", "b"], "left": 3, "note": "x\u202ey"}"#;
    let new = br#"{"done": ["a", "c", "d"], "left": 3, "by": {"name": null}}"#;
    save(&env, "t", old, &[]);
    let second = save(&env, "t", new, &["--packet", "packet.json"]);
    let stdout = env.handoff(["thread", "diff", "t"]).success();
    let (fields, patch) = stdout.split_at(stdout.find("diff --git").expect("the packet is new"));
    assert_eq!(fields, "+ /by  {\"name\":null}\n~ /done/1  \"b\" -> \"c\"\n+ /done/2  \"d\"\n- /note  \"x\\u202ey\"\n");
    assert!(patch.starts_with("diff --git a/packet.json b/packet.json\n") && !patch.contains("/state"), "{patch}");
    let both = env.handoff(["thread", "diff", "--patch", "t"]).success();
    assert!(both.starts_with("diff --git a/packet") && both.contains("diff --git a/state b/state\n"), "{both}");

    let answer = json(&env.handoff(["--json", "thread", "diff", "t"]).success());
    assert_eq!(
        (&answer["schema"], &answer["patch"], &answer["more"]),
        (&"git-handoff.diff/1".into(), &both.into(), &value!(null))
    );
    assert_eq!(
        answer["changes"],
        value!([
            {"pointer": "/by", "kind": "added", "after": {"name": null}},
            {"pointer": "/done/1", "kind": "changed", "before": "b", "after": "c"},
            {"pointer": "/done/2", "kind": "added", "after": "d"},
            {"pointer": "/note", "kind": "removed", "before": "x\u{202e}y"},
        ])
    );
    // The other way round; and from one to itself.
    let first = json(env.handoff(["--json", "thread", "log", "t"]).success().lines().last().expect("there are two"));
    let names = [format!("t:{}", text(&second["checkpoint_id"])), format!("t:{}", text(&first["checkpoint_id"]))];
    let back = env.handoff(["thread", "diff", &names[0], &names[1]]).success();
    assert!(back.starts_with("- /by  {\"name\":null}\n~ /done/1  \"c\" -> \"b\"\n- /done/2  \"d\"\n+ /note"), "{back}");
    let same = env.handoff(["thread", "diff", "t", "t"]).exit(0);
    assert_eq!((same.stdout.as_str(), same.stderr.as_str()), ("", ""));
}

#[test]
fn other_states_are_compared_by_lines() {
    let env = repository();
    for (at, (old, new)) in
        [("draft\n", "done\n"), ("{}", "{} {}"), ("[]", "{\"a\":1,\"a\":2}"), ("\u{0}", "{}")].into_iter().enumerate()
    {
        let thread = format!("t{at}");
        save(&env, &thread, old.as_bytes(), &[]);
        // The first of a thread has nothing before it.
        let stdout = env.handoff(["thread", "diff", &thread]).success();
        assert!(stdout.starts_with("diff --git a/state b/state\nnew file"), "{stdout}");
        save(&env, &thread, new.as_bytes(), &[]);
        let thread_diff_stdout = env.handoff(["thread", "diff", &thread]).success();
        assert!(thread_diff_stdout.starts_with("diff --git a/state b/state\nindex"), "{thread_diff_stdout}");
        let answer = json(&env.handoff(["--json", "thread", "diff", &thread]).success());
        assert_eq!((answer.get("changes"), &answer["patch"]), (None, &thread_diff_stdout.into()));
    }
    // The same fields, written otherwise.
    save(&env, "spelled", b"{\"a\": 1}", &[]);
    save(&env, "spelled", b"{ \"a\":1 }", &[]);
    let same = env.handoff(["thread", "diff", "spelled"]).exit(0);
    assert_eq!(same.stdout, "");
    insta::assert_snapshot!(same.stderr, @"the fields are the same, in other bytes: --patch shows them");
    assert_eq!(json(&env.handoff(["--json", "thread", "diff", "spelled"]).success())["changes"], value!([]));
}
