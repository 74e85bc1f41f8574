//! The header of an `.npy` file, parsed by `npyz` in little time and memory whatever the file contains.
//!
//! The header is a Python dictionary (NEP 1): `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`. `npyz`
//! takes any Python literal, in time that is exponential in the depth of the brackets, and multiplies the extents
//! without a check. So [`bounded`] first checks the length of the header, the depth, and the product.

use std::io::{self, Read};

use anyhow::{Context, bail, ensure};
use npyz::{DType, NpyHeader, Order};

/// The contents of a header.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the elements.
    pub dtype: DType,
    pub is_fortran: bool,
    /// The extents. Without the zeros, their product fits in a `u64`.
    pub shape: Vec<u64>,
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The maximum length of a header in bytes. It is also NumPy's maximum; for one or two axes NumPy writes 118 bytes.
pub const MAX_LEN: usize = 10_000;

/// The maximum depth of brackets. An array of numbers has 2, and one of records 4: a dictionary, a list of fields, a
/// field, and its extents.
const MAX_DEPTH: usize = 4;

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
    let text = bounded(text)?;
    // Version 3 is the one whose text is UTF-8, as all text is here.
    let file = [&MAGIC[..], &[3, 0], &(text.len() as u32).to_le_bytes(), &text].concat();
    let header = NpyHeader::from_reader(&file[..]).map_err(|error| {
        // The parser of literals shows the line with an arrow below. The line may be as long as the header.
        let reason: String = error.to_string().lines().next().unwrap_or_default().chars().take(200).collect();
        anyhow::anyhow!("its header is invalid: {reason}")
    })?;
    Ok(Header { dtype: header.dtype(), is_fortran: header.order() == Order::Fortran, shape: header.shape().to_vec() })
}

/// The text of a header that `npyz` can parse in little time, and without an overflow.
///
/// Outside of strings there is only what a header needs, with one dictionary, because `npyz` tries braces twice. White
/// space becomes spaces, as does the `L` that Python 2 writes after a long integer.
fn bounded(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut plain = Vec::with_capacity(text.len());
    let (mut depth, mut elements, mut at) = (0_usize, 1_u64, 0);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let count = |fits: fn(&u8) -> bool| rest.iter().position(|byte| !fits(byte)).unwrap_or(rest.len());
        let token = match byte {
            b'\'' | b'"' => string(rest).with_context(|| format!("its header has an invalid string at byte {at}"))?,
            b'0'..=b'9' => {
                let digits = &rest[..count(u8::is_ascii_digit)];
                // These are the extents: inside the dictionary and a tuple. A zero would hide an overflow of others.
                if depth == 2 {
                    let extent: Option<u64> = std::str::from_utf8(digits)?.parse().ok();
                    let product = extent.and_then(|extent| elements.checked_mul(extent.max(1)));
                    elements = product.context("its shape is larger than any memory")?;
                }
                digits
            }
            b'A'..=b'Z' | b'a'..=b'z' => &rest[..count(u8::is_ascii_alphabetic)],
            _ => &rest[..1],
        };
        match token {
            [b'{'] if plain.contains(&b'{') => bail!("its header has a second `{{` at byte {at}"),
            [b'{' | b'[' | b'('] => depth += 1,
            [b'}' | b']' | b')'] => depth = depth.saturating_sub(1),
            _ => {}
        }
        ensure!(
            depth <= MAX_DEPTH,
            "its header nests brackets more than {MAX_DEPTH} deep, as only records of records do"
        );
        match token {
            b"L" if plain.last().is_some_and(u8::is_ascii_digit) => plain.push(b' '),
            b"True" | b"False" => plain.extend(token),
            [b'{' | b'}' | b'[' | b']' | b'(' | b')' | b',' | b':' | b'0'..=b'9' | b'\'' | b'"', ..] => {
                plain.extend(token);
            }
            [space] if space.is_ascii_whitespace() => plain.push(b' '),
            other => bail!("its header has `{}` at byte {at}, outside of a string", other[0].escape_ascii()),
        }
        at += token.len();
    }
    Ok(plain)
}

/// The string at the start of `text`, with its quotes. It has no escapes and no line breaks, so that it ends here where
/// it ends for `npyz`.
fn string(text: &[u8]) -> anyhow::Result<&[u8]> {
    let end = text[1..].iter().position(|byte| *byte == text[0]).context("it has no end")?;
    let string = &text[..end + 2];
    ensure!(!string.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r')), "it has a backslash or a line break");
    Ok(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(descr: &str) -> DType {
        DType::Plain(descr.parse().unwrap())
    }

    #[test]
    fn valid_headers() {
        let header =
            |descr: &str, is_fortran, shape: &[u64]| Header { dtype: plain(descr), is_fortran, shape: shape.into() };
        for (text, expected) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", header("<f4", false, &[2, 3])),
            ("{\"shape\":(7L,),\"descr\":\"|u1\",\"fortran_order\":True}", header("|u1", true, &[7])),
            ("{'descr': '>i4', 'fortran_order': False, 'shape': ()}", header(">i4", false, &[])),
            ("\n{'descr':\t'<f8',\r\n'fortran_order': False, 'shape': (0, 3)}\n\n", header("<f8", false, &[0, 3])),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), expected);
        }
        let records = "{'descr': [('a', '<f4', (2,)), ('b', '<i4')], 'fortran_order': False, 'shape': (2,)}";
        assert!(matches!(parse(records.as_bytes()).unwrap().dtype, DType::Record(fields) if fields.len() == 2));
    }

    #[test]
    fn an_invalid_header_is_an_error_that_says_where() {
        for (text, part) in [
            ("", "invalid: could not parse"),
            ("{'descr': '<f4', 'fortran_order': False}", "'shape'"),
            ("{'descr': '<f4', 'shape': (1,)}", "'fortran_order'"),
            ("{'fortran_order': False, 'shape': (1,)}", "'descr'"),
            ("{'descr': '<f4\\'}", "string at byte 10"),
            ("{'descr': '<f4\n'}", "string at byte 10"),
            ("{'descr': '<f4}", "string at byte 10: it has no end"),
            ("{'descr': 'f4', 'fortran_order': False, 'shape': ()}", "type string"),
            ("{'shape': ((1,),), 'descr': '<f4', 'fortran_order': False}", "must be an integer"),
            ("{'shape': (-1,)}", "`-` at byte 11"),
            ("{'shape': (0xffff,)}", "`x` at byte 12"),
            ("{'shape': (1_000,)}", "`_` at byte 12"),
            ("{'shape': (1L0,)}", "could not parse"),
            ("{'shape': (99999999999999999999,)}", "larger than any memory"),
            ("{'shape': (4294967296, 4294967296,)}", "larger than any memory"),
            ("{'shape': (0, 4294967296, 4294967296,)}", "larger than any memory"),
            ("{'shape': [4294967296, 4294967296]}", "larger than any memory"),
            ("{'colour': 1}", "missing"),
            ("{'fortran_order': Maybe}", "`M` at byte 18"),
            ("{'fortran_order': 1, 'shape': (), 'descr': '<f4'}", "bool"),
            ("{'shape': ((((1,),),),)}", "more than 4 deep"),
            ("{'descr': [('a', [('b', '<f4')])]}", "records of records"),
            ("{} {}", "second `{` at byte 3"),
            ("{'shape': {1: 2}}", "second `{` at byte 10"),
            ("() {}", "could not parse"),
        ] {
            let error = format!("{:#}", parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
