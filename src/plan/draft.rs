//! A plan as far as it could be read, so that checking can go on past the first problem.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId, NameError, RunId};
use crate::model::plan::{DraftNeed, Item, Need, Plan, Produced, Source, item_fields, plan_fields};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::Fields;
use crate::model::rule::Rule;
use crate::plan::read;
use crate::plan::rule::DraftRule;

/// What a field of a plan holds, and what is kept of it while there may be something wrong with it.
///
/// References stay text so that one to a badly named item is not reported again as unknown.
pub(crate) trait Drafted: Sized {
    /// What could be read; a field that is wrong is absent in it.
    type Draft;

    /// Returns the value; `None` if anything of it is missing or no valid name.
    fn finish(draft: Self::Draft) -> Option<Self>;
}

/// Types that are whole whenever they are read.
macro_rules! whole {
    ($($type:ty),*) => {$(
        impl Drafted for $type {
            type Draft = Self;

            fn finish(draft: Self) -> Option<Self> {
                Some(draft)
            }
        }
    )*};
}

whole!(bool, Option<String>, Option<u32>, Option<u64>);

/// Types that are there or not.
macro_rules! there_or_not {
    ($($type:ty),*) => {$(
        impl Drafted for $type {
            type Draft = Option<Self>;

            fn finish(draft: Option<Self>) -> Option<Self> {
                draft
            }
        }
    )*};
}

there_or_not!(String, Map<String, Value>);

/// Types that are kept as they are written.
macro_rules! names {
    ($($type:ty),*) => {$(
        impl Drafted for $type {
            type Draft = Option<String>;

            fn finish(draft: Option<String>) -> Option<Self> {
                draft?.parse().ok()
            }
        }
    )*};
}

names!(ItemId, RunId);

impl<T: Drafted> Drafted for Vec<T> {
    /// One for each element, so that positions are the author's.
    type Draft = Vec<T::Draft>;

    fn finish(draft: Self::Draft) -> Option<Self> {
        draft.into_iter().map(T::finish).collect()
    }
}

impl<T: Drafted> Drafted for BTreeMap<FilePath, T> {
    type Draft = BTreeMap<String, T::Draft>;

    fn finish(draft: Self::Draft) -> Option<Self> {
        draft.into_iter().map(|(key, value)| Some((FilePath::parse(&key).ok()?, T::finish(value)?))).collect()
    }
}

impl Drafted for Option<Vec<Produced>> {
    type Draft = DraftProducts;

    fn finish(draft: DraftProducts) -> Option<Self> {
        Some(draft.read)
    }
}

impl Drafted for Option<ItemId> {
    type Draft = Option<String>;

    fn finish(draft: Option<String>) -> Option<Self> {
        draft.map_or(Some(None), |text| text.parse().ok().map(Some))
    }
}

impl Drafted for Item {
    type Draft = Option<DraftItem>;

    fn finish(draft: Self::Draft) -> Option<Self> {
        draft?.finish()
    }
}

impl Drafted for Need {
    type Draft = DraftNeed;

    fn finish(draft: DraftNeed) -> Option<Self> {
        draft.finish()
    }
}

impl Drafted for Rule {
    type Draft = DraftRule;

    fn finish(draft: DraftRule) -> Option<Self> {
        draft.finish()
    }
}

/// Declares what is kept of a table of fields while it is read, and reads it.
macro_rules! drafted {
    ($([$place:ident: $place_type:ty])?
    $(#[$doc:meta])* $name:ident read as $draft:ident $(($(#[$id_doc:meta])* $id:ident: $id_type:ty))? {
        $($(#[$about:meta])* $field:ident: $type:ty = $key:literal, $presence:ident, $read:expr $(, as $write:path)?;)*
    }) => {
        #[doc = concat!("A [`", stringify!($name), "`] as far as it could be read.")]
        pub(crate) struct $draft {
            $(/// Where it stands; the root for one that stands in no plan that is being read.
            pub(crate) $place: $place_type,)?
            $(pub(crate) $id: <$id_type as Drafted>::Draft,)?
            $(pub(crate) $field: <$type as Drafted>::Draft,)*
        }

        impl $draft {
            /// Reads every field but the id.
            pub(super) fn read(
                fields: &Fields<'_>,
                $($place: $place_type,)?
                $($id: <$id_type as Drafted>::Draft,)?
                problems: &mut Problems,
            ) -> Self {
                $(drafted!(@first $presence, fields.required($key, problems));)*
                $(
                    drafted!(@in_turn $presence, fields.required($key, problems));
                    let $field = ($read)(fields, $key, problems);
                )*
                Self { $($place,)? $($id,)? $($field),* }
            }

            /// Returns the whole; `None` if anything of it is missing or no valid name.
            pub(crate) fn finish(self) -> Option<$name> {
                Some($name {
                    $($id: <$id_type as Drafted>::finish(self.$id)?,)?
                    $($field: <$type as Drafted>::finish(self.$field)?,)*
                })
            }
        }
    };
    (@first required, $report:expr) => { $report; };
    (@first $other:ident, $report:expr) => {};
    (@in_turn late, $report:expr) => { $report; };
    (@in_turn $other:ident, $report:expr) => {};
}

plan_fields!(drafted);
item_fields!(drafted [path: ItemPath]);

/// The products that an item declares, as far as they could be read.
pub(crate) struct DraftProducts {
    pub(crate) read: Option<Vec<Produced>>,
    /// Whether it declares products that could not be read.
    pub(crate) unread: bool,
}

impl DraftProducts {
    /// Goes through those that could be read.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Produced> {
        self.read.iter().flatten()
    }
}

/// The place of an item's field.
pub(crate) struct ItemPath(pub(crate) JsonPath);

impl ItemPath {
    /// The item as a whole.
    pub(crate) fn itself(&self) -> &JsonPath {
        &self.0
    }

    /// A field of the item.
    pub(crate) fn key(&self, key: &str) -> JsonPath {
        self.0.key(key)
    }

    /// A field of one of the item's needs.
    pub(crate) fn need(&self, key: &str, field: &str) -> JsonPath {
        self.0.key("needs").key(key).key(field)
    }
}

impl DraftItem {
    /// Reports references that no item can answer to, where nothing is known of the other items.
    pub(crate) fn check_references(&self, problems: &mut Problems) {
        let path = &self.path;
        let mut report = |error: NameError, at: JsonPath| {
            problems.push(Problem::new(Code::BadId, &at, error.to_string()));
        };
        for (key, id) in [("replaces", &self.replaces), ("continues", &self.continues)] {
            if let Some(Err(error)) = id.as_deref().map(ItemId::parse) {
                report(error, path.key(key));
            }
        }
        for (index, id) in self.depends_on.iter().enumerate() {
            if let Some(Err(error)) = id.as_deref().map(ItemId::parse) {
                report(error, path.key("depends_on").index(index));
            }
        }
        for (key, need) in &self.needs {
            if let Some(Err(error)) = need.from.as_deref().map(str::parse::<Source>) {
                report(error, path.need(key, "from"));
            }
        }
    }
}
