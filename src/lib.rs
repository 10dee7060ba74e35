//! Hands work from one agent, person or machine to the next inside a git repository, so that anyone can prove afterwards
//! who made what from what.
//!
//! # The tour
//!
//! A [`Repository`](repository::Repository) is the front door: it is opened for a directory and somebody who acts there.
//!
//! A **plan** is a DAG of work items. [`plan`] reads its bytes, [`plan::validate`] turns it into a `ValidPlan` or into every problem
//! it has, and [`run::submit`] makes a **run** of it: one ref, on which every event is one signed commit.
//!
//! [`run`] opens that chain, folds it into its state ([`model::state`]) and is the one way to record what happens next. The
//! [`engine`] drives it: a pure function decides, one driver dispatches, records and reconciles. The [`worker`] is one
//! attempt: a worktree of its own, the consumed bytes under `inputs/`, one child process, and the capture of what it made.
//!
//! A run can grow while it goes on. [`run::coordinate`] holds its rules against the documents that it holds, and adds the items that
//! they create, each exactly once.
//!
//! [`ledger`] is that chain: it appends entries: objects first, then one swap of one ref. [`ledger::merkle`] folds their hashes into the root that seals
//! the run, and [`ledger::log`] notes in the repository's own log that it was submitted and sealed.
//!
//! [`verify`] recomputes all of it from the objects alone and shares nothing with the writer but the data [`model`], the
//! codec in [`git`] and the check of a signature in [`ledger::sign`].
//!
//! [`ledger::prove`] takes from a sealed run what proves one product, or how the run went on, to somebody who has nothing else.
//!
//! [`apply`] puts what the items changed onto a branch or into the work tree, and never onto anybody's local changes. [`whence`] goes the
//! way back: from a commit or a line to the item that made it. [`upkeep`] finds and mends what crashes left half-done, and removes what
//! they left on the disk.
//!
//! A [`run::document`] is a file on a run with a history of revisions: put there by whoever writes, or handed over by an item; each is
//! held against its JSON Schema ([`plan::schemas`]), and refused to a reader who wants another version.
//!
//! A [`thread`] is the other handoff: a chain of saved states, of which one agent offers a checkpoint and another adopts it, only if
//! the bytes, the chain and the signatures are what was offered.
//!
//! A [`packet`] says where the work stands; it is checked before anyone resumes from it.
//!
//! [`share`] hands runs on: to a remote, from one, and in a bundle.
//!
//! An [`anchor`] is a place outside the repository that holds the roots of runs, against which [`verify`] holds them.
//!
//! The library emits [events](engine::event) and returns errors; it prints nothing, and reads neither the environment nor a terminal.
//! What is on disk is written down in `docs/format.md`.
//!
//! # Features
//!
//! Without default features the crate is the verifier and what it rests on: [`verify`], [`model`], [`plan`], [`git`], and the
//! tree and the signatures of [`ledger`]. `full` adds the rest of the library, and `cli`, the default, the program `git-handoff`.
#![cfg_attr(
    not(feature = "full"),
    expect(rustdoc::broken_intra_doc_links, reason = "the tour leads through rooms that are not there then")
)]

pub mod model;

#[cfg_attr(not(feature = "full"), expect(dead_code, unused_imports, reason = "`validate` asks for more than `verify`"))]
pub mod plan;

pub mod git;

#[cfg(feature = "full")]
pub mod clock;
#[cfg(feature = "full")]
pub mod config;

pub mod ledger;

#[cfg(feature = "full")]
pub mod repository;

pub mod verify;

#[cfg(feature = "full")]
pub mod run;

#[cfg(feature = "full")]
pub mod worker;

#[cfg(feature = "full")]
pub mod engine;

#[cfg(feature = "full")]
pub mod packet;

#[cfg(feature = "full")]
pub mod thread;

#[cfg(feature = "full")]
pub mod share;

#[cfg(feature = "full")]
pub mod anchor;

#[cfg(feature = "full")]
pub mod interop;

#[cfg(feature = "full")]
pub mod apply;

#[cfg(feature = "full")]
pub mod whence;

#[cfg(feature = "full")]
pub mod upkeep;
