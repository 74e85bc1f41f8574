//! The header of an `.npy` file: parsed in one pass, in little time and memory whatever it contains.
//!
//! The header is a Python dictionary (NEP 1): `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. A general
//! parser of Python literals may take time that is exponential in the depth of brackets. The headers of plain arrays
//! have no nested brackets, so this parser refuses them.

use std::io::{self, Read};

use anyhow::{Context, bail, ensure};

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the elements, such as `<f4`.
    pub descr: String,
    pub is_fortran: bool,
    pub shape: Vec<u64>,
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The maximum length of a header in bytes. It is also NumPy's maximum; for one or two axes NumPy writes 118 bytes.
pub const MAX_LEN: usize = 10_000;

/// Reads the header at the start of a file. The elements follow.
pub fn read(from: &mut impl Read) -> anyhow::Result<Header> {
    let start: [u8; 8] = bytes(from)?;
    let (magic, [major, minor]) = (&start[..6], [start[6], start[7]]);
    ensure!(magic == MAGIC, "it does not start with NumPy's magic bytes");
    let len = match major {
        1 => usize::from(u16::from_le_bytes(bytes(from)?)),
        2 | 3 => u32::from_le_bytes(bytes(from)?) as usize,
        _ => bail!("its version is {major}.{minor}, and only 1 to 3 are supported"),
    };
    ensure!(len <= MAX_LEN, "its header has {len} bytes, and at most {MAX_LEN} are allowed");
    let mut text = vec![0; len];
    from.read_exact(&mut text).map_err(ended)?;
    parse(&text)
}

fn bytes<const N: usize>(from: &mut impl Read) -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).map_err(ended)?;
    Ok(bytes)
}

fn ended(error: io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => anyhow::anyhow!("it ends within its header"),
        _ => error.into(),
    }
}

fn parse(text: &[u8]) -> anyhow::Result<Header> {
    let mut rest = Rest { text, at: 0 };
    let (mut descr, mut is_fortran, mut shape) = (None, None, None);
    rest.expect(b'{')?;
    while !rest.next_is(b'}') {
        let key = rest.string().context("a key must be a name in quotes")?;
        rest.expect(b':')?;
        let is_new = match key {
            "descr" => descr.replace(rest.descr()?).is_none(),
            "fortran_order" => is_fortran.replace(rest.bool()?).is_none(),
            "shape" => shape.replace(rest.tuple()?).is_none(),
            _ => bail!("its header has the key '{}', which is none of an array's", key.escape_debug()),
        };
        ensure!(is_new, "its header has the key '{key}' twice");
        if !rest.next_is(b',') {
            rest.expect(b'}')?;
            break;
        }
    }
    ensure!(rest.peek().is_none(), "its header continues after the dictionary");
    let missing = |key: &str| format!("its header has no key '{key}'");
    Ok(Header {
        descr: descr.with_context(|| missing("descr"))?.to_owned(),
        is_fortran: is_fortran.with_context(|| missing("fortran_order"))?,
        shape: shape.with_context(|| missing("shape"))?,
    })
}

/// The unread part of a header. Each byte is examined at most twice.
struct Rest<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Consumes a byte, if it is the next one.
    fn next_is(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> anyhow::Result<()> {
        if self.next_is(byte) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", char::from(byte)))) }
    }

    fn unexpected(&mut self, expected: &str) -> anyhow::Error {
        let found = self.peek().map_or("ends".to_owned(), |byte| format!("has `{}`", byte.escape_ascii()));
        anyhow::anyhow!("its header {found} at byte {}, where {expected} is expected", self.at)
    }

    /// Consumes bytes while `fits` returns true.
    fn while_is(&mut self, fits: impl Fn(&u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let len = rest.iter().position(|byte| !fits(byte)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// A string without escapes.
    fn string(&mut self) -> anyhow::Result<&'a str> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| self.unexpected("a string"))?;
        self.at += 1;
        let text = self.while_is(|&byte| byte != quote && byte.is_ascii_graphic() && byte != b'\\');
        if self.text.get(self.at) != Some(&quote) {
            return Err(self.unexpected("the end of a string"));
        }
        self.at += 1;
        // Names and plain types are short. This limits the length of messages with them.
        ensure!(text.len() <= 40, "its header has a string of {} bytes, and at most 40 are allowed", text.len());
        Ok(std::str::from_utf8(text)?)
    }

    /// A plain type.
    fn descr(&mut self) -> anyhow::Result<&'a str> {
        match self.peek() {
            Some(b'[' | b'(' | b'{') => bail!("it holds records, not numbers: save one field of them"),
            _ => self.string(),
        }
    }

    fn bool(&mut self) -> anyhow::Result<bool> {
        self.peek();
        match self.while_is(u8::is_ascii_alphabetic) {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(self.unexpected("`True` or `False`")),
        }
    }

    /// The extents: `()`, `(5,)`, `(2, 3)`.
    fn tuple(&mut self) -> anyhow::Result<Vec<u64>> {
        let mut extents = Vec::new();
        self.expect(b'(')?;
        while !self.next_is(b')') {
            self.peek();
            let digits = self.while_is(u8::is_ascii_digit);
            if digits.is_empty() {
                return Err(self.unexpected("an extent"));
            }
            let extent = std::str::from_utf8(digits)?.parse();
            extents.push(extent.context("its shape is larger than any memory")?);
            // Python 2 writes an `L` after a long integer.
            self.next_is(b'L');
            if !self.next_is(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_headers() {
        let header =
            |descr: &str, is_fortran, shape: &[u64]| Header { descr: descr.into(), is_fortran, shape: shape.into() };
        for (text, expected) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", header("<f4", false, &[2, 3])),
            ("{\"shape\":(7L,),\"descr\":\"|u1\",\"fortran_order\":True}", header("|u1", true, &[7])),
            ("{'descr': '>i4', 'fortran_order': False, 'shape': ()}", header(">i4", false, &[])),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn an_invalid_header_is_an_error_that_says_where() {
        let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}";
        for (text, part) in [
            ("", "ends at byte 0"),
            ("{'descr': '<f4', 'fortran_order': False}", "no key 'shape'"),
            ("{'descr': '<f4', 'descr': '<f4'}", "'descr' twice"),
            ("{'descr': '<f4\\'}", "the end of a string"),
            ("{'shape': ((1,),)}", "`(` at byte 11"),
            ("{'shape': (-1,)}", "`-` at byte 11"),
            ("{'shape': (99999999999999999999,)}", "larger than any memory"),
            ("{'colour': 1}", "'colour'"),
            ("{'fortran_order': Maybe}", "`True` or `False`"),
            ("{} {}", "continues"),
            (records, "records"),
        ] {
            let error = format!("{:#}", parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
