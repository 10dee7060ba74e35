//! Registered files by name, each read on first use, so that an unreadable one matters only if
//! needed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Registered things of one kind.
#[derive(Clone)]
pub struct Registered<K, V> {
    entries: BTreeMap<K, Arc<Thing<V>>>,
}

/// Reads and parses a file; the error names it.
type Read<V> = Box<dyn Fn() -> Result<V, String> + Send + Sync>;

/// The setting of a registration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredBy {
    /// The key.
    pub key: String,
    /// The file of the setting.
    pub origin: String,
    /// The registered file.
    pub file: String,
}

/// A registration with its lazily parsed content.
struct Thing<V> {
    place: Arc<RegisteredBy>,
    read: Read<V>,
    value: OnceLock<Result<V, String>>,
}

/// An unreadable registration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {key} in {origin} names that file", key = .place.key, origin = .place.origin)]
pub struct Unreadable {
    /// The setting.
    pub place: Arc<RegisteredBy>,
    /// The error, which names the file.
    pub why: String,
}

impl<K: Ord, V> Registered<K, V> {
    /// Adds a registration.
    pub fn add(&mut self, name: K, place: RegisteredBy, read: Read<V>) {
        self.entries.insert(name, Arc::new(Thing { place: Arc::new(place), read, value: OnceLock::new() }));
    }

    /// Returns the names in order.
    pub fn names(&self) -> impl Iterator<Item = &K> + Clone {
        self.entries.keys()
    }

    /// Returns the setting of a name.
    pub fn place(&self, name: &K) -> Option<&RegisteredBy> {
        Some(&self.entries.get(name)?.place)
    }

    /// Returns the thing with a name, or `None` if not registered.
    pub fn get(&self, name: &K) -> Option<Result<&V, Unreadable>> {
        let entry = self.entries.get(name)?;
        let value = entry.value.get_or_init(&entry.read).as_ref();
        Some(value.map_err(|why| Unreadable { place: entry.place.clone(), why: why.clone() }))
    }
}

impl<K, V> Default for Registered<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

/// Creates a registry of already parsed things.
impl<K: Ord, V: Clone + Send + Sync + 'static> FromIterator<(K, V)> for Registered<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(all: T) -> Self {
        let mut registered = Self::default();
        for (name, value) in all {
            registered.add(name, RegisteredBy::default(), Box::new(move || Ok(value.clone())));
        }
        registered
    }
}

impl<K: Ord, V: Clone + Send + Sync + 'static, const N: usize> From<[(K, V); N]> for Registered<K, V> {
    fn from(all: [(K, V); N]) -> Self {
        all.into_iter().collect()
    }
}

impl<K: fmt::Debug, V> fmt::Debug for Registered<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}
