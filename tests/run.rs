//! Every operation on a run that is not its driver's.

mod begins;
mod contents;
mod coordinate;
mod documents;
mod missing;
mod nothing;
mod patterns;
mod told;
mod trace_event;
