//! Drivers elsewhere that drive a run alone, as their beats on its remote say.

use crate::git::refs;
use crate::model::digest::Oid;
use crate::model::driver::DriverId;
use crate::model::format;
use crate::run::operate::beats::Judge;

use super::{Error, OpenRun};

/// A driver that drives a run without sharing it.
pub struct LoneDriver {
    /// The driver.
    pub id: DriverId,
    /// The name of its host.
    pub host: Option<String>,
    /// The value of the ref of its beats.
    pub beat: Oid,
}

impl OpenRun {
    /// Returns the drivers that had beats on the remote at the last read that say that they drive
    /// the run alone.
    pub fn lone_drivers(&self) -> Result<Vec<LoneDriver>, Error> {
        let (store, run, folder) = (&self.writer.store, &self.run, format::driver_refs(&self.run));
        let judge = Judge { store, run, first: self.first, state: &self.state };
        Ok(refs::list(store, &folder)?
            .into_iter()
            .filter_map(|(name, beat)| {
                let id = DriverId::parse(name.strip_prefix(&folder)?)?;
                let sign = judge.sign(&id, beat).filter(|sign| sign.beat.alone)?;
                Some(LoneDriver { id, host: sign.beat.host, beat })
            })
            .collect())
    }
}
