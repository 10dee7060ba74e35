//! One attempt, from the checkout to the products, against real repositories and stock git.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod beside;
mod capturing;
mod extras;
mod harness;
mod nested;
mod outputs;
mod pool;
mod refs;
mod running;
mod submodules;
mod supervised;
mod survivors;
mod worktree;
