//! The size of a pack's objects, read before git unpacks them: a few bytes can become gigabytes.

use std::io::{self, BufRead, ErrorKind};

use gix::zlib::{Decompress, FlushDecompress, Status};

/// The bytes at the start of a difference that hold both sizes.
const SIZES: usize = 20;

/// The bytes inflated at once.
const CHUNK: usize = 64 << 10;

/// Returns true if the objects of a pack, and its differences, have at most `most` bytes together.
///
/// A malformed pack counts up to its fault, where git stops, too. See gitformat-pack(5).
pub fn fits(pack: impl BufRead, hash_length: usize, most: u64) -> io::Result<bool> {
    let mut pack = Pack { bytes: pack, inflater: Decompress::new(), chunk: vec![0; CHUNK], hash_length };
    match pack.measure(most) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => Ok(true),
        measured => measured,
    }
}

struct Pack<R> {
    bytes: R,
    inflater: Decompress,
    chunk: Vec<u8>,
    hash_length: usize,
}

impl<R: BufRead> Pack<R> {
    fn measure(&mut self, most: u64) -> io::Result<bool> {
        let mut head = [0; 12];
        self.bytes.read_exact(&mut head)?;
        let [.., a, b, c, d] = head;
        let mut total: u64 = 0;
        for _ in 0..u32::from_be_bytes([a, b, c, d]) {
            total = total.saturating_add(self.measure_object(most)?);
            if total > most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the size of an object, and of its difference if it has one. Does not inflate an
    /// object of more than `most` bytes.
    fn measure_object(&mut self, most: u64) -> io::Result<u64> {
        let first = self.byte()?;
        let size = self.number(first, u64::from(first & 15), 4)?;
        let is_difference = match first >> 4 & 7 {
            1..=4 => false,
            6 => {
                while self.byte()? & 128 != 0 {}
                true
            }
            7 => {
                let mut name = vec![0; self.hash_length];
                self.bytes.read_exact(&mut name)?;
                true
            }
            _ => return Err(ErrorKind::InvalidData.into()),
        };
        if size > most {
            return Ok(size);
        }
        let start = self.inflate()?;
        let made = if is_difference { second_number(&start) } else { 0 };
        Ok(size.saturating_add(made))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads the rest of a number with 7 bits in each byte, the lowest first.
    fn number(&mut self, mut byte: u8, mut number: u64, mut shift: u32) -> io::Result<u64> {
        while byte & 128 != 0 {
            byte = self.byte()?;
            number |= u64::from(byte & 127).checked_shl(shift).unwrap_or(u64::MAX);
            shift += 7;
        }
        Ok(number)
    }

    /// Passes one compressed stream, and returns its first bytes.
    fn inflate(&mut self) -> io::Result<Vec<u8>> {
        self.inflater.reset();
        let mut start = Vec::new();
        loop {
            let input = self.bytes.fill_buf()?;
            if input.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let (read, written) = (self.inflater.total_in(), self.inflater.total_out());
            let status = self.inflater.decompress(input, &mut self.chunk, FlushDecompress::None);
            let status = status.map_err(|_| ErrorKind::InvalidData)?;
            let (used, made) = (length(read, self.inflater.total_in()), length(written, self.inflater.total_out()));
            self.bytes.consume(used);
            start.extend_from_slice(&self.chunk[..made.min(SIZES.saturating_sub(start.len()))]);
            match status {
                Status::StreamEnd => return Ok(start),
                _ if used == 0 && made == 0 => return Err(ErrorKind::InvalidData.into()),
                _ => {}
            }
        }
    }
}

fn length(since: u64, now: u64) -> usize {
    usize::try_from(now - since).expect("a part of a chunk")
}

/// Returns the second number at the start of a difference: the size of the object that it makes.
///
/// A number that does not end there is larger than any limit.
fn second_number(difference: &[u8]) -> u64 {
    let first = difference.iter().take_while(|byte| **byte & 128 != 0).count() + 1;
    let (mut number, mut shift) = (0_u64, 0);
    for byte in difference.iter().skip(first) {
        number |= u64::from(byte & 127).checked_shl(shift).unwrap_or(u64::MAX);
        shift += 7;
        if byte & 128 == 0 {
            return number;
        }
    }
    u64::MAX
}
