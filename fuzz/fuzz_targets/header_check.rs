//! Properties of reading any bytes as the header of an `.npy` file. The fuzzer searches for files that violate them,
//! and a test of `bench` replays `corpus/npy_header/`.

use std::io::Cursor;

use npyz::DType;

use super::header;

/// Reads a file's header, and if it is valid, writes and reads it again.
///
/// # Panics
/// - More of the file is read than a header may have.
/// - An error message has 400 or more characters.
/// - The product of the extents does not fit in 64 bits.
/// - The header that is read again differs.
pub fn check(file: &[u8]) {
    let mut rest = Cursor::new(file);
    let read = header::read(&mut rest);
    assert!(rest.position() <= 12 + header::MAX_LEN as u64, "{} bytes are read", rest.position());
    let header = match read {
        Ok(header) => header,
        Err(error) => return assert!(format!("{error:#}").len() < 400, "{error:#}"),
    };
    let product = header.shape.iter().try_fold(1_u64, |all, &extent| all.checked_mul(extent.max(1)));
    assert!(product.is_some(), "{:?}", header.shape);
    // The name of a field of a record may be one that needs an escape, which is refused.
    if matches!(header.dtype, DType::Plain(_)) {
        assert_eq!(header::read(&mut &*written(&header)).expect("it is a header"), header);
    }
}

/// The bytes of a header, as NumPy writes it.
fn written(header: &header::Header) -> Vec<u8> {
    let order = if header.is_fortran { "True" } else { "False" };
    let extents: String = header.shape.iter().map(|extent| format!("{extent},")).collect();
    let descr = header.dtype.descr();
    let text = format!("{{'descr':{descr},'fortran_order':{order},'shape':({extents})}}");
    [b"\x93NUMPY\x02\x00", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}
