//! What is true of the header of an `.npy` file, whatever its bytes are. The fuzzer looks for a file of which it is
//! not, and a test of
//! `bench` replays `corpus/npy_header/`.

use std::io::Cursor;

use super::header;

/// Reads a file's header.
///
/// # Panics
/// If too much of the file is read, an error is too long for a terminal, or a header does not mean the same when it is
/// written again.
pub fn check(file: &[u8]) {
    let mut rest = Cursor::new(file);
    let read = header::read(&mut rest);
    assert!(rest.position() <= 12 + header::MAX_LEN as u64, "{} bytes are read", rest.position());
    match read {
        Ok(header) => assert_eq!(header::read(&mut &*written(&header)).expect("it is a header"), header),
        Err(error) => assert!(format!("{error:#}").len() < 400, "{error:#}"),
    }
}

/// A file with that header, as Python writes it.
fn written(header: &header::Header) -> Vec<u8> {
    let order = if header.is_fortran { "True" } else { "False" };
    let extents: String = header.shape.iter().map(|extent| format!("{extent},")).collect();
    // In quotes of one kind, the other kind is a character like any.
    let quote = if header.descr.contains('"') { '\'' } else { '"' };
    let descr = format!("{quote}{}{quote}", header.descr);
    let text = format!("{{'descr':{descr},'fortran_order':{order},'shape':({extents})}}");
    [b"\x93NUMPY\x02\x00", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}
