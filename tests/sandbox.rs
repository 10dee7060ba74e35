//! What a worker cannot do that somebody confines, and what programs can do all the same.

mod attacks;
mod layers;
mod limits;
mod programs;
mod scene;
