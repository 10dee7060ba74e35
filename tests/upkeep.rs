//! What is left behind, and its removal.

mod archive;
mod doctor;
