//! Exact sums of custom terms.

use std::marker::PhantomData;

use exact_sum::Binary;
use kernels::reduce::exact::custom::{ExactTerm, TermArgs, words_of_residue};
use kernels::reduce::exact::formula::ResultFormat;
use kernels::reduce::exact::long_rows::VECTORS_IN_FLIGHT;

use super::Shape;
use super::plan::Blocks;
use super::reducer::{Launches, Planned, Reducer, check_elements, grid};
use super::shape::Kind;
use super::workspace::{Workspace, WorkspaceSize};
use crate::{AnyBlock, Element, Error, Gpu, View, ViewMut};

/// The kernel of an exact sum of custom terms, rounded to `R`.
///
/// Write an [`ExactTerm`], and a kernel whose body is [`sum_terms`] of it, and pass the kernel's handle to
/// [`Gpu::exact_reducer_by`], as `examples/operator` does. The kernel takes whole inputs and rows, short ones slowly.
/// Its requirements as an `unsafe fn` are met here, as by [`Kernels`](super::Kernels).
///
/// [`sum_terms`]: kernels::reduce::exact::custom::sum_terms
pub struct TermKernels<E: ExactTerm, R: ResultFormat> {
    name: &'static str,
    long_rows: AnyBlock<TermArgs<'static, E::Element, R>>,
    term: PhantomData<E>,
}

impl<E: ExactTerm, R: ResultFormat> TermKernels<E, R> {
    /// The term `E`, by a kernel that calls [`sum_terms`] of it, or accepts any arguments. `name` is for messages: `the
    /// sum of magnitudes`.
    ///
    /// [`sum_terms`]: kernels::reduce::exact::custom::sum_terms
    ///
    /// # Errors
    /// The term of 0 is not 0.
    pub fn new(name: &'static str, long_rows: AnyBlock<TermArgs<'static, E::Element, R>>) -> Result<Self, Error> {
        let zero = E::Element::default();
        let term = E::term(zero);
        if term.is_zero() && (!E::HAS_LOW || E::low(zero, term).is_zero()) {
            Ok(Self { name, long_rows, term: PhantomData })
        } else {
            Err(Error::TermOfZero { operator: name })
        }
    }
}

impl Gpu {
    /// [`Gpu::reducer`] by an exact sum of custom terms.
    ///
    /// # Errors
    /// As for [`Gpu::reducer`]; and the shape is one of columns, for which there is no kernel.
    pub fn exact_reducer_by<E: ExactTerm, R: ResultFormat>(
        &self,
        kernels: TermKernels<E, R>,
        shape: Shape,
    ) -> Result<Reducer<E::Element, R>, Error> {
        check_elements::<E::Element>(shape)?;
        let Kind::Rows { rows, len, pitch } = shape.kind else {
            return Err(Error::NoReductionKernel { operator: kernels.name, shape: "columns" });
        };
        // Empty rows do not use the pitch, which may be beyond any address.
        let pitch = if len == 0 { 0 } else { pitch };
        let blocks = (rows > 0).then(|| Blocks::exact(rows, len, size_of::<E::Element>(), VECTORS_IN_FLIGHT));
        let planned = OfTerms { kernel: kernels.long_rows, words: words_of_residue::<E>(), rows, len, pitch, blocks };
        Reducer::new(self, shape, Planned::new(planned))
    }
}

/// The reduction of a shape by an exact sum of custom terms.
struct OfTerms<T: Element, R: ResultFormat> {
    kernel: AnyBlock<TermArgs<'static, T, R>>,
    /// Words of a residue.
    words: usize,
    rows: usize,
    len: usize,
    pitch: usize,
    /// None if there is no output.
    blocks: Option<Blocks>,
}

impl<T: Element, R: ResultFormat> Launches<T, R> for OfTerms<T, R> {
    fn workspace_size(&self) -> WorkspaceSize {
        self.blocks.map_or(WorkspaceSize::default(), |blocks| blocks.workspace_size(self.rows, 1, self.words))
    }

    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        input: View<'_, T>,
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Some(blocks) = self.blocks else { return Ok(()) };
        let Blocks { parts, tiles, longer, threads } = blocks;
        let Workspace { tile_states, residues, .. } = workspace;
        let (tile_states, residues) = (tile_states.view_mut(), residues.view_mut());
        let Self { len, pitch, .. } = *self;
        let arguments = TermArgs { input, len, pitch, parts, tiles, longer, tile_states, residues, output };
        gpu.launch(self.kernel.with_block(threads), grid(blocks.grid(self.rows), "reduce")?, arguments)
    }
}
