//! Tests of reading and writing files.

use super::types::NAMES;
use super::*;
use std::fs;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use warpfold::Plain;

/// An array of one number.
fn one(number: f32) -> Array {
    Array::of_list(vec![number])
}

/// The numbers of a file of f32.
fn numbers(path: &Path) -> Vec<f32> {
    read(&Gpu::simt(), path, Wanted::Named).unwrap().elements().to_vec()
}

#[test]
fn what_is_written_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.npy");
    for (dtype, descr) in NAMES {
        for (shape, text) in [(&[2, 3][..], "(2, 3"), (&[6], "(6,"), (&[1, 0, 2], "(1, 0, 2"), (&[], "()")] {
            with_type!(dtype, T => {
                let bits = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let elements: Vec<T> = (0..shape.iter().product()).map(|i| T::from_word(bits(i))).collect();
                let pairs = |elements: &[T]| elements.iter().map(|x| x.to_pair()).collect::<Vec<_>>();
                write(&file, &Array::new(elements.clone(), Layout::contiguous(shape).unwrap()), true).unwrap();
                let read = read(&Gpu::simt(), &file, Wanted::Only(dtype)).unwrap();
                assert_eq!((read.dtype, read.layout.extents()), (dtype, shape));
                assert_eq!(pairs(read.elements::<T>()), pairs(&elements), "{dtype}");
            });
            let written = fs::read(&file).unwrap();
            let header = String::from_utf8_lossy(&written[10..written.len().min(128)]).into_owned();
            assert!(header.contains(descr) && header.contains(text), "{header}");
        }
    }
}

#[cfg(unix)]
#[test]
fn links_stay_and_permissions_are_those_of_any_new_file() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let (file, link, other) = (dir.path().join("a.npy"), dir.path().join("link.npy"), dir.path().join("other"));
    write(&file, &one(1.0), false).unwrap();
    symlink(&file, &link).unwrap();
    write(&link, &one(2.0), true).unwrap();
    assert!(link.is_symlink());
    assert_eq!(numbers(&file), [2.0]);
    fs::write(&other, "").unwrap();
    let mode = |file| fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode(&file), mode(&other));
}

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.npy");
    write(&file, &one(1.0), false).unwrap();
    assert!(check_writable(&file, false).unwrap_err().to_string().contains("--force"));
    assert!(write(&file, &one(2.0), false).is_err());
    write(&file, &one(3.0), true).unwrap();
    assert_eq!(numbers(&file), [3.0]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn what_is_wrong_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.npy");
    for are_right in [false, true] {
        let mut outcome = Outcome::default();
        write_if_right(&mut outcome, &file, &one(1.0), false, are_right);
        assert_eq!(file.exists(), are_right);
        assert_eq!(format!("{outcome:?}").contains("is not written"), !are_right);
    }
}

/// A file of version 1.0 with this header.
fn with_header(header: &[u8]) -> Vec<u8> {
    let len = u16::try_from(header.len()).unwrap_or(u16::MAX).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &len[..], header, &[0; 24]].concat()
}

/// Thousands of invalid headers, each of which is read or refused within a short time.
#[test]
fn no_header_takes_time_or_memory() {
    let (gpu, mut source, start) = (Gpu::simt(), SmallRng::seed_from_u64(12), Instant::now());
    let good: &[u8] = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    let pieces: [&[u8]; 18] = [
        b"[", b"]", b"(", b")", b"{", b"}", b"'", b"\"", b",", b":", b"-", b"9", b"\\", b" ", b"L", b"\xff", b"[[[[",
        b"((((",
    ];
    let (mut read, mut refused) = (0, 0);
    for round in 0..5000 {
        let mut header = good.to_vec();
        for _ in 0..source.random_range(1..=4) {
            let at = source.random_range(0..=header.len());
            let end = source.random_range(at..=header.len().min(at + 8));
            let times = *[0, 1, 1, 1, 2, 40, 2000].choose(&mut source).unwrap();
            let piece = pieces.choose(&mut source).unwrap().repeat(times);
            header.splice(at..end, piece);
        }
        let mut file = with_header(&header);
        if round % 4 == 0 {
            let at = source.random_range(0..file.len().min(16));
            file[at] = source.random();
        }
        file.truncate(if round % 5 == 0 { source.random_range(0..=file.len()) } else { file.len() });
        let size = (round % 2 == 0).then_some(file.len() as u64);
        match read_from(&gpu, &file[..], size, "a.npy", Wanted::Named) {
            Ok(_) => read += 1,
            Err(error) => {
                assert!(format!("{error:#}").len() < 400, "{error:#}");
                refused += 1;
            }
        }
    }
    assert!(read > 10 && refused > 1000, "{read} are read, {refused} refused");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn the_corpus_of_the_fuzzer_is_replayed() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/npy_header");
    let (mut files, mut headers) = (0, 0);
    for file in fs::read_dir(corpus).unwrap() {
        let file = fs::read(file.unwrap().path()).unwrap();
        header_check::check(&file);
        files += 1;
        headers += usize::from(header::read(&mut &file[..]).is_ok());
    }
    assert!(files > 20 && headers > 5, "{headers} of {files} are headers");
}

#[test]
fn bytes_in_either_order() {
    let (little, big) = (0x0102_0304_0506_0708_u64.to_le_bytes(), 0x0102_0304_0506_0708_u64.to_be_bytes());
    for (descr, bytes, number) in [
        ("<u8", &little[..], 0x0102_0304_0506_0708),
        (">u8", &big, 0x0102_0304_0506_0708),
        (">i4", &big[4..], 0x0506_0708),
        (">i2", &big[6..], 0x0708),
        (">i1", &big[7..], 8),
    ] {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
        let file = [&b"\x93NUMPY\x02\x00"[..], &(header.len() as u32).to_le_bytes(), header.as_bytes(), bytes].concat();
        let array = read_from(&Gpu::simt(), &file[..], None, "a.npy", Wanted::Named).unwrap();
        assert!(matches!(array.values()[..], [one] if one.whole() == Some(number)), "{descr}");
    }
}

/// An array of these bytes, by the text of its header.
fn array_of(descr: &str, is_fortran: bool, shape: &str, bytes: &[u8]) -> anyhow::Result<Array> {
    let order = if is_fortran { "True" } else { "False" };
    let mut file =
        with_header(format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}}}").as_bytes());
    file.truncate(file.len() - 24);
    file.extend(bytes);
    read_from(&Gpu::simt(), &file[..], Some(file.len() as u64), "a.npy", Wanted::Named)
}

#[test]
fn fortran_order_becomes_c_order() {
    // numpy.arange(6).reshape(2, 3), column by column.
    let bytes = [0_i16, 3, 1, 4, 2, 5].map(i16::to_be_bytes).concat();
    let array = array_of(">i2", true, "(2, 3)", &bytes).unwrap();
    assert_eq!((array.layout.extents(), array.layout.strides()), (&[2, 3][..], &[1, 2][..]));
    assert_eq!(array.elements::<i16>(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(array.in_c_order::<i16>().unwrap()[..], [0, 1, 2, 3, 4, 5]);
    // One axis has only one order.
    for shape in ["(1, 3)", "(3,)"] {
        let array = array_of("|u1", true, shape, &[7, 8, 9]).unwrap();
        assert!(array.layout.is_contiguous() && array.in_c_order::<u8>().unwrap()[..] == [7, 8, 9], "{shape}");
    }
    assert!(array_of("|u1", true, "(0, 3)", &[]).unwrap().elements::<u8>().is_empty());
}

#[test]
fn bool_has_two_values() {
    let array = array_of("|b1", false, "(4,)", &[0, 1, 1, 0]).unwrap();
    assert_eq!((array.dtype, array.elements::<u8>()), (ElementType::U8, &[0, 1, 1, 0][..]));
    for (is_fortran, shape, bytes, part) in [
        (false, "(4,)", [0, 1, 2, 3], "element at [2] is 2"),
        (false, "(2, 2)", [0, 1, 255, 1], "element at [1, 0] is 255"),
        (true, "(2, 2)", [0, 1, 3, 1], "element at [0, 1] is 3"),
    ] {
        let error = array_of("|b1", is_fortran, shape, &bytes).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("a.npy holds NumPy's bool"), "{error}");
    }
    // Elements that are only moved keep the type.
    let mut file = Vec::new();
    write_to::<u8>(&mut file, &array.reordered(vec![1_u8, 0, 0, 1], array.layout)).unwrap();
    assert!(file.windows(3).any(|part| part == b"|b1") && file.ends_with(&[1, 0, 0, 1]));
}
