//! Exports. The scripts here check them with other libraries; `.ci/run` runs them.

mod export;
mod formats;
