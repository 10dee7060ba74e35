//! Signatures at the edges of what ed25519 is: what one library takes and another does not is
//! refused, always.

use base64ct::{Base64, Encoding as _};
use git_handoff::git::codec;
use git_handoff::ledger::sign;
use sha2::{Digest as _, Sha512};
use ssh_key::PublicKey;
use ssh_key::public::{Ed25519PublicKey, KeyData};

use crate::common::forge::{Forge, assert_says};

/// A message, a key, a signature over it, and whether it passes the strict check.
type Case = (&'static str, &'static str, &'static str, bool);

/// The twelve of "Taming the many `EdDSAs`" (Chalkias, Garillot, Nikolaenko, 2020), as
/// `ed25519-speccheck` lists them in `cases.json`, in its order.
const CASES: [Case; 12] = [
    // Key and R of small order.
    (
        "8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a0000000000000000000000000000000000000000000000000000000000000000",
        false,
    ),
    // A key of small order.
    (
        "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
        false,
    ),
    // An R of small order.
    (
        "aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e",
        false,
    ),
    // Key and R of mixed order, for which both equations hold.
    (
        "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
        "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        "9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009",
        true,
    ),
    // The same, where only the equation with the cofactor holds: the one that batches use.
    (
        "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
        "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        "160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09",
        false,
    ),
    (
        "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
        "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
        "21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405",
        false,
    ),
    // An S that is not below the order, and one far above it.
    (
        "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
        "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
        "e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514",
        false,
    ),
    (
        "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
        "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
        "8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa19427e71f98a473474f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c22",
        false,
    ),
    // An R in another spelling than its own.
    (
        "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff03be9678ac102edcd92b0210bb34d7428d12ffc5df5f37e359941266a4e35f0f",
        false,
    ),
    (
        "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffca8c5b64cd208982aa38d4936621a4775aa233aa0505711d8fdcfdaa943d4908",
        false,
    ),
    // A key of small order in another spelling than its own.
    (
        "e96b7021eb39c1a163b6da4e3093dcd3f21387da4cc4572be588fafae23c155b",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dca5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
        false,
    ),
    (
        "39a591f5321bbe07fd5a23dc2f39d025d74526615746727ceefd6e82ae65c06f",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dca5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
        false,
    ),
];

/// The two on R in other spellings that later editions of the list put in the place of its ninth
/// and tenth.
const LATER: [Case; 2] = [
    (
        "fdaebc429f4a735932a160da1301080c13280eea8bc280d1b392c6b9e6ba3a5a",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f454d370c8d9fc323a41450f8d513eafeb5b0697390c1e505a0d4ddc71f566607",
        false,
    ),
    (
        "84b698d39be126ff55fe45079e6c8bf64a0d7db6994560b4e96b7021eb39c1a1",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f084d5b99c2a9463d9c8bd5026916996984eeec87ddf1d3be329006ace1b37b09",
        false,
    ),
];

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn key(bytes: &[u8]) -> PublicKey {
    KeyData::Ed25519(Ed25519PublicKey(bytes.try_into().unwrap())).into()
}

#[test]
fn the_published_edge_cases_come_to_the_same_every_time() {
    let forge = Forge::new();
    let own = forge.signer.public();
    let good = forge.signer.sign_raw(b"signed").unwrap();
    for _ in 0..1000 {
        // In both orders, so that nothing that is kept of one answer can decide another.
        for (message, public, signature, holds) in CASES.iter().chain(&LATER).chain(CASES.iter().rev()) {
            let given = sign::check_raw(&key(&hex(public)), &hex(message), &hex(signature));
            assert_eq!(given, *holds, "{message} {public} {signature}");
        }
        assert!(sign::check_raw(own, b"signed", &good) && !sign::check_raw(own, b"Signed", &good));
    }
}

/// The length of a field, and the field, as SSH writes them.
fn field(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// The signed bytes of an SSHSIG signature.
fn signed(payload: &[u8], namespace: &str, reserved: &[u8]) -> Vec<u8> {
    let hash = Sha512::digest(payload);
    [b"SSHSIG", &field(namespace.as_bytes())[..], &field(reserved), &field(b"sha512"), &field(&hash)].concat()
}

/// A key of small order, and a signature that holds for every message if the check is not strict.
pub(crate) fn small_order() -> (PublicKey, String) {
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let signature = [&neutral[..], &[0; 32]].concat();
    (key(&neutral), armour(&neutral, "git", b"", &signature))
}

fn armour(public: &[u8], namespace: &str, reserved: &[u8], signature: &[u8]) -> String {
    let public = [field(b"ssh-ed25519"), field(public)].concat();
    let signature = [field(b"ssh-ed25519"), field(signature)].concat();
    let fields = [field(&public), field(namespace.as_bytes()), field(reserved), field(b"sha512"), field(&signature)];
    let blob = [&b"SSHSIG\0\0\0\x01"[..], &fields.concat()].concat();
    let text = Base64::encode_string(&blob);
    let lines: Vec<&str> = text.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----", lines.join("\n"))
}

#[test]
fn reserved_ssh_field_is_empty() {
    let forge = Forge::new();
    let public = forge.signer.public().key_data().ed25519().unwrap().0;
    let armored = |namespace: &str, reserved: &[u8]| {
        let signature = forge.signer.sign_raw(&signed(b"payload", namespace, reserved)).unwrap();
        armour(&public, namespace, reserved, &signature)
    };
    assert_eq!(armored("git", b""), forge.signer.sign(b"payload").unwrap());
    assert!(sign::check(b"payload", &armored("git", b"")).is_ok());
    for reserved in [b"x".as_slice(), b"\0", &[0; 300]] {
        let refused = sign::check(b"payload", &armored("git", reserved)).unwrap_err().to_string();
        assert_eq!(refused, "the signature has a `reserved` field that is not empty");
    }
    for namespace in ["file", "Git", "git ", "gi"] {
        assert!(sign::check(b"payload", &armored(namespace, b"")).is_err(), "{namespace}");
    }
}

#[test]
fn an_entry_with_something_in_what_ssh_reserves_fails_its_row() {
    let forge = Forge::new();
    let tip = forge.honest().head.commit.unwrap();
    let raw = forge.store.read(tip).unwrap().1;
    let seal = codec::decode(&raw).unwrap();
    let public = forge.signer.public().key_data().ed25519().unwrap().0;
    for (reserved, intact) in [(b"".as_slice(), true), (b"more", false)] {
        let signature = forge.signer.sign_raw(&signed(&seal.payload, "git", reserved)).unwrap();
        let armour = armour(&public, "git", reserved, &signature);
        let bent = codec::signed(&seal.entry, seal.tree, &seal.parents, &armour);
        forge.point_at(forge.store.write(gix::objs::Kind::Commit, &bent).unwrap());
        let report = forge.verify();
        assert_eq!(report.intact, intact, "{}", report.to_text(false));
        if !intact {
            assert_says(&report, "signature", "entry 5: the signature has a `reserved` field that is not empty");
        }
    }
}

#[test]
fn a_key_of_small_order_signs_nothing() {
    // With S = 0 and R the neutral point, the equation holds for every message.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let other = hex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    let signature = [&neutral[..], &[0; 32]].concat();
    for public in [&neutral[..], &other] {
        let refused = sign::check(b"anything", &armour(public, "git", b"", &signature)).unwrap_err();
        assert_eq!(refused.to_string(), "the signature does not match");
    }
}
