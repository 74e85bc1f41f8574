//! A compressed archive of the PTX of many kernels, unpacked one kernel at a time.
//!
//! A kernel crate has hundreds of entries. The PTX of each, for each of several architectures, is a separate text: 96
//! MB for warpfold's kernels. Most of it is repetition. An archive compresses each text by LZMA with other texts as its
//! dictionary: the same entry for another architecture, or entries with similar names. The size of a dictionary is
//! limited, so a text is unpacked in milliseconds.
//!
//! ```
//! use ptx_archive::{Archive, Effort, Text, pack};
//!
//! let new = Text { name: "add", arch: 90, contents: b".version 7.8\n" };
//! let texts = [new, Text { arch: 75, contents: b"...", ..new }];
//! let bytes = pack(&texts, Effort::Fast)?;
//! let archive = Archive::parse(&bytes)?;
//! assert_eq!(archive.unpack("add", 75)?.as_deref(), Some(&b"..."[..]));
//! assert_eq!(archive.unpack("mul", 75)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An entry can have a cubin, too, its machine code for one architecture: a text with [a name of its own](cubin_of).
//!
//! [`Archive`] reads an archive. `pack`, behind the feature `pack`, writes one. The same texts result in the same bytes
//! on every machine.
//!
//! # Format
//! All numbers are little-endian.
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | `PTXPACK` and the version of the format, 1 |
//! | 4 | the length of the index |
//! | 4 | the CRC-32 of the length and the index |
//! | | the index |
//! | | the packed texts, in the order of the index |
//!
//! The index consists of
//! - the number of architectures (1 byte), and the number of each (4 bytes), newest first;
//! - the number of names (4 bytes);
//! - for each name, in sorted order: its length (1 byte), its bytes, and a record for each architecture.
//!
//! A record consists of
//! - the number of the text's base, a text that must be unpacked first, or 2^32 - 1 if there is none (4 bytes);
//! - the length of the text (4 bytes), 0 for a text that does not exist;
//! - the length of the packed text (4 bytes), and its CRC-32 (4 bytes).
//!
//! Texts are numbered in the order of their records.
//!
//! A packed text is a raw LZMA stream without end marker, with lc = 4, lp = 0, pb = 0. Its preset dictionary is the
//! dictionary of its base, followed by the base.

mod index;
#[cfg(feature = "pack")]
mod pack;
mod read;

#[cfg(feature = "pack")]
pub use pack::{Effort, Text, pack};
pub use read::Archive;

/// The error for bytes that are not an archive, or a damaged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the archive of PTX is damaged: {what}")]
pub struct Damaged {
    /// What is damaged.
    pub what: &'static str,
}

/// How the names of cubins begin. Names of entries have no colon, and sorted names keep similar texts together.
const CUBIN: &str = "cubin:";

/// The name of the text that is the cubin of an entry.
pub fn cubin_of(entry: &str) -> String {
    format!("{CUBIN}{entry}")
}

/// Whether a text of this name is a cubin.
pub fn is_cubin(name: &str) -> bool {
    name.starts_with(CUBIN)
}

/// LZMA's literal context bits (lc). PTX has long words that differ in a few digits.
const LITERAL_CONTEXT_BITS: u32 = 4;

/// The maximum length of a text in bytes.
const MAX_LEN: usize = 1 << 26;

#[cfg(test)]
mod tests;
