//! Records of a repository log, written and read.

use git_handoff::model::digest::{Digest, Oid};
use git_handoff::model::format;
use git_handoff::model::log_record::Record;
use git_handoff::model::name::RunId;
use serde_json::{Map, Value};

fn all() -> Vec<Record> {
    let (run, digest) = ("r".parse::<RunId>().unwrap(), Digest::of(b"x"));
    let commit: Oid = "0123456789012345678901234567890123456789".parse().unwrap();
    vec![
        Record::Submitted { run: run.clone(), first: digest },
        Record::Sealed { run, root: digest, entries: 3, seal: digest, commit },
        Record::Thread { thread: "t".parse().unwrap(), entries: 3, last: digest },
    ]
}

#[test]
fn what_is_written_is_read_back_and_nothing_besides() {
    for record in all() {
        let bytes = record.canonical();
        assert_eq!(Record::parse(&bytes), Some(record.clone()));
        let mut fields: Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
        for name in fields.keys() {
            let mut fewer = fields.clone();
            fewer.remove(name);
            assert_eq!(Record::parse(&format::canonical(&fewer)), None, "{record:?} without {name}");
        }
        fields.insert("more".to_owned(), Value::Null);
        assert_eq!(Record::parse(&format::canonical(&fields)), None, "{record:?} with more");
    }
}

#[test]
fn a_seal_leaves_nothing_to_say_of_a_run_and_a_thread_only_grows() {
    let [submitted, sealed, thread] = all().try_into().unwrap();
    assert!(sealed.covers(&submitted) && sealed.covers(&sealed) && submitted.covers(&submitted));
    assert!(!submitted.covers(&sealed) && !sealed.covers(&thread));
    let Record::Thread { thread: name, last, .. } = thread.clone() else { unreachable!() };
    let at = |entries| Record::Thread { thread: name.clone(), entries, last };
    assert!(thread.covers(&at(2)) && thread.covers(&at(3)) && !thread.covers(&at(4)));
}
