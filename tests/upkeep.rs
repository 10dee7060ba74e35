//! What is left behind, and its removal.

mod doctor;
