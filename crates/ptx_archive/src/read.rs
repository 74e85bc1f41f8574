//! Reads an archive.

use std::io::Read;

use lzma_rust2::LzmaReader;

use crate::index::{Index, Record};
use crate::{Damaged, LITERAL_CONTEXT_BITS};

/// An archive whose index has been read. [`Archive::unpack`] unpacks one text.
#[derive(Debug)]
pub struct Archive<'a> {
    index: Index<'a>,
    /// Each text's packed bytes, in the order of the records.
    packed: Vec<&'a [u8]>,
}

/// The maximum number of texts to unpack for one text, itself included. It bounds cycles in a damaged archive.
pub(crate) const MAX_DEPTH: usize = 64;

/// The minimum size of the decoder's dictionary.
const MIN_DICTIONARY: usize = 4096;

impl<'a> Archive<'a> {
    /// Reads the index of an archive.
    ///
    /// # Errors
    /// If the bytes are not an archive, or the header or the index is damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Damaged> {
        let (index, mut rest) = Index::parse(bytes)?;
        let mut packed = Vec::with_capacity(index.records.len());
        for record in &index.records {
            let cut = rest.split_at_checked(record.packed as usize);
            let (own, others) = cut.ok_or(Damaged { what: "it ends too soon" })?;
            packed.push(own);
            rest = others;
        }
        if !rest.is_empty() {
            return Err(Damaged { what: "it does not end where its index says" });
        }
        Ok(Self { index, packed })
    }

    /// The architectures' numbers (90 for `sm_90`), newest first.
    pub fn archs(&self) -> &[u32] {
        &self.index.archs
    }

    /// The texts' names, sorted: those of the entries, and [those of cubins](crate::cubin_of).
    pub fn names(&self) -> &[&'a str] {
        &self.index.names
    }

    /// The text `name` for the architecture `arch`, if it is in the archive.
    ///
    /// # Errors
    /// If the text, or a text in its dictionary, is damaged.
    pub fn unpack(&self, name: &str, arch: u32) -> Result<Option<Vec<u8>>, Damaged> {
        let Index { archs, names, records } = &self.index;
        let (Ok(name), Some(arch)) = (names.binary_search(&name), archs.iter().position(|known| *known == arch)) else {
            return Ok(None);
        };
        let text = name * archs.len() + arch;
        if records[text].len == 0 { Ok(None) } else { self.text(text).map(Some) }
    }

    fn text(&self, text: usize) -> Result<Vec<u8>, Damaged> {
        let mut chain = vec![text];
        while let Some(next) = chain.last().and_then(|&last| self.index.records[last].base) {
            if next as usize >= self.packed.len() || chain.len() == MAX_DEPTH {
                return Err(Damaged { what: "the base of a text does not exist, or bases form a cycle" });
            }
            chain.push(next as usize);
        }
        let mut unpacked = Vec::new();
        let mut start = 0;
        for &text in chain.iter().rev() {
            start = unpacked.len();
            self.append(text, &mut unpacked)?;
        }
        Ok(unpacked.split_off(start))
    }

    /// Unpacks a text and appends it to `unpacked`, which has its dictionary.
    fn append(&self, text: usize, unpacked: &mut Vec<u8>) -> Result<(), Damaged> {
        let (Record { len, checksum, .. }, packed) = (self.index.records[text], self.packed[text]);
        if crc32fast::hash(packed) != checksum {
            return Err(Damaged { what: "the checksum of a text is wrong" });
        }
        let wrong = |_| Damaged { what: "a text cannot be unpacked" };
        let dictionary = (!unpacked.is_empty()).then_some(&unpacked[..]);
        let size = (unpacked.len() + len as usize).max(MIN_DICTIONARY) as u32;
        let bits = LITERAL_CONTEXT_BITS;
        let mut reader = LzmaReader::new(packed, len.into(), bits, 0, 0, size, dictionary).map_err(wrong)?;
        let mut own = vec![0; len as usize];
        reader.read_exact(&mut own).map_err(wrong)?;
        unpacked.append(&mut own);
        Ok(())
    }
}
