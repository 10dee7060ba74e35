//! What is registered under a name and described by a file, each read when it is first asked for: one that cannot be read
//! is in the way of nobody who does not need it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Things of one kind that are registered, by their names.
#[derive(Clone)]
pub struct Registered<K, V> {
    entries: BTreeMap<K, Arc<Thing<V>>>,
}

/// Reads the file of one thing, or says what is wrong with it, naming it.
type Read<V> = Box<dyn Fn() -> Result<V, String> + Send + Sync>;

/// The setting that registers a thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredBy {
    /// Its key.
    pub key: String,
    /// Where it stands.
    pub origin: String,
    /// The file that it names.
    pub file: String,
}

/// One thing, as it is set and as it was read.
struct Thing<V> {
    place: Arc<RegisteredBy>,
    read: Read<V>,
    value: OnceLock<Result<V, String>>,
}

/// A registered thing that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {key} in {origin} names that file", key = .place.key, origin = .place.origin)]
pub struct Unreadable {
    /// Where it is set.
    pub place: Arc<RegisteredBy>,
    /// What is wrong with its file, which this names.
    pub why: String,
}

impl<K: Ord, V> Registered<K, V> {
    /// Adds a thing that is read when it is first asked for.
    pub fn add(&mut self, name: K, place: RegisteredBy, read: Read<V>) {
        self.entries.insert(name, Arc::new(Thing { place: Arc::new(place), read, value: OnceLock::new() }));
    }

    /// Returns the names in order.
    pub fn names(&self) -> impl Iterator<Item = &K> + Clone {
        self.entries.keys()
    }

    /// Returns the setting that registers the thing of a name.
    pub fn place(&self, name: &K) -> Option<&RegisteredBy> {
        Some(&self.entries.get(name)?.place)
    }

    /// Returns the thing of a name; none where nothing of that name is registered.
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

/// Things that are at hand and need not be read.
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
