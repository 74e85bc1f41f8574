//! An `.npy` file whose elements are read a chunk at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Seek};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, anyhow, bail, ensure};

use crate::element::Number;
use crate::npy::{self, Described, Wanted};
use crate::number::counted;
use crate::strided;

/// An open file.
pub struct Source {
    reader: Reader,
    /// The name, for messages.
    pub shown: String,
    pub described: Described,
}

enum Reader {
    /// A regular file, whose elements are read in any order, also by several threads at once.
    File {
        file: File,
        /// The byte of the first element.
        first: u64,
        /// What the file was when it was opened.
        size: u64,
        modified: Option<SystemTime>,
    },
    /// A pipe, or standard input.
    Pipe(Mutex<Box<dyn Read + Send>>),
}

impl Source {
    /// Opens a file and reads its header. `-` is standard input.
    pub fn open(path: &Path, wanted: Wanted) -> anyhow::Result<Self> {
        let shown = npy::name(path);
        if npy::is_standard_input(path) {
            ensure!(!io::stdin().is_terminal(), "--input -: standard input is a terminal; redirect an .npy file to it");
            return Self::of_pipe(BufReader::new(io::stdin()), shown, wanted);
        }
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        let data = file.metadata().with_context(|| format!("cannot read {shown}"))?;
        ensure!(!data.is_dir(), "{shown} is a folder, not an .npy file");
        if !data.is_file() {
            return Self::of_pipe(BufReader::new(file), shown, wanted);
        }
        let mut file = BufReader::new(file);
        let described = npy::describe(&mut file, Some(data.len()), &shown, wanted)?;
        let first = file.stream_position().with_context(|| format!("cannot read {shown}"))?;
        let Described { elements, bytes, .. } = described;
        if data.len() < first + bytes as u64 {
            return Err(npy::truncated(&shown, elements, data.len()));
        }
        let (size, modified) = (data.len(), data.modified().ok());
        Ok(Self { reader: Reader::File { file: file.into_inner(), first, size, modified }, shown, described })
    }

    fn of_pipe(mut reader: impl BufRead + Send + 'static, shown: String, wanted: Wanted) -> anyhow::Result<Self> {
        let described = npy::describe(&mut reader, None, &shown, wanted)?;
        Ok(Self { reader: Reader::Pipe(Mutex::new(Box::new(reader))), shown, described })
    }

    /// Whether elements can be read in any order.
    pub fn can_seek(&self) -> bool {
        matches!(self.reader, Reader::File { .. })
    }

    /// Reads elements from number `first` on; of a pipe, those after the last read.
    pub fn read<T: Number>(&self, first: usize, to: &mut [T]) -> anyhow::Result<()> {
        let each = size_of::<T>();
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(to);
        let read = match &self.reader {
            Reader::File { file, first: start, .. } => read_at(file, bytes, start + (first * each) as u64),
            Reader::Pipe(reader) => reader.lock().unwrap_or_else(PoisonError::into_inner).read_exact(bytes),
        };
        read.map_err(|error| self.not_read(error))?;
        if self.described.stored.is_big != cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(each).for_each(<[u8]>::reverse);
        }
        let other = self.described.stored.is_bool.then(|| bytes.iter().position(|byte| *byte > 1)).flatten();
        match other {
            Some(at) => {
                let index = strided::index_at(&self.described.layout()?, first + at);
                Err(npy::not_bool(&self.shown, &index, bytes[at]))
            }
            None => Ok(()),
        }
    }

    /// The error for elements that cannot be read.
    fn not_read(&self, error: io::Error) -> anyhow::Error {
        match (error.kind(), self.changed()) {
            (io::ErrorKind::UnexpectedEof, Err(changed)) => changed,
            (io::ErrorKind::UnexpectedEof, Ok(())) => {
                let elements = counted(self.described.elements, "element", "elements");
                anyhow!("{} is truncated: its header promises {elements}", self.shown)
            }
            _ => anyhow::Error::new(error).context(format!("cannot read {}", self.shown)),
        }
    }

    /// Refuses a file that is no longer what it was when it was opened.
    pub fn changed(&self) -> anyhow::Result<()> {
        let Reader::File { file, size, modified, .. } = &self.reader else { return Ok(()) };
        let shown = &self.shown;
        let data = file.metadata().with_context(|| format!("cannot read {shown}"))?;
        let now = data.len();
        if now != *size {
            let how = if now < *size { "shorter" } else { "longer" };
            bail!("{shown} became {how} while it was read: it had {size} bytes, and has {now} now; read it again");
        }
        ensure!(
            data.modified().ok() == *modified,
            "{shown} was written while it was read, at the same length of {size} bytes: read it again"
        );
        Ok(())
    }
}

#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, to, offset)
}

#[cfg(windows)]
fn read_at(file: &File, mut to: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !to.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, to, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (to, offset) = (&mut to[read..], offset + read as u64),
        }
    }
    Ok(())
}
