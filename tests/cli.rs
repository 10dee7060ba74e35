//! The program as people use it: what it prints, says and ends with. Commit ids in snapshots are
//! real, so that a changed byte of the format shows.

mod answers;
mod colouring;
mod completing;
mod credentials;
mod day;
mod everyday;
mod example;
mod field;
mod graph;
mod hints;
#[cfg(target_os = "linux")]
mod init;
mod manual;
#[cfg(target_os = "linux")]
mod paging;
mod printing;
mod refusals;
mod sequences;
mod shared;
mod trace;
#[cfg(target_os = "linux")]
mod views;
mod week;

use crate::common;

#[test]
fn the_signing_key_is_made_from_a_constant_seed() {
    let pair = ssh_key::private::Ed25519Keypair::from_seed(b"git-handoff, a key of tests only");
    let mut key = ssh_key::PrivateKey::from(pair);
    key.set_comment("tests only");
    let text = key.to_openssh(ssh_key::LineEnding::LF).expect("an unencrypted key is written");
    assert_eq!(text.as_str(), common::KEY);
}
