//! What a worker cannot do that somebody confines, and what programs can do all the same.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod above;
mod attacks;
mod caches;
mod configured;
mod filters;
mod given;
mod handles;
mod hidden_files;
mod layers;
mod limits;
mod links;
mod looks;
mod moving;
mod planted;
mod programs;
mod reach;
mod remotes;
mod scene;
mod stories;
mod tools;
