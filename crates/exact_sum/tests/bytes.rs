//! Sums as bytes: every defect is reported by an error that names it.

use exact_sum::bytes::FromBytesError;
use exact_sum::{ExactDot, ExactSum, MAX_ELEMENTS, Summand};
use half::{bf16, f16};

/// A type of sums: its name in messages, its code, and the bytes of three sums.
struct Type {
    name: &'static str,
    code: u8,
    sums: [Vec<u8>; 3],
    read: fn(&[u8]) -> Result<Vec<u8>, FromBytesError>,
}

fn of_elements<T: Summand>(name: &'static str, code: u8, elements: [T; 4]) -> [Type; 2] {
    let [one, most, less, infinity] = elements;
    let sums = [vec![one, most], vec![less, less, most], vec![one, infinity]];
    let sum = |elements: &Vec<T>| elements.iter().copied().collect::<ExactSum<T>>().to_bytes();
    let dot = |elements: &Vec<T>| elements.iter().map(|&x| (x, one)).collect::<ExactDot<T>>().to_bytes();
    let products: &str = format!("products of {name}").leak();
    [
        Type {
            name,
            code,
            sums: sums.each_ref().map(sum),
            read: |bytes| ExactSum::<T>::from_bytes(bytes).map(|sum| sum.to_bytes()),
        },
        Type {
            name: products,
            code: code + 16,
            sums: sums.each_ref().map(dot),
            read: |bytes| ExactDot::<T>::from_bytes(bytes).map(|sum| sum.to_bytes()),
        },
    ]
}

fn types() -> Vec<Type> {
    [
        of_elements("f16", 1, [f16::ONE, f16::MAX, f16::MIN, f16::INFINITY]),
        of_elements("bf16", 2, [bf16::ONE, bf16::MAX, bf16::MIN, bf16::NEG_INFINITY]),
        of_elements("f32", 3, [1.0, f32::MAX, f32::MIN, f32::NAN]),
        of_elements("f64", 4, [1.0, f64::MAX, f64::MIN, f64::INFINITY]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn bytes_are_read_as_they_were_written() {
    for Type { name, sums, read, .. } in types() {
        for bytes in sums {
            assert_eq!(read(&bytes).as_ref(), Ok(&bytes), "{name}");
        }
    }
}

#[test]
fn every_truncation_is_reported() {
    for Type { name, sums, read, .. } in types() {
        for bytes in sums {
            let expected = bytes.len();
            for found in 0..expected {
                assert_eq!(read(&bytes[..found]), Err(FromBytesError::Length { found, expected }), "{name}");
            }
            let longer = [&bytes[..], &bytes].concat();
            assert_eq!(read(&longer), Err(FromBytesError::Length { found: 2 * expected, expected }), "{name}");
        }
    }
}

#[test]
fn every_flipped_bit_is_reported() {
    for Type { name, code, sums, read } in types() {
        for bytes in sums {
            for bit in 0..8 * bytes.len() {
                let mut altered = bytes.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                let expected = match bit / 8 {
                    0..4 => FromBytesError::NotASum,
                    4 => FromBytesError::Version { found: altered[4] },
                    5 => FromBytesError::Type { found: altered[5], expected: code },
                    _ => FromBytesError::Corrupt,
                };
                assert_eq!(read(&altered), Err(expected), "bit {bit} of a sum of {name}");
            }
        }
    }
}

#[test]
fn sums_of_another_type_are_named() {
    for Type { name: found_name, code: found, sums, .. } in types() {
        for Type { name, code: expected, read, .. } in types().into_iter().filter(|other| other.code != found) {
            let error = read(&sums[0]).unwrap_err();
            assert_eq!(error, FromBytesError::Type { found, expected });
            assert_eq!(error.to_string(), format!("an exact sum of {found_name}, expected one of {name}"));
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    for (error, text) in [
        (FromBytesError::NotASum, "do not begin with `xsum`"),
        (FromBytesError::Version { found: 9 }, "of version 9: this program reads version 1; update it"),
        (FromBytesError::Type { found: 9, expected: 4 }, "of an unknown type (code 9), expected one of f64"),
        (FromBytesError::Length { found: 7, expected: 64 }, "of 7 bytes, expected 64"),
        (FromBytesError::Corrupt, "altered after it was written"),
    ] {
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// `bytes` with a change, and the checksum that matches it.
fn changed(bytes: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut content = bytes[..bytes.len() - 4].to_vec();
    change(&mut content);
    let checksum = crc32fast::hash(&content).to_le_bytes();
    [content, checksum.to_vec()].concat()
}

/// Bytes with a valid checksum that no sum has.
#[test]
fn contents_that_no_sum_has_are_refused() {
    let sum = |elements: &[f32]| elements.iter().copied().collect::<ExactSum<f32>>().to_bytes();
    let (finite, infinite, nothing) = (sum(&[1.0, 2.0]), sum(&[1.0, f32::INFINITY]), sum(&[]));
    let read = |bytes: &[u8]| ExactSum::<f32>::from_bytes(bytes).map(|sum| sum.to_bytes());
    assert_eq!(read(&changed(&finite, |_| {})).as_ref(), Ok(&finite));
    let with_count =
        |bytes: &[u8], count: u64| changed(bytes, |content| content[8..16].copy_from_slice(&count.to_le_bytes()));
    for (what, bytes) in [
        ("a byte that is 0 otherwise", changed(&finite, |content| content[7] = 1)),
        ("an unknown special", changed(&infinite, |content| content[6] = 8)),
        ("NaN and an infinity", changed(&infinite, |content| content[6] = 3)),
        ("infinities of both signs", changed(&infinite, |content| content[6] = 6)),
        ("an infinity beside a number", changed(&infinite, |content| content[20] = 1)),
        ("too many elements", with_count(&finite, MAX_ELEMENTS + 1)),
        ("a sum of nothing that is not 0", with_count(&finite, 0)),
        ("more than one element can be", changed(&sum(&[1.0]), |content| content[16 + 34] = 0x20)),
        ("more than two elements can be", changed(&finite, |content| content[16 + 34] = 0x40)),
        (
            "more than that number of elements can have",
            with_count(&changed(&finite, |content| content[16 + 43] = 0x7F), 1 << 20),
        ),
        (
            "less than that number of elements can have",
            with_count(&changed(&finite, |content| content[16 + 43] = 0x80), 1 << 20),
        ),
    ] {
        assert_eq!(read(&bytes), Err(FromBytesError::Corrupt), "{what}");
    }
    // The largest numbers are below 2^277, in units of the smallest.
    assert!(read(&changed(&sum(&[1.0]), |content| content[16 + 34] = 0x10)).is_ok());
    assert!(read(&changed(&finite, |content| content[16 + 34] = 0x20)).is_ok());
    assert!(read(&changed(&sum(&[1.0; 3]), |content| content[16 + 34] = 0x40)).is_ok());
    // Valid contents: another number, and more elements with the same sum.
    assert!(read(&changed(&finite, |content| content[20] = 1)).is_ok());
    assert!(read(&with_count(&finite, MAX_ELEMENTS)).is_ok() && read(&with_count(&nothing, 7)).is_ok());
}

#[test]
fn the_bytes_of_version_1_do_not_change() {
    let sum: ExactSum<f32> = [1.0, -2.5, 1e-40].into_iter().collect();
    let hex: String = sum.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let (header, limbs) = (
        "7873756d010300000300000000000000",
        "c21601000000000000000000000000000000d0ffffffffffffffffffffffffffffffffffffffffffffffffff",
    );
    assert_eq!(hex, format!("{header}{limbs}dfdad398"));
}
