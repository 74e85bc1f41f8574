//! NumPy's files: read with everything checked that a file can say wrong, written whole or not at all.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use npyz::{DType, NpyFile, Order, WriterBuilder};

use crate::files::{self, Existing};

/// What a file holds.
#[derive(Debug)]
pub struct Contents {
    pub array: Array,
    pub shape: Vec<usize>,
}

/// Its elements, in C order.
#[derive(Debug)]
pub enum Array {
    F32(Vec<f32>),
    I32(Vec<i32>),
}

/// Reads a file of f32 or i32 in C order.
pub fn read(path: &Path) -> anyhow::Result<Contents> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot open `{shown}`"))?;
    let size = file.metadata().with_context(|| format!("cannot read `{shown}`"))?;
    ensure!(!size.is_dir(), "`{shown}` is a folder, not an .npy file");
    ensure!(size.len() > 0, "`{shown}` is empty");
    let npy = NpyFile::new(BufReader::new(file)).with_context(|| format!("`{shown}` is not an .npy file"))?;
    ensure!(
        npy.order() == Order::C || npy.shape().len() < 2,
        "`{shown}` is in Fortran order: save it with numpy.ascontiguousarray"
    );
    let mut elements = 1_u64;
    for &side in npy.shape() {
        elements =
            elements.checked_mul(side).with_context(|| format!("the shape in `{shown}` is larger than any memory"))?;
    }
    // Before anything is allocated for them. The header takes less than what is left over at most.
    let needed = elements.checked_mul(4);
    ensure!(
        needed.is_some_and(|needed| needed <= size.len()),
        "`{shown}` is truncated: its header says {elements} elements, and the whole file has {} bytes",
        size.len()
    );
    let shape: Vec<usize> = npy.shape().iter().map(|&side| side as usize).collect();
    let dtype = npy.dtype();
    let DType::Plain(kind) = &dtype else { bail!("`{shown}` holds records, not f32 or i32") };
    let truncated = || format!("`{shown}` is truncated: its header says {elements} elements");
    let array = match kind.to_string().trim_start_matches(['<', '>', '=', '|']) {
        "f4" => Array::F32(npy.into_vec().with_context(truncated)?),
        "i4" => Array::I32(npy.into_vec().with_context(truncated)?),
        _ => bail!("`{shown}` holds {}, not f32 or i32: convert it with numpy.astype", kind),
    };
    Ok(Contents { array, shape })
}

/// Whether `write` could do its work: told before a long computation, not after it.
pub fn check_writable(path: &Path, force: bool) -> anyhow::Result<()> {
    files::check_writable(path)?;
    ensure!(force || !path.exists(), "`{}` exists: give --force to replace it", path.display());
    Ok(())
}

/// Writes a matrix. An interrupted write leaves no file of that name.
pub fn write(path: &Path, elements: &[f32], rows: usize, columns: usize, force: bool) -> anyhow::Result<()> {
    check_writable(path, force)?;
    let existing = if force { Existing::Replace } else { Existing::Keep };
    files::write(path, existing, |file| {
        let mut out = BufWriter::new(file);
        let mut npy = npyz::WriteOptions::new()
            .default_dtype()
            .shape(&[rows as u64, columns as u64])
            .writer(&mut out)
            .begin_nd()?;
        npy.extend(elements)?;
        npy.finish()?;
        out.flush()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.npy");
        let elements: Vec<f32> = (0..6).map(|i| i as f32 / 3.0).collect();
        write(&file, &elements, 2, 3, false).unwrap();
        let read = read(&file).unwrap();
        assert_eq!(read.shape, [2, 3]);
        assert!(matches!(read.array, Array::F32(found) if found == elements));
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_permissions_are_those_of_any_new_file() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (file, link, other) = (dir.path().join("a.npy"), dir.path().join("link.npy"), dir.path().join("other"));
        write(&file, &[1.0], 1, 1, false).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, &[2.0], 1, 1, true).unwrap();
        assert!(link.is_symlink());
        assert!(matches!(read(&file).unwrap().array, Array::F32(found) if found == [2.0]));
        fs::write(&other, "").unwrap();
        let mode = |file| fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode(&file), mode(&other));
    }

    #[test]
    fn a_file_that_exists_is_replaced_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.npy");
        write(&file, &[1.0], 1, 1, false).unwrap();
        assert!(check_writable(&file, false).unwrap_err().to_string().contains("--force"));
        assert!(write(&file, &[2.0], 1, 1, false).is_err());
        write(&file, &[3.0], 1, 1, true).unwrap();
        assert!(matches!(read(&file).unwrap().array, Array::F32(found) if found == [3.0]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
    }
}
