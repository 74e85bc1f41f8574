//! Exact sums of more elements than fit in memory.

use std::io;

use cuda_std::element::Plain;
use exact_sum::{ExactDot, ExactSum};

use super::ExactElement;
use super::axes::Axes;
use crate::{Error, Gpu, View};

/// The size of each of the two buffers, in bytes: its copy takes a hundred times as long as to start it.
const BUFFER_BYTES: usize = 16 << 20;

impl Gpu {
    /// The exact sum of elements that come a chunk at a time, such as those of a file that is larger than the memory of
    /// the GPU, or of the host.
    ///
    /// Chunks have any lengths, 0 included, and do not change the sum: it is that of [`Gpu::exact_sum`] of all elements
    /// in one array. The chunks are copied to page-locked memory, from there to the device, and summed there, all at
    /// the same time; the memory that this takes does not depend on their number. [`StagingBuffers`] does without the
    /// first copy. Without a GPU, [`ExactSum::add_slice`] is faster than the executor.
    ///
    /// ```
    /// use std::io::{self, Read};
    /// use warpfold::Gpu;
    ///
    /// /// Reads some numbers of a file.
    /// fn chunk(file: &mut impl Read) -> io::Result<Vec<f32>> {
    ///     let mut bytes = Vec::new();
    ///     file.take(4 * 1000).read_to_end(&mut bytes)?;
    ///     Ok(bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect())
    /// }
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// # let bytes: Vec<u8> = [1e20_f32, 1.5, -1e20].repeat(1000).into_iter().flat_map(f32::to_le_bytes).collect();
    /// let mut file = io::Cursor::new(bytes); // or `File::open("samples.f32")?`
    /// let is_end = |chunk: &io::Result<Vec<f32>>| chunk.as_ref().is_ok_and(Vec::is_empty);
    /// let sum = gpu.sum_chunks(std::iter::from_fn(|| Some(chunk(&mut file)).filter(|chunk| !is_end(chunk))))?;
    /// assert_eq!((sum.value(), sum.mean::<f32>(), sum.count()), (1500.0, 0.5, 3000));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Chunk`] with the first error of the chunks, after which no more chunks are taken; there are more than
    /// 2^50 elements, memory runs out, or earlier work has failed.
    ///
    /// [`StagingBuffers`]: crate::StagingBuffers
    pub fn sum_chunks<T: ExactElement, C: AsRef<[T]>>(
        &self,
        chunks: impl IntoIterator<Item = io::Result<C>>,
    ) -> Result<ExactSum<T>, Error> {
        self.refuse_to_record("return a sum to the host")?;
        let mut sums = self.exact_sums(1)?;
        self.for_each_chunk(chunks, |chunk| sums.add(chunk, Axes::ALL))?;
        Ok(sums.download()?[0])
    }

    /// The exact sum of the squares of elements that come a chunk at a time, whose root is the norm: see
    /// [`Gpu::sum_chunks`].
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let squares = Gpu::first_or_simt()?.sum_squares_of_chunks([Ok(vec![3.0_f32]), Ok(vec![]), Ok(vec![4.0])])?;
    /// assert_eq!((squares.value(), squares.sqrt::<f32>()), (25.0, 5.0));
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Gpu::sum_chunks`].
    pub fn sum_squares_of_chunks<T: ExactElement, C: AsRef<[T]>>(
        &self,
        chunks: impl IntoIterator<Item = io::Result<C>>,
    ) -> Result<ExactDot<T>, Error> {
        self.refuse_to_record("return a sum to the host")?;
        let mut sums = self.exact_dots(1)?;
        self.for_each_chunk(chunks, |chunk| sums.add_squares(chunk, Axes::ALL))?;
        Ok(sums.download()?[0])
    }

    /// Calls `add` with the elements of chunks on the device, as many at a time as fit in a buffer.
    fn for_each_chunk<T: Plain, C: AsRef<[T]>>(
        &self,
        chunks: impl IntoIterator<Item = io::Result<C>>,
        mut add: impl FnMut(View<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut chunks = (0..).zip(chunks);
        let mut buffers = self.staging_buffers(BUFFER_BYTES / size_of::<T>())?;
        // A chunk of which some elements, the number, are in earlier buffers.
        let mut begun: Option<(C, usize)> = None;
        loop {
            let mut buffer = buffers.next_buffer()?;
            let mut len = 0;
            while len < buffer.len() {
                let (chunk, first) = match begun.take() {
                    Some(begun) => begun,
                    None => match chunks.next() {
                        Some((index, chunk)) => (chunk.map_err(|source| Error::Chunk { index, source })?, 0),
                        None => break,
                    },
                };
                let elements = chunk.as_ref().get(first..).unwrap_or(&[]);
                let some = elements.len().min(buffer.len() - len);
                buffer[len..][..some].copy_from_slice(&elements[..some]);
                len += some;
                begun = (some < elements.len()).then_some((chunk, first + some));
            }
            let is_last = len < buffer.len();
            buffer.submit(len, &mut add)?;
            if is_last {
                return Ok(());
            }
        }
    }
}

#[cfg(all(test, feature = "simt"))]
mod tests {
    use super::*;

    #[test]
    fn an_error_ends_the_sum_and_has_its_chunk() {
        let gpu = Gpu::simt();
        let mut taken = 0;
        let chunks = (0..10).map(|i| {
            taken += 1;
            if i == 3 { Err(io::Error::from(io::ErrorKind::TimedOut)) } else { Ok([1.0_f32; 5]) }
        });
        let error = gpu.sum_chunks(chunks).unwrap_err();
        assert!(matches!(&error, Error::Chunk { index: 3, source } if source.kind() == io::ErrorKind::TimedOut));
        assert!(
            error.to_string().contains("chunk 3 of the input") && error.to_string().contains("timed out"),
            "{error}"
        );
        assert_eq!(taken, 4);
        // The handle works as before.
        assert_eq!(gpu.sum_chunks([Ok([1.0_f32; 5])]).unwrap().value(), 5.0);
        let recorded = gpu.record(|| gpu.sum_chunks([Ok([1.0_f32; 5])]).map(drop));
        assert!(matches!(recorded, Err(Error::Recording { .. })), "{recorded:?}");
    }

    #[test]
    fn chunks_that_change_their_length_are_no_panic() {
        /// Returns fewer elements each time.
        struct Shrinking(std::cell::Cell<usize>, Vec<f64>);
        impl AsRef<[f64]> for Shrinking {
            fn as_ref(&self) -> &[f64] {
                self.0.set(self.0.get() / 2);
                &self.1[..self.0.get()]
            }
        }
        let len = 2 * BUFFER_BYTES / size_of::<f64>() + 2;
        let chunk = Shrinking((2 * len).into(), vec![0.0; len]);
        assert!(Gpu::simt().for_each_chunk([Ok(chunk)], |_| Ok(())).is_ok());
    }
}
