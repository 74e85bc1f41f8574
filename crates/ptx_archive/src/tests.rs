//! Tests with archives of invented PTX.

use super::*;

/// Entries that are similar to each other, as those of one kernel are.
fn entries() -> Vec<(String, u32, String)> {
    let mut entries = Vec::new();
    for (operator, instruction) in [("Max", "max"), ("Min", "min"), ("Sum", "add")] {
        for ty in ["f32", "f64", "u32"] {
            for arch in [75, 80, 90] {
                let line = |i: usize| format!("\t{instruction}.{ty} \t%r{}, %r{i}, %r{};\n", i + 2, i + 1);
                let body: String = (arch as usize..arch as usize + 40).map(line).collect();
                let ptx =
                    format!(".version 7.8\n.target sm_{arch}\n.visible .entry rows_{operator}_{ty}()\n{{\n{body}}}\n");
                entries.push((format!("rows_{operator}_{ty}"), arch, ptx));
            }
        }
    }
    entries
}

fn texts(entries: &[(String, u32, String)]) -> Vec<Text<'_>> {
    entries.iter().map(|(name, arch, ptx)| Text { name, arch: *arch, contents: ptx.as_bytes() }).collect()
}

const EFFORTS: [Effort; 2] = [Effort::Fast, Effort::Small];

#[test]
fn texts_are_unpacked_unchanged() {
    let entries = entries();
    let raw: usize = entries.iter().map(|(_, _, ptx)| ptx.len()).sum();
    let sizes = EFFORTS.map(|effort| {
        let bytes = pack(&texts(&entries), effort).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        assert_eq!(archive.archs(), [90, 80, 75]);
        assert!(archive.names().is_sorted() && archive.names().len() == 9);
        for (name, arch, ptx) in &entries {
            assert_eq!(archive.unpack(name, *arch).unwrap().as_deref(), Some(ptx.as_bytes()));
        }
        bytes.len()
    });
    assert!(sizes[0] < raw / 3 && sizes[1] < sizes[0], "{sizes:?} of {raw} bytes");
}

#[test]
fn a_cubin_is_beside_the_ptx_of_its_entry() {
    let cubin: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let of_cubin = cubin_of("add");
    let texts = [
        Text { name: "add", arch: 80, contents: b"ptx" },
        Text { name: &of_cubin, arch: 80, contents: &cubin },
        Text { name: "add", arch: 90, contents: b"newer ptx" },
    ];
    for effort in EFFORTS {
        let bytes = pack(&texts, effort).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        assert_eq!(archive.names(), ["add", "cubin:add"]);
        assert_eq!(archive.unpack(&of_cubin, 80).unwrap(), Some(cubin.clone()));
        assert_eq!(archive.unpack(&of_cubin, 90).unwrap(), None);
        assert_eq!(archive.unpack("add", 80).unwrap().as_deref(), Some(&b"ptx"[..]));
    }
}

#[test]
fn a_missing_text_is_none() {
    let entries = entries();
    // One entry is for one architecture only.
    let some: Vec<_> =
        texts(&entries).into_iter().filter(|text| text.name != "rows_Min_f64" || text.arch == 80).collect();
    for effort in EFFORTS {
        let bytes = pack(&some, effort).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        assert_eq!(archive.unpack("rows_Min_f64", 90), Ok(None));
        assert!(archive.unpack("rows_Min_f64", 80).unwrap().is_some());
        assert_eq!(archive.unpack("rows_Min_f64", 86), Ok(None));
        assert_eq!(archive.unpack("rows", 90), Ok(None));
    }
    let empty = pack(&[], Effort::Small).unwrap();
    let empty = Archive::parse(&empty).unwrap();
    assert!(empty.archs().is_empty() && empty.names().is_empty());
    assert_eq!(empty.unpack("rows", 90), Ok(None));
}

#[test]
fn packed_bytes_do_not_depend_on_the_order_of_texts() {
    let entries = entries();
    let mut reversed = texts(&entries);
    reversed.reverse();
    for effort in EFFORTS {
        let bytes = pack(&texts(&entries), effort).unwrap();
        assert_eq!(bytes, pack(&reversed, effort).unwrap());
        assert_eq!(bytes, pack(&texts(&entries), effort).unwrap());
    }
}

#[test]
fn invalid_texts_are_refused() {
    let text = Text { name: "a", arch: 90, contents: b"x" };
    let long = "n".repeat(256);
    for texts in [&[text, text][..], &[Text { contents: b"", ..text }], &[Text { name: &long, ..text }]] {
        assert_eq!(pack(texts, Effort::Fast).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
}

/// All texts, or the first error.
fn unpack_all(bytes: &[u8]) -> Result<Vec<Option<Vec<u8>>>, Damaged> {
    let archive = Archive::parse(bytes)?;
    let mut all = Vec::new();
    for name in archive.names() {
        for &arch in archive.archs() {
            all.push(archive.unpack(name, arch)?);
        }
    }
    Ok(all)
}

#[test]
fn a_flipped_bit_anywhere_is_an_error() {
    let entries = entries();
    let mut bytes = pack(&texts(&entries)[..12], Effort::Small).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            assert!(unpack_all(&bytes).is_err(), "bit {bit} of byte {at} of {}", bytes.len());
            bytes[at] ^= 1 << bit;
        }
    }
    assert!(unpack_all(&bytes).is_ok());
}

#[test]
fn a_truncated_or_longer_archive_is_an_error() {
    let entries = entries();
    let bytes = pack(&texts(&entries)[..6], Effort::Small).unwrap();
    for len in 0..bytes.len() {
        assert!(Archive::parse(&bytes[..len]).is_err(), "the first {len} bytes");
    }
    assert!(Archive::parse(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn a_cycle_of_bases_is_an_error() {
    use crate::index::{Index, Record};
    let packed = b"\0";
    let record = |base| Record { base: Some(base), len: 1, packed: 1, checksum: crc32fast::hash(packed) };
    for bases in [[1, 0], [0, 1], [2, 2]] {
        let index = Index { archs: vec![90], names: vec!["a", "b"], records: bases.map(record).to_vec() };
        let bytes = [index.to_bytes().unwrap(), packed.repeat(2)].concat();
        assert!(Archive::parse(&bytes).unwrap().unpack("a", 90).is_err(), "{bases:?}");
    }
}
