//! The launches of a reduction along axes: what each copies first, and what it reduces.

use cuda_std::element::Element;

use super::OPERATION;
use super::geometry::{Geometry, Launch, LaunchShape};
use crate::{Buffer, Error, Gpu, Layout, View};

/// The launches of a [`Geometry`], all of one shape.
pub(super) struct Steps<const N: usize> {
    copies: [Option<Layout>; N],
    launches: Vec<Launch<N>>,
    /// Elements that a launch needs of each input.
    needed: [usize; N],
    /// Outputs of a launch.
    outputs: usize,
}

/// Memory for a copy of a part of each input that is copied.
pub(super) type Parts<T, const N: usize> = [Option<Buffer<T>>; N];

impl<const N: usize> Steps<N> {
    /// The launches, without those of [`Geometry::rest`].
    pub fn of<K: LaunchShape>(geometry: &Geometry<N, K>) -> Self {
        let (kind, copies, launches) = (&geometry.kind, geometry.copies, geometry.launches.clone());
        let needed = std::array::from_fn(|input| kind.elements(input).unwrap_or(usize::MAX));
        Self { copies, launches, needed, outputs: kind.outputs() }
    }

    /// The copies of a launch.
    pub fn copies(&self) -> impl Iterator<Item = &Layout> {
        self.copies.iter().flatten()
    }

    /// The number of launches.
    pub fn len(&self) -> usize {
        self.launches.len()
    }

    /// The memory for the copies.
    pub fn parts<T: Element>(&self, gpu: &Gpu) -> Result<Parts<T, N>, Error> {
        let mut parts = [const { None }; N];
        for (part, copy) in parts.iter_mut().zip(&self.copies) {
            if let Some(copy) = copy {
                *part = Some(Buffer::new(&gpu.backend(), copy.len(), "allocate memory for a copy")?);
            }
        }
        Ok(parts)
    }

    /// Calls a function for each launch, with the views that it reduces, its first output, and their number. Each input
    /// is a view, and the offset of its layout.
    pub fn run<T: Element>(
        &self,
        gpu: &Gpu,
        inputs: [(View<'_, T>, usize); N],
        parts: &mut Parts<T, N>,
        mut launch: impl FnMut([View<'_, T>; N], usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut copied = [None; N];
        for step in &self.launches {
            // Of no elements, the offset may be anywhere.
            let at = |input: usize| match self.needed[input] {
                0 => 0,
                _ => inputs[input].1.wrapping_add_signed(step.input[input]),
            };
            let mut views = inputs.map(|(view, _)| view);
            for (input, part) in parts.iter_mut().enumerate() {
                let (Some(copy), Some(part)) = (&self.copies[input], part) else {
                    views[input] = views[input].skip(at(input))?;
                    continue;
                };
                // Several launches may take the same part of one input, with different parts of the other.
                if copied[input] != Some(at(input)) {
                    let (from, to) = (copy.with_offset(at(input)), Layout::contiguous(copy.extents())?);
                    let size = size_of::<T>();
                    gpu.copy_bytes_of(size, views[input].cast(), &from, part.view_mut().cast(), &to)?;
                    copied[input] = Some(at(input));
                }
            }
            for ((view, part), &needed) in views.iter_mut().zip(&*parts).zip(&self.needed) {
                part.iter().for_each(|part| *view = part.view());
                check_len(view.len(), needed)?;
            }
            launch(views, step.result, self.outputs)?;
        }
        Ok(())
    }
}

/// Checks that an input has all elements that a launch reads.
fn check_len(found: usize, minimum: usize) -> Result<(), Error> {
    match found < minimum {
        true => Err(Error::TooShort { operation: OPERATION, what: "the input", found, minimum }),
        false => Ok(()),
    }
}
