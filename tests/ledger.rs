//! One chain and what is proved of it.

mod prove;
