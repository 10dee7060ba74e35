//! What is left behind, and its removal.

mod archive;
mod delete;
mod doctor;
mod locks;
