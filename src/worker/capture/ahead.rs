//! Many small files, written into one pack before git adds them.

use std::collections::BTreeSet;

use gix::bstr::{BString, ByteSlice as _};

use super::Error;
use super::part::Part;
use super::tree::{Scratch, ignored};
use super::walk::Walked;
use crate::git::ahead;

/// Fewer files than this git adds as fast by itself.
const MANY: usize = 200;

/// The most bytes of a file whose own cost is more than that of its bytes.
const SMALL: u64 = 64 << 10;

/// Puts the bytes of the small changed files where git looks for them when it adds these, if there are many.
///
/// What git ignores, and what lies at or below a path that is left out, is not touched; a file that cannot be read, or that git
/// converts, it deals with as it would have done.
pub(in crate::worker) fn write(
    part: &Part<'_>,
    scratch: &Scratch,
    walked: &Walked,
    left_out: &BTreeSet<BString>,
) -> Result<(), Error> {
    let small = walked.sizes.iter().filter(|(size, path)| *size <= SMALL && !is_left_out(path, left_out));
    let small: Vec<&BString> = small.map(|(_, path)| path).collect();
    if small.len() < MANY {
        return Ok(());
    }
    let ignored = ignored(scratch, &small)?;
    let tree = part.open().map_err(Error::at(&part.dir()))?;
    let taken = small.into_iter().filter(|path| !ignored.contains(*path));
    let blobs = taken.filter_map(|path| tree.read(path.to_str().ok()?, SMALL).ok());
    ahead::write(&scratch.objects(), part.store, blobs).map_err(Error::at(&scratch.objects()))
}

/// Returns whether a path lies at or below one that is left out.
pub(in crate::worker) fn is_left_out(path: &BString, left_out: &BTreeSet<BString>) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).any(|end| left_out.contains(path[..end].as_bstr()))
}
