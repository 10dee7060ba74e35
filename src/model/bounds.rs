//! Size limits of the objects in a chain. Pure.
//!
//! A reader refuses larger objects before inflating them, and a writer never creates them. The
//! table in `docs/reference/format.md` has the same numbers. Products, artifacts and saved files
//! have no limit, because they are hashed as a stream.

/// The maximum size of an entry's commit, in bytes.
pub const COMMIT: u64 = 32 << 20;

/// The maximum size of a tree object, in bytes.
pub const TREE: u64 = 32 << 20;

/// The maximum size of `plan.json`, `rules.json` and `item.json`, in bytes.
pub const PLAN: u64 = 32 << 20;

/// The maximum size of `manifest.json`, in bytes.
pub const MANIFEST: u64 = 16 << 20;

/// The maximum size of a pipeline, in bytes.
pub const PIPELINE: u64 = super::pipeline::MAX_BYTES;

/// The maximum size of any other blob that is read as a whole, such as `reused.json`, in bytes.
pub const BLOB: u64 = 32 << 20;

/// The maximum number of items that a rule creates at once.
pub const CREATED_ITEMS: usize = 1 << 18;

/// The maximum number of dependencies and needs of all items that a rule creates at once, including
/// omitted ones.
pub const CREATED_EDGES: usize = 1 << 20;

/// The maximum total size of the `item.json` files that a rule creates at once, in bytes.
pub const CREATED_BYTES: usize = 32 << 20;

/// The maximum number of arrays and objects in an entry or manifest.
pub const CONTAINERS: usize = 131_072;

/// The maximum number of values in arrays and objects of an entry or manifest, counted by commas.
pub const VALUES: usize = 1_048_576;

/// The maximum number of paths of a base that comes with a bundle.
pub const BASE_PATHS: u64 = 1 << 20;

/// The maximum total size of these paths, in bytes.
pub const BASE_PATH_BYTES: u64 = 256 << 20;

/// The maximum total size of the trees of all bases in a bundle, in bytes.
pub const BASE_TREES: u64 = 256 << 20;

/// The maximum number of paths of a base that comes with a bundle, times the number of patches that
/// are applied to recompute protected files.
pub const RECOMPUTED_PATHS: u64 = 1 << 28;

/// The total size that the commits of a chain may have in any case, in bytes. The same applies to
/// the `item.json` files of a run.
pub const FREE: u64 = 64 << 20;

/// The total size that the objects of a bundle's pack may have in any case, in bytes.
pub const PACK: u64 = 256 << 20;

/// The maximum ratio of bytes beyond [`FREE`] or [`PACK`] to stored bytes.
pub const RATIO: u64 = 1024;

/// Returns the total size that the objects of a pack of this size may have, in bytes.
pub fn unpacked(pack: u64) -> u64 {
    PACK.saturating_add(pack.saturating_mul(RATIO))
}

/// The most folders of the tree of one entry.
pub const FOLDERS: usize = 65_536;

/// Returns true if JSON is within the limits of one entry or manifest. Does not validate the JSON.
///
/// A value of two bytes needs dozens in memory, so a size limit alone is not enough.
pub fn is_light(json: &[u8]) -> bool {
    are_light(json, 1)
}

/// Returns true if JSON is within the limits of several entries and manifests together.
pub fn are_light(json: &[u8], count: usize) -> bool {
    // Each takes at least a byte.
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

/// The total size and stored size of objects of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    bytes: u64,
    allowed: u64,
}

impl Meter {
    /// Adds an object of `bytes` bytes with a stored size; fails above the limit.
    pub fn add(&mut self, bytes: u64, stored: u64) -> Result<(), TooMuch> {
        self.bytes = self.bytes.saturating_add(bytes);
        self.allowed = self.allowed.saturating_add(stored.saturating_mul(RATIO));
        if self.bytes > FREE.saturating_add(self.allowed) { Err(TooMuch(self.bytes)) } else { Ok(()) }
    }
}

/// The objects are too large in total.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the objects have {0} bytes so far, more than 64 MiB and {RATIO} times their stored size")]
pub struct TooMuch(pub u64);
