//! PTX of many kernels in few bytes, unpacked one kernel at a time.
//!
//! A kernel crate has hundreds of entries. Each is a PTX module of its own for each of several architectures: 96 MB for
//! warpfold's kernels. Most of this text is repetition. An archive compresses each text by LZMA with other texts as its
//! dictionary: the same entry for another architecture, or entries with similar names. Unpacking a text needs only a
//! limited number of other texts, so it takes milliseconds.
//!
//! ```
//! use ptx_archive::{Archive, Effort, Text, pack};
//!
//! let texts = [Text { name: "add", arch: 90, ptx: ".version 7.8\n" }, Text { name: "add", arch: 75, ptx: "..." }];
//! let bytes = pack(&texts, Effort::Fast)?;
//! let archive = Archive::parse(&bytes)?;
//! assert_eq!(archive.unpack("add", 75)?.as_deref(), Some("..."));
//! assert_eq!(archive.unpack("mul", 75)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Archive`] reads an archive. `pack`, behind the feature `pack`, writes one: the same texts give the same bytes on
//! every machine.
//!
//! # Format
//! All numbers are little-endian.
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | `PTXPACK` and the version of the format, 1 |
//! | 4, 4 | length of the index; CRC-32 of the length and the index |
//! | | the index |
//! | | the packed texts, one after another, in the order of the index |
//!
//! The index has the number of architectures (1 byte) and their numbers (4 each), newest first; the number of names
//! (4); and for each name, sorted, its length (1), its bytes, and a record for each architecture. A record has the
//! number of the text that must be unpacked first, or 2^32 - 1 (4), its text's length unpacked (4) and packed (4), and
//! the CRC-32 of the packed bytes (4). A record of length 0 is a text that does not exist. Texts are numbered in the
//! order of their records.
//!
//! A text is a raw LZMA stream without end marker, with lc = 4, lp = 0, pb = 0. Its preset dictionary is the
//! concatenation of the texts that must be unpacked first, in the order of unpacking.

mod index;
#[cfg(feature = "pack")]
mod pack;
mod read;

#[cfg(feature = "pack")]
pub use pack::{Effort, Text, pack};
pub use read::Archive;

/// The error of bytes that `pack` has not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the archive of PTX is damaged: {what}")]
pub struct Damaged {
    /// The damage.
    pub what: &'static str,
}

/// The literal context bits of LZMA. PTX has long words that differ in a few digits.
const LITERAL_CONTEXT_BITS: u32 = 4;

/// The maximum length of a text in bytes.
const MAX_LEN: usize = 1 << 26;

#[cfg(test)]
mod tests;
