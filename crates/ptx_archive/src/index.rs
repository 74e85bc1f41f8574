//! The index of an archive, and its encoding as bytes.

use crate::{Damaged, MAX_LEN};

/// The first bytes of an archive, with the version of the format.
pub const MAGIC: &[u8; 8] = b"PTXPACK\x01";

/// A text in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the text's base, which must be unpacked first.
    pub base: Option<u32>,
    /// The length of the text in bytes; 0 if the text does not exist.
    pub len: u32,
    /// The length of the packed text in bytes.
    pub packed: u32,
    /// The checksum of the packed text.
    pub checksum: u32,
}

impl Record {
    /// The record of a text that does not exist.
    #[cfg(feature = "pack")]
    pub const ABSENT: Self = Self { base: None, len: 0, packed: 0, checksum: 0 };
}

/// The index: a record for each name and architecture.
#[derive(Debug)]
pub struct Index<'a> {
    /// Architectures, newest first.
    pub archs: Vec<u32>,
    /// Names, sorted.
    pub names: Vec<&'a str>,
    /// The records of all architectures of the first name, then those of the second name, and so on.
    pub records: Vec<Record>,
}

/// The base of a text without one.
const NO_BASE: u32 = u32::MAX;

impl<'a> Index<'a> {
    /// The header and the index as bytes; `None` if a number is too large for the format.
    #[cfg(feature = "pack")]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut index = vec![u8::try_from(self.archs.len()).ok()?];
        self.archs.iter().for_each(|arch| index.extend(arch.to_le_bytes()));
        index.extend(u32::try_from(self.names.len()).ok()?.to_le_bytes());
        let mut records = self.records.chunks(self.archs.len().max(1));
        for name in &self.names {
            index.push(u8::try_from(name.len()).ok()?);
            index.extend(name.as_bytes());
            for Record { base, len, packed, checksum } in records.next()? {
                [base.unwrap_or(NO_BASE), *len, *packed, *checksum].iter().for_each(|n| index.extend(n.to_le_bytes()));
            }
        }
        let len = u32::try_from(index.len()).ok()?.to_le_bytes();
        Some([&MAGIC[..], &len, &checksum(&len, &index).to_le_bytes(), &index].concat())
    }

    /// Reads the header and the index. Returns the index and the bytes after it.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Damaged> {
        let mut header = Bytes(bytes);
        if header.take(MAGIC.len())? != MAGIC {
            return Err(Damaged { what: "it does not begin as an archive does" });
        }
        let len = header.number()?;
        let expected = header.number()?;
        let mut index = Bytes(header.take(len as usize)?);
        if checksum(&len.to_le_bytes(), index.0) != expected {
            return Err(Damaged { what: "the checksum of the index is wrong" });
        }
        let archs = (0..index.byte()?).map(|_| index.number()).collect::<Result<Vec<_>, _>>()?;
        let count = index.number()?;
        let (mut names, mut records) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let len = index.byte()?;
            let name = index.take(len.into())?;
            names.push(str::from_utf8(name).map_err(|_| Damaged { what: "a name is not UTF-8" })?);
            for _ in &archs {
                let [base, len, packed, checksum] =
                    [index.number()?, index.number()?, index.number()?, index.number()?];
                if len as usize > MAX_LEN {
                    return Err(Damaged { what: "a text is too long" });
                }
                records.push(Record { base: (base != NO_BASE).then_some(base), len, packed, checksum });
            }
        }
        if !index.0.is_empty() {
            return Err(Damaged { what: "the index has bytes at its end that are not part of it" });
        }
        Ok((Self { archs, names, records }, header.0))
    }
}

fn checksum(len: &[u8], index: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(len);
    hasher.update(index);
    hasher.finalize()
}

/// A reader of bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Damaged { what: "it ends too soon" })?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Damaged> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Result<u32, Damaged> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
