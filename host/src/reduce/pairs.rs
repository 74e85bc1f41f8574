//! Reductions of two inputs: the dot product.

use cuda_std::element::{Element, Plain};
use cuda_std::tile_state;
use half::{bf16, f16};
use kernels::ops::{Dot, InElementType, Operator};
use kernels::reduce::exact::lane_memory::LaneMemory;
use kernels::reduce::exact::long_rows::{
    MAX_THREADS, PAIRS_IN_FLIGHT, exact_pairs, lane_memory, states_per_split_of_pairs, words_of_pairs_superaccumulator,
};
use kernels::reduce::exact::result::{ExactPairOperator, IN_OTHER_FORMAT};
use kernels::reduce::pairs::{self, PairArgs, VECTORS_IN_FLIGHT};

use super::Shape;
use super::lane_memory::lane_memory_bytes;
use super::plan::Blocks;
use super::planned::{check_elements, grid};
use super::private::Token;
use super::shape::Kind;
use super::workspace::{Workspace, WorkspaceSize};
use crate::{AnyBlock, Buffer, Error, Gpu, View, ViewMut};

const OPERATION: &str = "reduce pairs";

/// An operator on pairs of elements of type `T`.
///
/// Sealed: only this crate implements it.
pub trait PairReduction<T: Element>: Sized {
    /// The type of each row's output.
    type Output: Plain;
    /// The kernel for two inputs.
    #[doc(hidden)]
    fn pairs(_: Token) -> PairKernel<T, Self::Output>;
}

/// The kernel of an operator on pairs, and the memory that its blocks share.
#[doc(hidden)]
pub enum PairKernel<T: Element, R: Plain> {
    /// Combines states in a fixed order. Each takes `states_per_split` tile states.
    InOrder { kernel: AnyBlock<PairArgs<'static, T, R>>, states_per_split: usize },
    /// Sums exactly. A superaccumulator has `words` words, `lane_memory` is the dynamic shared memory, and `finish`
    /// selects the result.
    Exact {
        kernel: AnyBlock<exact_pairs::Args<'static, T>>,
        states_per_split: usize,
        words: usize,
        lane_memory: LaneMemory,
        finish: u32,
    },
}

macro_rules! dots {
    ($($type:ident)*) => {$(
        impl PairReduction<$type> for Dot {
            type Output = <Dot as Operator<$type>>::Output;

            fn pairs(_: Token) -> PairKernel<$type, Self::Output> {
                let states_per_split = tile_state::tile_states_per_value::<<Dot as Operator<$type>>::State>();
                // SAFETY: no holder of the handle can launch the kernel: only the plans below do, with arguments that
                // they have checked.
                PairKernel::InOrder { kernel: unsafe { pairs::pairs::handle::<Self, $type>() }, states_per_split }
            }
        }
    )*};
}

macro_rules! exact_dots {
    ($($operator:ty: $type:ident, to $output:ident, $finish:expr;)*) => {$(
        impl PairReduction<$type> for $operator {
            type Output = $output;

            fn pairs(_: Token) -> PairKernel<$type, $output> {
                let states_per_split = states_per_split_of_pairs::<Dot, $type>();
                let words = words_of_pairs_superaccumulator::<Dot, $type>();
                // SAFETY: as above.
                let kernel = unsafe { exact_pairs::handle::<Dot, $type>() };
                let lane_memory = lane_memory::<<Dot as ExactPairOperator<$type>>::Terms>();
                PairKernel::Exact { kernel, states_per_split, words, lane_memory, finish: $finish }
            }
        }
    )*};
}

dots!(i8 i16 i32 i64 u8 u16 u32 u64);
exact_dots! {
    Dot: f32, to f32, 0;
    Dot: f64, to f64, 0;
    Dot: f16, to f32, 0;
    Dot: bf16, to f32, 0;
    InElementType<Dot>: f16, to f16, IN_OTHER_FORMAT;
    InElementType<Dot>: bf16, to bf16, IN_OTHER_FORMAT;
}

/// A reduction of two inputs of one shape, with its workspace. Starting it neither allocates nor waits. It reduces
/// elements of type `T` to outputs of type `R`.
///
/// Made by [`Gpu::pair_reducer`].
pub struct PairReducer<T: Element, R: Plain> {
    gpu: Gpu,
    planned: PlannedPairs<T, R>,
    workspace: Workspace,
}

impl Gpu {
    /// The dot product of two vectors; 0 for no elements. For floats it is exact, rounded once (of `f16` and `bf16` to
    /// `f32`); for integers it is computed in 64 bits. See [`Dot`].
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, y) = (gpu.upload(&[1.0_f32, 2.0, 3.0])?, gpu.upload(&[4.0_f32, 5.0, 6.0])?);
    /// assert_eq!(gpu.dot(&x, &y)?, 32.0);
    /// let (x, y) = (gpu.upload(&[1e300_f64, 3.0, -1e300])?, gpu.upload(&[1e300_f64, 4.0, 1e300])?);
    /// assert_eq!(gpu.dot(&x, &y)?, 12.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The lengths of `x` and `y` differ; or as for [`Gpu::reduce_all`].
    pub fn dot<'x, 'y, T: Element>(
        &self,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
    ) -> Result<<Dot as PairReduction<T>>::Output, Error>
    where
        Dot: PairReduction<T>,
    {
        let (x, y) = (x.into(), y.into());
        if x.len() != y.len() {
            let (found, expected) = (y.len(), x.len());
            return Err(Error::Length { operation: "dot", what: "the second input", found, expected });
        }
        let shape = Shape::all(x.len());
        let planned = PlannedPairs::new(self, <Dot as PairReduction<T>>::pairs(Token), shape)?;
        check_inputs(self, shape, x, y)?;
        self.one_result(planned.workspace_size(), |workspace, output| planned.launch(self, workspace, (x, y), output))
    }

    /// Reduces two inputs of one shape, whole or row by row, to a buffer with one output for each row.
    ///
    /// # Errors
    /// A view is shorter than the shape, or the shape is one of columns; or as for [`Gpu::reduce_all`].
    pub fn reduce_pairs<'x, 'y, O: PairReduction<T>, T: Element>(
        &self,
        _operator: O,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error> {
        let (planned, x, y) = (PlannedPairs::new(self, O::pairs(Token), shape)?, x.into(), y.into());
        check_inputs(self, shape, x, y)?;
        // A kernel writes every output.
        let mut output = Buffer::new(&self.backend(), shape.outputs(), "allocate a buffer")?;
        let mut workspace = self.workspaces().take(self, planned.workspace_size())?;
        planned.launch(self, &mut workspace, (x, y), output.view_mut())?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }

    /// A reduction of two inputs of one shape with its workspace, which can be started any number of times.
    ///
    /// # Errors
    /// The shape is one of columns, or memory for the workspace runs out.
    pub fn pair_reducer<O: PairReduction<T>, T: Element>(
        &self,
        _operator: O,
        shape: Shape,
    ) -> Result<PairReducer<T, O::Output>, Error> {
        let planned = PlannedPairs::new(self, O::pairs(Token), shape)?;
        let workspace = Workspace::new(self, planned.workspace_size())?;
        Ok(PairReducer { gpu: self.clone(), planned, workspace })
    }
}

impl<T: Element, R: Plain> PairReducer<T, R> {
    /// The shape of each input.
    pub fn shape(&self) -> Shape {
        self.planned.shape
    }

    /// Starts the reduction of the two inputs to `output`, after all work that was started earlier.
    ///
    /// # Errors
    /// An input is shorter than the shape (elements past the shape are ignored), `output` does not have one element for
    /// each of the shape's outputs, or one of them belongs to another device; the launch is refused.
    pub fn start<'x, 'y, 'o>(
        &mut self,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
        output: impl Into<ViewMut<'o, R>>,
    ) -> Result<(), Error> {
        self.planned.start(&self.gpu, &mut self.workspace, (x.into(), y.into()), output.into())
    }
}

/// Checks that both inputs belong to this device and have the shape's elements, before outputs are allocated.
pub(super) fn check_inputs<T: Element>(gpu: &Gpu, shape: Shape, x: View<'_, T>, y: View<'_, T>) -> Result<(), Error> {
    let minimum = shape.elements().unwrap_or(usize::MAX);
    for (what, input) in [("the first input", x), ("the second input", y)] {
        gpu.use_memory(input.memory(), OPERATION)?;
        if input.len() < minimum {
            return Err(Error::TooShort { operation: OPERATION, what, found: input.len(), minimum });
        }
    }
    Ok(())
}

/// A reduction of two inputs of one shape by an operator's kernel.
struct PlannedPairs<T: Element, R: Plain> {
    kernel: PairKernel<T, R>,
    shape: Shape,
    rows: usize,
    len: usize,
    pitch: usize,
    /// `None` if there is no output.
    blocks: Option<Blocks>,
}

impl<T: Element, R: Plain> PlannedPairs<T, R> {
    /// Plans the reduction of a shape of pairs, if possible.
    fn new(gpu: &Gpu, kernel: PairKernel<T, R>, shape: Shape) -> Result<Self, Error> {
        check_elements::<T>(shape)?;
        let Kind::Rows { rows, len, pitch } = shape.kind else {
            return Err(Error::Shape {
                operation: OPERATION,
                what: "the number of columns",
                found: shape.outputs(),
                expected: "but pairs are reduced as a whole or by rows, not by columns".to_owned(),
            });
        };
        // Empty rows have no use for the pitch, which may be any number, so 0 replaces it.
        let (size, pitch) = (size_of::<T>(), if len == 0 { 0 } else { pitch });
        let blocks = (rows > 0).then(|| match kernel {
            // Dot products of integers have the same bits in any order.
            PairKernel::InOrder { .. } => Blocks::of_rows(rows, len, size, VECTORS_IN_FLIGHT, gpu.multiprocessors()),
            PairKernel::Exact { .. } => Blocks::exact(rows, len, size, PAIRS_IN_FLIGHT, gpu.multiprocessors()),
        });
        Ok(Self { kernel, shape, rows, len, pitch, blocks })
    }

    fn workspace_size(&self) -> WorkspaceSize {
        let (states_per_split, words) = match self.kernel {
            PairKernel::InOrder { states_per_split, .. } => (states_per_split, 0),
            PairKernel::Exact { states_per_split, words, .. } => (states_per_split, words),
        };
        self.blocks.map_or(WorkspaceSize::default(), |blocks| blocks.workspace_size(self.rows, states_per_split, words))
    }

    /// Starts the reduction in a workspace with enough capacity.
    fn start(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        (x, y): (View<'_, T>, View<'_, T>),
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let shape = self.shape;
        check_inputs(gpu, shape, x, y)?;
        gpu.use_memory(output.memory(), OPERATION)?;
        if output.len() != shape.outputs() {
            let (found, expected) = (output.len(), shape.outputs());
            return Err(Error::Length { operation: OPERATION, what: "the output", found, expected });
        }
        self.launch(gpu, workspace, (x, y), output)
    }

    /// [`PlannedPairs::start`] without checks of the views, which have been made.
    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        (x, y): (View<'_, T>, View<'_, T>),
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Self { ref kernel, rows, len, pitch, blocks, .. } = *self;
        let Some(blocks) = blocks else { return Ok(()) };
        let (grid, tile_states) = (grid(blocks.grid(rows), OPERATION)?, workspace.tile_states.view_mut());
        let Blocks { splits, tiles, longer_splits, threads } = blocks;
        match kernel {
            PairKernel::InOrder { kernel, .. } => {
                let (first, second) = (x, y);
                let arguments =
                    PairArgs { first, second, len, pitch, splits, tiles, longer_splits, tile_states, output };
                gpu.launch(kernel.with_block(threads), grid, arguments)
            }
            PairKernel::Exact { kernel, lane_memory, finish, .. } => {
                let arguments = exact_pairs::Args {
                    first: x,
                    second: y,
                    len,
                    pitch,
                    splits,
                    tiles,
                    longer_splits,
                    tile_states,
                    superaccumulators: workspace.superaccumulators.view_mut(),
                    finish: *finish,
                    output: output.cast::<u8>(),
                };
                let shared = lane_memory_bytes(gpu, *lane_memory, threads as usize, MAX_THREADS);
                gpu.launch(kernel.with_block(threads).with_dynamic_shared(shared), grid, arguments)
            }
        }
    }
}
