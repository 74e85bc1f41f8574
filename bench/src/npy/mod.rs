//! NumPy's files. All fields are validated when a file is read, and a file is written completely or not at all.

mod header;
#[cfg(test)]
#[path = "../../../fuzz/fuzz_targets/header_check.rs"]
mod header_check;

use std::any::Any;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use npyz::{DType, TypeStr, WriterBuilder};
use warpfold::Gpu;

use crate::element::{ElementType, Number, with_type};
use crate::files::{self, Existing};
use crate::memory::{self, Need};
use crate::number::{Value, counted};
use crate::outcome::{Failure, Outcome};

/// An array in C order.
#[derive(Debug)]
pub struct Array {
    pub dtype: ElementType,
    pub shape: Vec<usize>,
    /// The elements, as a `Vec` of the element type.
    elements: Box<dyn Any>,
}

impl Array {
    pub fn new<T: Number>(elements: Vec<T>, shape: Vec<usize>) -> Self {
        Self { dtype: T::TYPE, shape, elements: Box::new(elements) }
    }

    /// An array with one axis.
    pub fn of_list<T: Number>(elements: Vec<T>) -> Self {
        let count = elements.len();
        Self::new(elements, vec![count])
    }

    /// The elements.
    ///
    /// # Panics
    /// If `T` is not the array's element type.
    pub fn elements<T: Number>(&self) -> &[T] {
        self.elements.downcast_ref::<Vec<T>>().expect("the array has that type")
    }

    /// [`Array::elements`], without a copy.
    pub fn into_elements<T: Number>(self) -> Vec<T> {
        *self.elements.downcast::<Vec<T>>().expect("the array has that type")
    }

    /// The elements, for printing.
    pub fn values(&self) -> Vec<Value> {
        with_type!(self.dtype, T => self.elements::<T>().iter().map(|x| x.value()).collect())
    }
}

/// The names of the types in a file. NumPy has no bf16: `ml_dtypes` writes bf16 as two bytes without a type.
const NAMES: [(ElementType, &str); 12] = [
    (ElementType::F16, "f2"),
    (ElementType::Bf16, "V2"),
    (ElementType::F32, "f4"),
    (ElementType::F64, "f8"),
    (ElementType::I8, "i1"),
    (ElementType::I16, "i2"),
    (ElementType::I32, "i4"),
    (ElementType::I64, "i8"),
    (ElementType::U8, "u1"),
    (ElementType::U16, "u2"),
    (ElementType::U32, "u4"),
    (ElementType::U64, "u8"),
];

/// Reads a file of numbers in C order: a regular file, or a pipe (`/dev/stdin`, a process substitution). If a type is
/// requested, elements of another type are an error.
pub fn read(gpu: &Gpu, path: &Path, asked: Option<ElementType>) -> anyhow::Result<Array> {
    let shown = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot open `{shown}`"))?;
    let data = file.metadata().with_context(|| format!("cannot read `{shown}`"))?;
    ensure!(!data.is_dir(), "`{shown}` is a folder, not an .npy file");
    // The length of a pipe's contents is not known in advance.
    let size = data.is_file().then_some(data.len());
    read_from(gpu, BufReader::new(file), size, &shown, asked)
}

/// [`read`] from an open file of `size` bytes, if the size is known.
fn read_from(
    gpu: &Gpu,
    mut file: impl BufRead,
    size: Option<u64>,
    shown: &str,
    asked: Option<ElementType>,
) -> anyhow::Result<Array> {
    let is_empty = file.fill_buf().with_context(|| format!("cannot read `{shown}`"))?.is_empty();
    ensure!(!is_empty, "`{shown}` is empty");
    let header = header::read(&mut file).with_context(|| format!("`{shown}` is not an .npy file"))?;
    ensure!(
        !header.is_fortran || header.shape.len() < 2,
        "`{shown}` is in Fortran order: save it with numpy.ascontiguousarray"
    );
    let dtype = type_of(&header.descr, asked, shown)?;
    let each = with_type!(dtype, T => size_of::<T>());
    // These products are checked before any allocation.
    let elements = header.shape.iter().try_fold(1_usize, |all, &extent| all.checked_mul(extent.try_into().ok()?));
    let bytes = elements.and_then(|elements| elements.checked_mul(each));
    let (Some(elements), Some(bytes)) = (elements, bytes) else {
        bail!("the shape in `{shown}` is larger than any memory");
    };
    // This check ignores the length of the header. A file that lacks fewer bytes than that is detected when the
    // elements are read.
    if let Some(size) = size.filter(|&size| (bytes as u64) > size) {
        bail!(
            "`{shown}` is truncated: according to its header it has {}, and the whole file has {}",
            counted(elements, "element", "elements"),
            counted(size, "byte", "bytes")
        );
    }
    let shape = header.shape.iter().map(|&extent| extent as usize).collect();
    let is_big = header.descr.starts_with('>') || header.descr.starts_with('=') && cfg!(target_endian = "big");
    let need = Need { device: 0, host: bytes as u128 };
    need.check(gpu, &format!("the array in `{shown}`"), "choose a smaller one")?;
    with_type!(dtype, T => Ok(Array::new(elements_of::<T>(file, elements, is_big, shown)?, shape)))
}

/// The type that a header names, if it is one of the twelve, and the requested one if one is requested.
fn type_of(descr: &str, asked: Option<ElementType>, shown: &str) -> anyhow::Result<ElementType> {
    let name = descr.trim_start_matches(['<', '>', '=', '|']);
    let is_unnamed = name == "V2" && asked.is_none();
    ensure!(
        !is_unnamed,
        "the elements of `{shown}` are V2, two bytes without a type. ml_dtypes writes bf16 like this: if it is bf16, \
         give --dtype bf16"
    );
    let name = if name == "bfloat16" { "V2" } else { name };
    let found = NAMES.iter().find(|(_, own)| *own == name).map(|&(dtype, _)| dtype);
    match (found, asked) {
        (Some(found), _) if asked.is_none_or(|asked| asked == found) => Ok(found),
        (_, Some(asked)) => bail!("`{shown}` holds {descr}, not {asked}: convert it with numpy.astype"),
        (_, None) => {
            bail!(
                "`{shown}` holds {descr}, and supported types are {}: convert it with numpy.astype",
                ElementType::all()
            )
        }
    }
}

fn elements_of<T: Number>(mut file: impl Read, elements: usize, is_big: bool, shown: &str) -> anyhow::Result<Vec<T>> {
    const BYTES_AT_ONCE: usize = 1 << 16;
    let each = size_of::<T>();
    let element = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..each].copy_from_slice(bytes);
        if is_big {
            word[..each].reverse();
        }
        T::from_word(u64::from_le_bytes(word))
    };
    let mut all = memory::list(elements)?;
    let mut bytes = [0; BYTES_AT_ONCE];
    while all.len() < elements {
        let some = &mut bytes[..BYTES_AT_ONCE.min((elements - all.len()) * each)];
        file.read_exact(some).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                anyhow!("`{shown}` is truncated: its header promises {}", counted(elements, "element", "elements"))
            }
            _ => anyhow::Error::new(error).context(format!("cannot read `{shown}`")),
        })?;
        all.extend(some.chunks_exact(each).map(element));
    }
    Ok(all)
}

/// Checks, before a long computation, whether `write` will be able to write the file.
pub fn check_writable(path: &Path, force: bool) -> anyhow::Result<()> {
    files::check_writable(path)?;
    ensure!(force || !path.exists(), "`{}` exists: give --force to replace it", path.display());
    Ok(())
}

/// Writes results to a file, unless they are wrong.
pub fn write_if_right(outcome: &mut Outcome, file: &Path, results: &Array, force: bool, are_right: bool) {
    if !are_right {
        outcome.fail(Failure::Wrong, &anyhow!("the result is wrong: `{}` is not written", file.display()));
    } else if let Err(error) = write(file, results, force) {
        outcome.fail(Failure::Output, &error);
    }
}

/// Writes an array. If writing is interrupted, there is no file of that name.
fn write(path: &Path, array: &Array, force: bool) -> anyhow::Result<()> {
    check_writable(path, force)?;
    let existing = if force { Existing::Replace } else { Existing::Keep };
    files::write(path, existing, |file| with_type!(array.dtype, T => write_to::<T>(BufWriter::new(file), array)))
}

fn write_to<T: Number>(mut out: impl Write, array: &Array) -> std::io::Result<()> {
    let name = NAMES.iter().find(|(dtype, _)| *dtype == T::TYPE).expect("each type has a name").1;
    let order = if size_of::<T>() == 1 { '|' } else { '<' };
    let descr: TypeStr = format!("{order}{name}").parse().map_err(std::io::Error::other)?;
    let shape: Vec<u64> = array.shape.iter().map(|&extent| extent as u64).collect();
    let header = npyz::WriteOptions::new_header_only().dtype(DType::Plain(descr)).shape(&shape);
    header.writer(&mut out).write_header_only()?;
    for element in array.elements::<T>() {
        let [word, _] = element.to_pair();
        out.write_all(&word.to_le_bytes()[..size_of::<T>()])?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};
    use warpfold::Plain;

    /// An array of one number.
    fn one(number: f32) -> Array {
        Array::new(vec![number], vec![1])
    }

    /// The numbers of a file of f32.
    fn numbers(path: &Path) -> Vec<f32> {
        read(&Gpu::simt(), path, None).unwrap().into_elements()
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
                    write(&file, &Array::new(elements.clone(), shape.to_vec()), true).unwrap();
                    let read = read(&Gpu::simt(), &file, Some(dtype)).unwrap();
                    assert_eq!((read.dtype, &read.shape[..]), (dtype, shape));
                    assert_eq!(pairs(read.elements::<T>()), pairs(&elements), "{dtype}");
                });
                let written = fs::read(&file).unwrap();
                let header = String::from_utf8_lossy(&written[10..written.len().min(128)]).into_owned();
                assert!(header.contains(descr) && header.contains(text), "{header}");
            }
        }
    }

    #[test]
    fn types_by_their_names_in_files() {
        let type_of = |descr, asked| type_of(descr, asked, "a.npy").map_err(|error| error.to_string());
        let (f32, bf16) = (Some(ElementType::F32), Some(ElementType::Bf16));
        assert_eq!(type_of("<f4", None), Ok(ElementType::F32));
        assert_eq!(type_of("|u1", None), Ok(ElementType::U8));
        assert_eq!(type_of("<V2", bf16), Ok(ElementType::Bf16));
        assert_eq!(type_of("bfloat16", None), Ok(ElementType::Bf16));
        for (descr, asked, part) in [
            ("<V2", None, "give --dtype bf16"),
            ("<V2", f32, "not f32"),
            ("<f2", bf16, "not bf16"),
            ("|b1", None, "supported types are f32, f64, f16, bf16, i8"),
            ("<c8", f32, "holds <c8, not f32"),
            ("<V4", bf16, "not bf16"),
        ] {
            let error = type_of(descr, asked).unwrap_err();
            assert!(error.contains(part) && error.contains("a.npy"), "{descr}: {error}");
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
            match read_from(&gpu, &file[..], size, "a.npy", None) {
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
            let file =
                [&b"\x93NUMPY\x02\x00"[..], &(header.len() as u32).to_le_bytes(), header.as_bytes(), bytes].concat();
            let array = read_from(&Gpu::simt(), &file[..], None, "a.npy", None).unwrap();
            assert!(matches!(array.values()[..], [one] if one.whole() == Some(number)), "{descr}");
        }
    }
}
