//! Hands work from one agent, person or machine to the next inside a git repository, with proof of
//! who made what from what.
//!
//! # The tour
//!
//! A [`Repository`](repository::Repository) is the entry point: a directory's repository, opened on
//! behalf of an actor.
//!
//! A **plan** is a DAG of work items. [`plan`] parses it, [`plan::validate`] turns it into a
//! `ValidPlan` or a list of problems, and [`run::operate::submit`] starts a **run** from it: one
//! ref, with one signed commit for each event.
//!
//! [`run::query`] reads that chain and folds it into its state ([`model::state`]).
//! [`run::import`] finds what a run takes from other runs and threads. [`run::operate`] alone opens
//! a run to record what happens next.
//!
//! The [`engine`] drives a run: a pure function decides, and one driver dispatches, records and
//! reconciles. It runs each attempt in a [`worktree`] with the inputs under `inputs/`, as a
//! [`process`] in a [`sandbox`], and captures the products.
//!
//! A run can grow. [`run::operate::coordinate`] evaluates its rules against its documents, and adds
//! the items that they create, each exactly once.
//!
//! [`report`] writes a run as a page that carries its evidence and a script that recomputes it, and
//! [`report::export`] writes it in the formats of other programs.
//!
//! [`report::graph`] lays out the items of a run or a plan as a picture of boxes and edges.
//!
//! [`ledger`] appends entries to the chain: objects first, then one compare-and-swap of one ref.
//! [`ledger::merkle`] computes the root that seals the run, and [`ledger::log`] records in the
//! repository's own log that the run was submitted and sealed.
//!
//! [`verify`] recomputes everything from the objects alone. It shares with the writer only the data
//! [`model`], the codec in [`git`] and the signature check in [`ledger::sign`].
//!
//! [`ledger::prove`] extracts a proof of one product, or of the run's continuation, that can be
//! checked without the repository.
//!
//! [`apply`] puts the items' changes onto a branch or into the work tree, and never overwrites
//! local changes. [`whence`] goes the other way: from a commit or a line to the item that made it.
//! [`upkeep`] finds and repairs what crashes left behind, and frees disk space.
//!
//! A [document](run::query::documents) is a file on a run with a history of revisions, written by a
//! user or produced by an item. It is validated against its JSON Schema ([`plan::schemas`]).
//!
//! A [`thread`] is a chain of saved states. One agent offers a checkpoint, and another adopts it
//! only if bytes, chain and signatures are the offered ones.
//!
//! A [packet](thread::packet) describes the state of the work, and is checked before anyone resumes
//! from it.
//!
//! [`share`] pushes and fetches runs, and writes bundles.
//!
//! An [anchor](share::anchor) is a place outside the repository that stores the roots of runs for
//! [`verify`] to compare with.
//!
//! The library emits [events](engine::event) and returns errors. It prints nothing, and reads
//! neither the environment nor a terminal. `docs/reference/format.md` specifies the data on disk.
//!
//! # Features
//!
//! Without default features the crate is the verifier and what it depends on: [`verify`],
//! [`model`], [`plan`], [`git`], and the Merkle tree and signatures of [`ledger`]. `full` adds the
//! rest of the library: `core`, `anchors` (over HTTP) and `schemas` (JSON Schema). `cli` adds the
//! program `git-handoff` to `core`, and `mcp` its command of that name. The default is all of them.
//! Without `anchors` or `schemas`, what needs them returns an error that names the feature.
#![cfg_attr(
    not(feature = "core"),
    expect(rustdoc::broken_intra_doc_links, reason = "the tour leads through rooms that are not there then")
)]

#[cfg(not(unix))]
compile_error!("git-handoff needs Unix: Windows is not supported");

#[cfg(all(feature = "core", not(target_os = "linux")))]
compile_error!("git-handoff drives runs on Linux alone; without the feature `core`, the verifier needs Unix only");

#[macro_use]
pub mod model;

#[cfg_attr(not(feature = "core"), expect(dead_code, unused_imports, reason = "`validate` asks for more than `verify`"))]
pub mod plan;

pub mod git;

#[cfg(feature = "core")]
pub mod clock;

pub mod ledger;

#[cfg(feature = "core")]
pub mod repository;

pub mod verify;

#[cfg(feature = "core")]
pub mod run;

#[cfg(feature = "core")]
pub mod sandbox;

#[cfg(feature = "core")]
pub mod process;

#[cfg(feature = "core")]
pub mod worktree;

#[cfg(feature = "core")]
pub mod engine;

#[cfg(feature = "core")]
pub mod thread;

#[cfg(feature = "core")]
pub mod share;

#[cfg(feature = "core")]
pub mod report;

#[cfg(feature = "core")]
pub mod apply;

#[cfg(feature = "core")]
pub mod whence;

#[cfg(feature = "core")]
pub mod upkeep;

#[cfg(feature = "core")]
pub mod answers;
