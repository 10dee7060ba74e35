//! Tables of errors: a row holds a variant, its code for programs, its exit code and its message.
//!
//! ```text
//! errors! {
//!     /// Why a run cannot be proven.
//!     #[derive(Debug, thiserror::Error)] pub enum Error = "prove";
//!     NotSealed(RunId) "not-sealed": "the run {0:?} is not sealed";
//!     Altered { item: ItemId } "altered" 3: "the patch of {item:?} was altered";
//!     Red(Vec<ItemId>): "{} red" [are(.0)];
//!     #[from] Store(store::Error), Ref(refs::Error);
//! }
//! ```
//!
//! A row without a code has that of the table, if the table has one. A code without a number exits
//! with 1. Messages and fields are those of `thiserror`; further arguments of a message stand
//! between brackets. The variants of the last rows, `#[from]`, only pass on another error: they
//! have its message, and no code unless it stands there, as in `#[from "prove"]`. The `derive`
//! cannot move into the macro: `.0` of a message must be resolved where the message stands.

/// The code of an error for programs, and the exit code of a command that it ends.
pub type Code = (&'static str, u8);

/// An error with codes, for a program that reports it.
pub trait Coded {
    /// Returns the code, or `None` if an error that this one wraps decides.
    fn code(&self) -> Option<Code>;
}

/// Defines an enum of errors as a table, with its codes.
macro_rules! errors {
    (@code) => { None };
    (@code $code:literal) => { Some(($code, 1)) };
    (@code $code:literal $exit:literal) => { Some(($code, $exit)) };
    (
        $(#[$attribute:meta])*
        $visible:vis enum $name:ident $(= $default:literal $($default_exit:literal)?)?;
        $(
            $variant:ident
            $(($($tuple:tt)*))?
            $({ $($(#[$on_field:meta])* $field:ident: $type:ty),* $(,)? })?
            $($code:literal $($exit:literal)?)?:
            $message:literal $([$($argument:tt)*])?;
        )*
        $(#[from $($from_code:literal $($from_exit:literal)?)?] $($from:ident($source:ty)),+;)*
    ) => {
        $(#[$attribute])*
        $visible enum $name {
            $(
                #[doc = concat!("Shown as `` ", $message, " ``.")]
                #[error($message $(, $($argument)*)?)]
                $variant
                $(($($tuple)*))?
                $({ $(#[doc = concat!("`", stringify!($field), "` in the message.")] $(#[$on_field])* $field: $type),* })?,
            )*
            $($(
                #[doc = "Passes on the error."]
                #[error("{0}")]
                $from(#[from] $source),
            )+)*
        }

        impl $crate::model::errors::Coded for $name {
            fn code(&self) -> Option<$crate::model::errors::Code> {
                let own: Result<Option<$crate::model::errors::Code>, _> = match self {
                    $(Self::$variant { .. } => Ok(errors!(@code $($code $($exit)?)?)),)*
                    $($(Self::$from(_))|+ => Err(errors!(@code $($from_code $($from_exit)?)?)),)*
                };
                let default = errors!(@code $($default $($default_exit)?)?);
                own.map_or_else(|passed_on| passed_on, |own| own.or(default))
            }
        }
    };
}
