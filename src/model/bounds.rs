//! How large what a chain holds may be. Pure.
//!
//! A reader refuses what is larger before it is inflated, and a writer never makes it: the table in `docs/format.md` has the same
//! numbers. Products, artifacts and saved files may be of any size: they are hashed piece by piece.

/// The most bytes of a commit that carries an entry.
pub const COMMIT: u64 = 32 << 20;

/// The most bytes of one folder: a tree object.
pub const TREE: u64 = 32 << 20;

/// The most bytes of `plan.json`, of `rules.json` and of an `item.json`.
pub const PLAN: u64 = 32 << 20;

/// The most bytes of a `manifest.json`.
pub const MANIFEST: u64 = 16 << 20;

/// The most bytes of a pipeline.
pub const PIPELINE: u64 = super::pipeline::MAX_BYTES;

/// The most bytes of any other blob that is read whole: a `state.json`, a record of a log.
pub const BLOB: u64 = 32 << 20;

/// The most items that a rule creates at once.
pub const CREATED_ITEMS: usize = 1 << 18;

/// The most dependencies and needs of all items that a rule creates at once, those that are left out counted.
pub const CREATED_EDGES: usize = 1 << 20;

/// The most bytes that all `item.json` of what a rule creates at once come to.
pub const CREATED_BYTES: usize = 32 << 20;

/// The most arrays and objects in one entry or manifest.
pub const CONTAINERS: usize = 131_072;

/// The most values of arrays and objects in one entry or manifest, as its commas count them.
pub const VALUES: usize = 1_048_576;

/// What the commits of one chain may come to, whatever they take in the object database. The same holds for the `item.json` of a run.
pub const FREE: u64 = 64 << 20;

/// The most bytes beyond [`FREE`] for each byte that they take in the object database.
pub const RATIO: u64 = 1024;

/// Returns whether JSON has no more arrays, objects and values than one entry or manifest may have; what is no JSON is not looked at
/// more closely.
///
/// A value of two bytes takes dozens in memory, so that the number of bytes alone bounds little.
pub fn is_light(json: &[u8]) -> bool {
    are_light(json, 1)
}

/// Returns the same of JSON that so many entries and manifests stand in.
pub fn are_light(json: &[u8], count: usize) -> bool {
    // Each takes a byte at least.
    if json.len() <= CONTAINERS * count {
        return true;
    }
    let (mut containers, mut values) = (0, 0);
    let (mut text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'{' | b'[' if !text => containers += 1,
            b',' if !text => values += 1,
            _ => {}
        }
    }
    containers <= CONTAINERS * count && values <= VALUES * count
}

/// What the objects of one kind come to, and what they take in the object database.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    bytes: u64,
    allowed: u64,
}

impl Meter {
    /// Counts an object of `bytes` bytes that takes `stored`; an error says that they are more than may be held together.
    pub fn add(&mut self, bytes: u64, stored: u64) -> Result<(), TooMuch> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.allowed = self.allowed.saturating_add(stored.saturating_mul(RATIO));
        if self.bytes > FREE.saturating_add(self.allowed) { Err(TooMuch(self.bytes)) } else { Ok(()) }
    }
}

/// Objects come to more than may be held together.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the objects come to {0} bytes so far, more than 64 MiB and {RATIO} times what they take in the object database"
)]
pub struct TooMuch(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_strings_counts_for_nothing() {
        assert!(is_light(format!(r#"["{}"]"#, r#"[{,\""#.repeat(CONTAINERS)).as_bytes()));
        assert!(is_light("[".repeat(CONTAINERS).as_bytes()) && !is_light("[".repeat(CONTAINERS + 1).as_bytes()));
        assert!(is_light(",".repeat(VALUES).as_bytes()) && !is_light(",".repeat(VALUES + 1).as_bytes()));
        assert!(!is_light(format!(r#""\\"{}"#, "{".repeat(CONTAINERS + 1)).as_bytes()));
    }

    #[test]
    fn a_chain_may_come_to_so_much_and_to_more_where_more_is_stored() {
        let mut meter = Meter::default();
        assert!(meter.add(FREE, 0).is_ok());
        assert!(meter.add(1024, 1).is_ok());
        assert!(meter.add(1, 0).is_err());
    }
}
