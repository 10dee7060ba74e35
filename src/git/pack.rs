//! Writes a pack and its index.
//!
//! Stores every object undeltified, because git deltifies when packs are merged. Streams blobs of
//! any size.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use gix::hash::{Hasher, Kind as HashKind, ObjectId};
use gix::objs::Kind;
use gix::odb::pack::data::entry::Header;
use gix::odb::pack::data::{Version, header};
use gix::zlib::Compression;
use gix::zlib::stream::deflate;
use tempfile::{Builder, NamedTempFile};

/// The prefix of unfinished packs. git ignores them, and `doctor` finds them.
pub(super) const UNFINISHED: &str = ".tmp-handoff-";

/// The first four bytes of an index, and its version.
const INDEX: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];

/// Offsets from this value on do not fit the index's table of small offsets.
const LARGE_OFFSET: u64 = 1 << 31;

/// The bytes of one read.
const CHUNK: usize = 64 << 10;

/// The offset of an object in the pack and the checksum of its entry.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    crc: u32,
}

/// A pack being written to a temporary file beside the others. Deleted if dropped.
pub(super) struct PackWriter {
    out: BufWriter<NamedTempFile>,
    hash: HashKind,
    /// The number of bytes so far.
    end: u64,
    places: BTreeMap<ObjectId, Place>,
}

/// A pack and its index, complete under temporary names.
pub(super) struct Finished {
    pub(super) pack: NamedTempFile,
    pub(super) index: NamedTempFile,
    /// The checksum that the pack ends with.
    pub(super) checksum: ObjectId,
}

impl PackWriter {
    /// Starts a pack in the folder of packs.
    pub(super) fn new(folder: &Path, hash: HashKind) -> io::Result<Self> {
        let mut out = BufWriter::new(temporary(folder)?);
        // The number of objects is filled in at the end.
        out.write_all(&header::encode(Version::V2, 0))?;
        Ok(Self { out, hash, end: header::encode(Version::V2, 0).len() as u64, places: BTreeMap::new() })
    }

    /// Returns true if the pack contains the object.
    pub(super) fn contains(&self, oid: ObjectId) -> bool {
        self.places.contains_key(&oid)
    }

    /// Adds an object whose id is known.
    pub(super) fn add(&mut self, oid: ObjectId, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        if self.contains(oid) {
            return Ok(());
        }
        let mut entry = self.entry(kind, bytes.len() as u64)?;
        entry.push(bytes)?;
        let (place, end) = entry.finish()?;
        self.place(oid, place, end);
        Ok(())
    }

    /// Adds exactly `size` bytes as a blob and returns its id. A reader that ends early leaves the
    /// pack unchanged.
    pub(super) fn stream(&mut self, size: u64, from: &mut dyn Read) -> Result<ObjectId, gix::Error> {
        let streamed = self.try_stream(size, from);
        if streamed.is_err() {
            self.take_back().map_err(gix::error::ErrorExt::raise)?;
        }
        streamed
    }

    fn try_stream(&mut self, size: u64, from: &mut dyn Read) -> Result<ObjectId, gix::Error> {
        let mut hasher = gix::hash::hasher(self.hash);
        hasher.update(&gix::objs::encode::loose_header(Kind::Blob, size));
        let io = gix::error::ErrorExt::raise;
        let mut entry = self.entry(Kind::Blob, size).map_err(io)?;
        let (mut left, mut chunk) = (size, vec![0; CHUNK]);
        while left > 0 {
            let most = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
            let read = from.read(&mut chunk[..most]).map_err(io)?;
            if read == 0 {
                return Err(io(io::ErrorKind::UnexpectedEof.into()));
            }
            hasher.update(&chunk[..read]);
            entry.push(&chunk[..read]).map_err(io)?;
            left -= read as u64;
        }
        let (place, end) = entry.finish().map_err(io)?;
        let oid = hasher.try_finalize()?;
        if self.contains(oid) {
            self.take_back().map_err(io)?;
        } else {
            self.place(oid, place, end);
        }
        Ok(oid)
    }

    /// Completes the pack and writes its index.
    pub(super) fn finish(self) -> io::Result<Finished> {
        let count = u32::try_from(self.places.len()).map_err(|_| io::Error::other("too many objects for one pack"))?;
        let mut pack = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        pack.rewind()?;
        pack.write_all(&header::encode(Version::V2, count))?;
        pack.rewind()?;
        let mut hasher = gix::hash::hasher(self.hash);
        let mut read = BufReader::with_capacity(CHUNK, pack.as_file()).take(self.end);
        io::copy(&mut read, &mut Hashing { out: io::sink(), hasher: &mut hasher })?;
        let checksum = finalize(hasher)?;
        pack.seek(SeekFrom::Start(self.end))?;
        pack.write_all(checksum.as_slice())?;
        let index = index(pack.path().parent().expect("it is in a folder"), self.hash, &self.places, checksum)?;
        Ok(Finished { pack, index, checksum })
    }

    fn entry(&mut self, kind: Kind, size: u64) -> io::Result<Entry<'_>> {
        let mut summing = Summing { out: &mut self.out, crc: crc32fast::Hasher::new(), written: 0 };
        let header = match kind {
            Kind::Blob => Header::Blob,
            Kind::Tree => Header::Tree,
            Kind::Commit => Header::Commit,
            Kind::Tag => Header::Tag,
        };
        header.write_to(size, &mut summing)?;
        Ok(Entry { offset: self.end, out: deflate::Write::new(summing, Compression::BEST_SPEED) })
    }

    fn place(&mut self, oid: ObjectId, place: Place, end: u64) {
        self.places.insert(oid, place);
        self.end = end;
    }

    /// Truncates an entry that was not completed.
    fn take_back(&mut self) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(self.end))?;
        self.out.get_ref().as_file().set_len(self.end)
    }
}

/// An object being written into a pack.
struct Entry<'a> {
    offset: u64,
    out: deflate::Write<Summing<'a>>,
}

impl Entry<'_> {
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Returns its offset and checksum, and the offset of the next entry.
    fn finish(mut self) -> io::Result<(Place, u64)> {
        self.out.flush()?;
        let summing = self.out.into_inner();
        Ok((Place { offset: self.offset, crc: summing.crc.finalize() }, self.offset + summing.written))
    }
}

/// Forwards bytes and computes the index's CRC-32.
struct Summing<'a> {
    out: &'a mut BufWriter<NamedTempFile>,
    crc: crc32fast::Hasher,
    written: u64,
}

impl Write for Summing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.crc.update(&bytes[..written]);
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Forwards bytes and hashes them.
struct Hashing<'a, W> {
    out: W,
    hasher: &'a mut Hasher,
}

impl<W: Write> Write for Hashing<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn finalize(hasher: Hasher) -> io::Result<ObjectId> {
    hasher.try_finalize().map_err(io::Error::other)
}

/// Creates a file that git does not take for a pack, readable by everyone who may read the
/// repository.
pub(super) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let file = Builder::new().prefix(UNFINISHED).rand_bytes(16).tempfile_in(folder)?;
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o444))?;
    Ok(file)
}

/// Writes an index, version 2.
fn index(
    folder: &Path,
    hash: HashKind,
    places: &BTreeMap<ObjectId, Place>,
    checksum: ObjectId,
) -> io::Result<NamedTempFile> {
    let mut file = temporary(folder)?;
    let mut hasher = gix::hash::hasher(hash);
    let mut out = BufWriter::new(Hashing { out: file.as_file_mut(), hasher: &mut hasher });
    out.write_all(&INDEX)?;
    let mut upto = [0_u32; 256];
    places.keys().for_each(|oid| upto[usize::from(oid.first_byte())] += 1);
    let mut total = 0;
    for count in upto {
        total += count;
        out.write_all(&total.to_be_bytes())?;
    }
    places.keys().try_for_each(|oid| out.write_all(oid.as_slice()))?;
    places.values().try_for_each(|place| out.write_all(&place.crc.to_be_bytes()))?;
    let mut large: Vec<u64> = Vec::new();
    for place in places.values() {
        let small = u32::try_from(place.offset).ok().filter(|_| place.offset < LARGE_OFFSET);
        let offset = small.unwrap_or_else(|| {
            large.push(place.offset);
            // The number of its row in the table of large ones, with the highest bit set.
            u32::try_from(large.len() - 1).expect("there are fewer entries than a pack may have") | (1 << 31)
        });
        out.write_all(&offset.to_be_bytes())?;
    }
    large.iter().try_for_each(|offset| out.write_all(&offset.to_be_bytes()))?;
    out.write_all(checksum.as_slice())?;
    out.flush()?;
    drop(out);
    let own = finalize(hasher)?;
    file.write_all(own.as_slice())?;
    Ok(file)
}

/// Syncs a file to disk.
pub(super) fn force(file: &File) -> io::Result<()> {
    file.sync_data()
}
