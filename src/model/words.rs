//! The words of enums, and types that JSON has as text: each form is written once.

/// Gives an enum the list of its variants, and the word of each for JSON and messages.
///
/// `words!(Decision.word: Approved = "approved", …)` defines `Decision::ALL`, `Decision::word`, and
/// `Display`.
macro_rules! words {
    ($name:ident.$function:ident: $($variant:ident = $word:literal),+) => {
        impl $name {
            /// All variants, in a fixed order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Returns the word for it.
            pub fn $function(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$function())
            }
        }
    };
}

/// Writes types in JSON as their `Display` text.
macro_rules! written_as_text {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

/// Writes types in JSON as their `Display` text, and reads them with `FromStr`.
macro_rules! as_text {
    ($($name:ty),+) => {$(
        $crate::model::words::written_as_text!($name);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

pub(crate) use {as_text, words, written_as_text};
