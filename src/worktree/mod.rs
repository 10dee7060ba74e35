//! The worktree of an attempt: created from the base, filled with inputs, and captured.
//!
//! [`workspace`] creates the worktree, [`inputs`] writes the consumed products into it, with what
//! filters need of them ([`consumed`]), and [`capture`] takes the products. [`salvage`] saves the
//! work of an attempt without products, and [`stray_commits`] the commits that the work does not
//! contain. [`product`] writes recorded products into a fresh worktree, and [`users_work`] the work
//! of the user's own work tree. [`known_folders`] remembers where worktrees are. [`filters`]
//! decides where the repository's filters run, and [`home_mirror`] makes home directories for
//! checks. Everything that a worker wrote is hostile: no git command and no library call ever
//! discovers a repository through the worktree.

pub mod capture;
pub mod consumed;
pub mod filters;
pub mod held_out;
pub mod home_mirror;
pub mod host;
pub mod inputs;
pub mod known_folders;
pub mod product;
pub mod protect;
pub mod salvage;
pub mod settings;
pub mod stray_commits;
pub mod users_work;
pub mod workspace;
