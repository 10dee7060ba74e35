//! The plans: items that work, and items that attack.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::chaos::dice::Dice;

/// The required result of an item under all circumstances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    Done,
    Failed,
}

/// Leaves a line outside, as an e-mail or a payment would be.
const NOTE: &str = "echo $HANDOFF_RUN $HANDOFF_ITEM $HANDOFF_ATTEMPT >>\"$HOME/../effects\"; ";

/// The workers' commands with the required results.
const SCRIPTS: [(&str, Fate, &str); 25] = [
    ("edit", Fate::Done, "echo $HANDOFF_ITEM >>a.txt; echo $HANDOFF_ITEM >outputs/id"),
    ("take", Fate::Done, "cat inputs/* 2>/dev/null; echo $HANDOFF_ITEM >outputs/id"),
    ("slow", Fate::Done, "sleep 0.4; echo $HANDOFF_ITEM >outputs/id"),
    ("large", Fate::Done, "head -c 300000 /dev/urandom >outputs/large; echo said; echo x >outputs/id"),
    (
        "many",
        Fate::Done,
        "mkdir outputs/m; for i in 1 2 3 4 5 6 7 8 9; do echo $i >outputs/m/$i; done; echo x >outputs/id",
    ),
    (
        "commits",
        Fate::Done,
        "echo x >>a.txt; git -c user.name=w -c user.email=w@localhost commit -qam x; echo x >outputs/id",
    ),
    ("exits", Fate::Failed, "echo x >>a.txt; exit 3"),
    ("killed", Fate::Failed, "kill -9 $$"),
    ("sleeps", Fate::Failed, "sleep 600"),
    ("pipe", Fate::Failed, "rm -f .gitignore; mkfifo .gitignore"),
    ("pipe-below", Fate::Failed, "mkdir new; mkfifo new/.gitattributes"),
    ("pipe-out", Fate::Failed, "mkfifo outputs/pipe"),
    ("link-out", Fate::Failed, "ln -s /etc/passwd outputs/link"),
    (
        // A repository is left out of the patch; what is only called like one is refused.
        "nested",
        Fate::Done,
        "git init -q nested; echo x >nested/x; git -C nested add .; git -C nested -c user.name=w -c user.email=w@localhost commit -qm x; echo x >outputs/id",
    ),
    ("like-nested", Fate::Failed, "mkdir -p nested/.git; echo x >nested/x"),
    ("gone", Fate::Failed, "rm -rf \"$PWD\""),
    ("exchanged", Fate::Failed, "mv ../tree ../t; ln -s /etc ../tree"),
    ("sparse", Fate::Failed, "truncate -s 1T outputs/sparse"),
    ("index", Fate::Done, "rm -f ../index; mkfifo ../index; echo x >outputs/id"),
    (
        "beside",
        Fate::Done,
        "for f in transcript result.json capture; do rm -rf ../$f; ln -s /etc/passwd ../$f; done; echo x >outputs/id",
    ),
    ("shut", Fate::Done, "chmod 0 .. ../.. . 2>/dev/null; echo x >outputs/id; chmod 755 ."),
    ("daemon", Fate::Done, "setsid env -i sh -c 'sleep 300' >/dev/null 2>&1 & echo x >outputs/id"),
    ("forks", Fate::Done, "for i in 1 2 3 4 5 6 7 8; do sleep 300 & done; echo x >outputs/id"),
    ("loud", Fate::Done, "head -c 3000000 /dev/zero | tr '\\0' 'a'; echo x >outputs/id"),
    ("filler", Fate::Done, "head -c 20000000 /dev/zero >../filler; echo x >outputs/id"),
];

/// The number of harmless ones.
const HONEST: usize = 6;

/// Returns the items of a run, and what must become of each.
pub(super) fn items(dice: &mut Dice) -> (Vec<Value>, BTreeMap<String, Fate>) {
    let (mut items, mut fates, mut sources) = (Vec::new(), BTreeMap::new(), Vec::<String>::new());
    for at in 0..dice.roll(2..7) {
        let honest = !dice.once_in(3);
        let (name, fate, script) = SCRIPTS[if honest { dice.index(HONEST) } else { dice.index(SCRIPTS.len()) }];
        let id = format!("{name}-{at}");
        // A harmless worker may need several attempts.
        let flaky = fate == Fate::Done && dice.once_in(5);
        let script = if flaky { format!("test $HANDOFF_ATTEMPT -gt 1 || exit 1; {script}") } else { script.to_owned() };
        let mut item = json!({ "id": id, "executor": "command", "inputs": { "command": NOTE.to_owned() + &script },
                               "maxAttempts": if fate == Fate::Done { 4 } else { 1 } });
        if name == "sleeps" {
            item["timeout"] = json!(1);
        }
        if dice.once_in(4) {
            item["resourceLocks"] = json!(["one"]);
        }
        if !sources.is_empty() && dice.once_in(2) {
            let source = dice.pick(&sources);
            item["needs"] = json!({ "id": { "from": source, "select": { "kind": "output", "path": "id" } } });
        }
        if fate == Fate::Done {
            sources.push(id.clone());
        }
        items.push(item);
        fates.insert(id, fate);
    }
    (items, fates)
}
