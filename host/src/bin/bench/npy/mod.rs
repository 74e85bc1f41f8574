//! NumPy's files: read with everything checked that a file can say wrong, written whole or not at all.

mod header;
#[cfg(test)]
#[path = "../../../../../fuzz/fuzz_targets/header_check.rs"]
mod header_check;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use npyz::WriterBuilder;
use warpfold::Gpu;

use crate::files::{self, Existing};
use crate::memory::{self, Need};
use crate::number::counted;

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

/// Reads a file of f32 or i32 in C order: a regular one, or what a pipe gives (`/dev/stdin`, a process substitution).
pub fn read(gpu: &Gpu, path: &Path) -> anyhow::Result<Contents> {
    let shown = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot open `{shown}`"))?;
    let data = file.metadata().with_context(|| format!("cannot read `{shown}`"))?;
    ensure!(!data.is_dir(), "`{shown}` is a folder, not an .npy file");
    // How much a pipe has to give is not known before its end.
    let size = data.is_file().then_some(data.len());
    read_from(gpu, BufReader::new(file), size, &shown)
}

/// Of `size` bytes, if that is known.
fn read_from(gpu: &Gpu, mut file: impl BufRead, size: Option<u64>, shown: &str) -> anyhow::Result<Contents> {
    let is_empty = file.fill_buf().with_context(|| format!("cannot read `{shown}`"))?.is_empty();
    ensure!(!is_empty, "`{shown}` is empty");
    let header = header::read(&mut file).with_context(|| format!("`{shown}` is not an .npy file"))?;
    ensure!(
        !header.is_fortran || header.shape.len() < 2,
        "`{shown}` is in Fortran order: save it with numpy.ascontiguousarray"
    );
    // Before anything is allocated for them.
    let elements = header.shape.iter().try_fold(1_usize, |all, &extent| all.checked_mul(extent.try_into().ok()?));
    let bytes = elements.and_then(|elements| elements.checked_mul(4));
    let (Some(elements), Some(bytes)) = (elements, bytes) else {
        bail!("the shape in `{shown}` is larger than any memory");
    };
    // The header takes less than what is left over at most.
    if let Some(size) = size.filter(|&size| (bytes as u64) > size) {
        bail!(
            "`{shown}` is truncated: its header says {}, and the whole file has {}",
            counted(elements, "element", "elements"),
            counted(size, "byte", "bytes")
        );
    }
    let shape = header.shape.iter().map(|&extent| extent as usize).collect();
    let is_big = header.descr.starts_with('>') || header.descr.starts_with('=') && cfg!(target_endian = "big");
    let need = Need { device: 0, host: bytes as u128 };
    let check = || need.check(gpu, &format!("the array in `{shown}`"), "choose a smaller one");
    let ordered = |bytes: [u8; 4]| if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
    let array = match header.descr.trim_start_matches(['<', '>', '=']) {
        "f4" => {
            check()?;
            Array::F32(elements_of(file, elements, shown, |bytes| f32::from_bits(ordered(bytes)))?)
        }
        "i4" => {
            check()?;
            Array::I32(elements_of(file, elements, shown, |bytes| ordered(bytes).cast_signed())?)
        }
        _ => bail!("`{shown}` holds {}, not f32 or i32: convert it with numpy.astype", header.descr),
    };
    Ok(Contents { array, shape })
}

fn elements_of<T>(
    mut file: impl Read,
    elements: usize,
    shown: &str,
    element: impl Fn([u8; 4]) -> T,
) -> anyhow::Result<Vec<T>> {
    const AT_ONCE: usize = 1 << 14;
    let mut all = memory::list(elements)?;
    let mut bytes = [[0; 4]; AT_ONCE];
    while all.len() < elements {
        let some = bytes[..AT_ONCE.min(elements - all.len())].as_flattened_mut();
        file.read_exact(some).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                anyhow::anyhow!("`{shown}` is truncated: its header says {}", counted(elements, "element", "elements"))
            }
            _ => anyhow::Error::new(error).context(format!("cannot read `{shown}`")),
        })?;
        let some = some.len() / 4;
        all.extend(bytes[..some].iter().map(|&bytes| element(bytes)));
    }
    Ok(all)
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
    use std::time::{Duration, Instant};

    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.npy");
        let elements: Vec<f32> = (0..6).map(|i| i as f32 / 3.0).collect();
        write(&file, &elements, 2, 3, false).unwrap();
        let read = read(&Gpu::simt(), &file).unwrap();
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
        assert!(matches!(read(&Gpu::simt(), &file).unwrap().array, Array::F32(found) if found == [2.0]));
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
        assert!(matches!(read(&Gpu::simt(), &file).unwrap().array, Array::F32(found) if found == [3.0]));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
    }

    /// A file of version 1.0 with that header.
    fn with_header(header: &[u8]) -> Vec<u8> {
        let len = u16::try_from(header.len()).unwrap_or(u16::MAX).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &len[..], header, &[0; 24]].concat()
    }

    /// Of some thousand headers that are wrong somewhere, each is read or refused, at once.
    #[test]
    fn no_header_takes_time_or_memory() {
        let (gpu, mut source, start) = (Gpu::simt(), SmallRng::seed_from_u64(12), Instant::now());
        let good: &[u8] = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
        let pieces: [&[u8]; 18] = [
            b"[", b"]", b"(", b")", b"{", b"}", b"'", b"\"", b",", b":", b"-", b"9", b"\\", b" ", b"L", b"\xff",
            b"[[[[", b"((((",
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
            match read_from(&gpu, &file[..], size, "a.npy") {
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
    fn what_the_fuzzer_has_kept_is_checked_again() {
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
        for (descr, bytes) in [("<i4", 258_i32.to_le_bytes()), (">i4", 258_i32.to_be_bytes())] {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ()}}");
            let file =
                [&b"\x93NUMPY\x02\x00"[..], &(header.len() as u32).to_le_bytes(), header.as_bytes(), &bytes].concat();
            let contents = read_from(&Gpu::simt(), &file[..], None, "a.npy").unwrap();
            assert!(matches!(contents.array, Array::I32(found) if found == [258]), "{descr}");
        }
    }
}
