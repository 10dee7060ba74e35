//! Mutations of a sample: of its bytes, and of JSON in it.

use git_handoff::model::format;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// More than this is cut off.
const LONGEST: usize = 1 << 20;

/// Words that mean something to one of the parsers, or that parsers are known to stumble over.
const WORDS: [&[u8]; 48] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"null",
    b"true",
    b"-0",
    b"1e400",
    b"1.0",
    b"9007199254740993",
    b"18446744073709551616",
    b"\0",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"\\ud800",
    b"\\u0000",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"\xff",
    b"\xef\xbb\xbf",
    b"e\xcc\x81",
    b"..",
    b"/",
    b"%2F",
    b"%2f",
    b"sha256:",
    b"SHA256:",
    b"\n\n",
    b"-----BEGIN SSH SIGNATURE-----",
    b"since=",
    b"namespaces=\"git\" ",
    b"cert-authority ",
    b"valid-before=\"99991231\" ",
    b"valid-after=\"20260604\",",
    b"#",
    b"ssh-ed25519 ",
    b"parent ",
    b"gpgsig ",
    b"{\"a\":",
    b"2026-06-04T02:00:00.000Z",
    b"=",
];

/// A sample and what is done to it, in order.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    sample: Index,
    edits: Vec<Edit>,
}

#[derive(Clone, Debug)]
enum Edit {
    /// One bit turned round.
    Flip(Index, u8),
    /// A word, once or often.
    Insert(Index, &'static [u8], usize),
    /// A piece cut out.
    Cut(Index, usize),
    /// A piece taken from elsewhere, perhaps from another sample.
    Take { from: Index, at: Index, length: usize, to: Index },
    /// The rest cut off.
    Truncate(Index),
    /// Something done to the value at a place of the JSON.
    Json(Index, Json),
}

#[derive(Clone, Debug)]
enum Json {
    Become(Value),
    Drop,
    Rename(String),
    Add(String, Value),
    /// A copy from another position.
    Copy(Index),
    Nest(usize),
}

/// Every mutation.
pub(super) fn mutations() -> impl Strategy<Value = Mutation> {
    (any::<Index>(), prop::collection::vec(edit(), 1..6)).prop_map(|(sample, edits)| Mutation { sample, edits })
}

fn edit() -> impl Strategy<Value = Edit> {
    let word = || select(&WORDS[..]);
    prop_oneof![
        2 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        2 => (any::<Index>(), word()).prop_map(|(at, word)| Edit::Insert(at, word, 1)),
        1 => (any::<Index>(), word(), 2..4000usize).prop_map(|(at, word, often)| Edit::Insert(at, word, often)),
        1 => (any::<Index>(), 1..64usize).prop_map(|(at, length)| Edit::Cut(at, length)),
        1 => (any::<Index>(), any::<Index>(), 1..256usize, any::<Index>())
            .prop_map(|(from, at, length, to)| Edit::Take { from, at, length, to }),
        1 => any::<Index>().prop_map(Edit::Truncate),
        6 => (any::<Index>(), json()).prop_map(|(place, json)| Edit::Json(place, json)),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    prop_oneof![
        3 => value().prop_map(Json::Become),
        1 => Just(Json::Drop),
        1 => name().prop_map(Json::Rename),
        1 => (name(), value()).prop_map(|(name, value)| Json::Add(name, value)),
        2 => any::<Index>().prop_map(Json::Copy),
        1 => (1..200usize).prop_map(Json::Nest),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        select(&["", "v", "kind", "run", "seq", "item", "thread", "id", "signature", "schema", "a\u{301}", "x y"][..])
            .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(-0.0),
        json!(1e300),
        json!(4_294_967_296_u64),
        json!(9_007_199_254_740_992_u64),
        json!(u64::MAX),
        json!(""),
        json!([]),
        json!({}),
        json!([[]]),
        json!("../x"),
        json!("@artifacts"),
        json!("\u{0}\u{1b}[2J\u{202e}"),
        json!("x".repeat(5000)),
        json!("2026-06-04T02:00:60.000Z"),
        json!("item.fired"),
        json!("run.sealed"),
        json!("git-handoff.proof/1"),
        json!(vec![0; 300]),
        json!({"from": "a", "select": {"kind": "output", "path": "x"}}),
    ];
    prop_oneof![3 => select(odd.to_vec()), 1 => any::<String>().prop_map(Value::from), 1 => any::<i64>().prop_map(Value::from)]
}

impl Mutation {
    /// Makes the bytes.
    pub(super) fn mutate(&self, samples: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.sample.get(samples).clone();
        for edit in &self.edits {
            edit.apply(&mut bytes, samples);
            bytes.truncate(LONGEST);
        }
        bytes
    }
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>, samples: &[Vec<u8>]) {
        let place = |at: &Index, content: &[u8]| at.index(content.len() + 1);
        match self {
            Self::Flip(at, bit) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            Self::Flip(..) => {}
            Self::Insert(at, word, often) => {
                let at = place(at, bytes);
                drop(bytes.splice(at..at, word.repeat(*often)));
            }
            Self::Cut(at, length) => {
                let at = place(at, bytes);
                drop(bytes.drain(at..(at + length).min(bytes.len())));
            }
            Self::Take { from, at, length, to } => {
                let other = from.get(samples);
                let at = place(at, other);
                let piece = other[at..(at + length).min(other.len())].to_vec();
                let to = place(to, bytes);
                drop(bytes.splice(to..to, piece));
            }
            Self::Truncate(at) => bytes.truncate(place(at, bytes)),
            Self::Json(folder, json) => {
                // In a commit, the JSON follows the last empty line.
                let begins = bytes.windows(2).rposition(|two| two == b"\n\n").map_or(0, |at| at + 2);
                let ends = if begins > 0 && bytes.ends_with(b"\n") { bytes.len() - 1 } else { bytes.len() };
                let read = bytes.get(begins..ends).and_then(|text| serde_json::from_slice(text).ok());
                if let Some(value) = read {
                    let is_entry = bytes[begins..].starts_with(b"{\n");
                    let write = if is_entry { format::entry_text } else { format::canonical };
                    let changed = write(&json.apply(*folder, value));
                    drop(bytes.splice(begins..ends, changed));
                }
            }
        }
    }
}

impl Json {
    fn apply(&self, place: Index, mut value: Value) -> Value {
        let mut places = Vec::new();
        list(&value, &mut String::new(), &mut places);
        let place = place.get(&places).as_str();
        let (above, key) = place.rsplit_once('/').unwrap_or_default();
        let key = key.replace("~1", "/").replace("~0", "~");
        match self {
            Self::Become(new) => *reach(&mut value, place) = new.clone(),
            Self::Copy(from) => {
                let copy = reach(&mut value, from.get(&places).as_str()).clone();
                *reach(&mut value, place) = copy;
            }
            Self::Nest(depth) => {
                let inner = reach(&mut value, place);
                *inner = (0..*depth).fold(inner.take(), |inner, _| json!([inner]));
            }
            Self::Add(name, new) => {
                if let Value::Object(map) = reach(&mut value, place) {
                    map.insert(name.clone(), new.clone());
                }
            }
            Self::Drop | Self::Rename(_) => {
                if let (false, Value::Object(map)) = (place.is_empty(), reach(&mut value, above)) {
                    let removed: Option<Value> = Map::remove(map, &key);
                    if let (Some(removed), Self::Rename(name)) = (removed, self) {
                        map.insert(name.clone(), removed);
                    }
                }
            }
        }
        value
    }
}

/// Lists the place of every value, as RFC 6901 writes it.
fn list(value: &Value, at: &mut String, places: &mut Vec<String>) {
    places.push(at.clone());
    let length = at.len();
    let mut below = |key: &str, child: &Value| {
        *at += "/";
        *at += &key.replace('~', "~0").replace('/', "~1");
        list(child, at, places);
        at.truncate(length);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, member)| below(key, member)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, element)| below(&index.to_string(), element)),
        _ => {}
    }
}

fn reach<'v>(value: &'v mut Value, place: &str) -> &'v mut Value {
    value.pointer_mut(place).unwrap()
}
