//! The single integration-test binary, in four parts.
//!
//! `common` has the fixtures: the environment of commands, and repositories to record, forge and
//! drive in.
//!
//! The modules of `src/` come first, by name. (`clock` has no tests of its own: every test pins it,
//! and `verify` checks it.) Private behaviour is tested in the source files.
//!
//! Then what is about no room but about a bad day, or an attack, on all of them:
//!
//! - `bad_days`: executors, operators, disks, refs and sizes that go wrong;
//! - `elsewhere`: products that a run takes from other runs and from threads;
//! - `pipeline`: items that run block by block, from the file of their pipeline to what `verify`
//!   says of each block;
//! - `red`: checks that do not pass, and runs of which not all is done;
//! - `people`: approvals and documents by people with keys of their own, and who may append what;
//! - `reuse`: items that are not run because a run that is trusted had their products;
//! - `shared`: one run that several drivers drive through a remote;
//! - `secrets`: credentials in whatever is stored, shown or handed on;
//! - `crash`: death between any two writes; `race`: two hands at once; `chaos`: both and more, at
//!   random;
//! - `tamper`: everything that can be done to what is recorded; `fuzz`: parsers and mutated bytes;
//!   `vectors`: forged and clean runs for other implementations, as `docs/vectors/` holds them.
//!
//! Last, what is about no behaviour: `docs` runs what the documents show, `layers` holds the rules
//! of the source, `snapshots` that none is left over.
#![allow(clippy::too_many_lines, reason = "a test tells a story from its start to its end")]

mod common;

mod anchor;
mod apply;
mod cli;
mod config;
mod engine;
mod git;
mod graph;
mod interop;
mod ledger;
mod mcp;
mod model;
mod packet;
mod plan;
mod report;
mod repository;
mod run;
mod sandbox;
mod share;
mod thread;
mod upkeep;
mod verify;
mod whence;
mod worker;

mod bad_days;
mod chaos;
mod crash;
mod elsewhere;
mod fuzz;
mod held_out;
mod people;
mod pipeline;
mod protect;
mod race;
mod record;
mod red;
mod reuse;
mod secrets;
mod shared;
mod tamper;
mod vectors;

mod docs;
mod layers;
mod snapshots;
