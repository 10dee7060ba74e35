//! Every operation on a run that is not its conductor's.

mod coordinate;
mod documents;
