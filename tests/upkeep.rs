//! Leftovers and their removal.

mod archive;
mod delete;
mod doctor;
mod locks;
mod places;
