//! Reductions of two inputs: the dot product.

use std::fmt;

use cuda_std::element::{Element, Plain};
use cuda_std::tile_state;
use half::{bf16, f16};
use kernels::ops::{Dot, InElementType, Operator};
use kernels::reduce::exact::lane_memory::LaneMemory;
use kernels::reduce::exact::long_rows::{
    ExactPairArgs, MAX_THREADS, PAIRS_IN_FLIGHT, exact_pairs, lane_memory, states_per_split_of_pairs,
    words_of_pairs_superaccumulator,
};
use kernels::reduce::exact::result::{ExactPairOperator, IN_OTHER_FORMAT};
use kernels::reduce::pairs::{self, PairArgs, VECTORS_IN_FLIGHT};

use super::exact::check_count;
use super::{Launch, Launches, grid};
use crate::reduce::OPERATION;
use crate::reduce::geometry::{LaunchShape, Pairs};
use crate::reduce::lane_memory::lane_memory_bytes;
use crate::reduce::method::Blocks;
use crate::reduce::workspace::{Workspace, WorkspaceSize};
use crate::{AnyBlock, Error, Gpu, View, ViewMut};

/// The kernel of an operator of two inputs, and the memory that its blocks share.
pub(in crate::reduce) enum PairKernel<T: Element, R: Plain> {
    /// Combines states in a fixed order. Each takes `states_per_split` tile states.
    InOrder { kernel: AnyBlock<PairArgs<'static, T, R>>, states_per_split: usize },
    /// Sums exactly. A superaccumulator has `words` words, `lane_memory` is the dynamic shared memory, and `finish`
    /// selects the result.
    Exact {
        kernel: AnyBlock<ExactPairArgs<'static, T>>,
        states_per_split: usize,
        words: usize,
        lane_memory: LaneMemory,
        finish: u32,
    },
}

/// An operator of two inputs that has a kernel for elements of type `T` and results of type `R`.
pub(in crate::reduce) trait HasPairKernel<T: Element, R: Plain> {
    fn kernel() -> PairKernel<T, R>;
}

macro_rules! dots {
    ($($type:ident)*) => {$(
        impl HasPairKernel<$type, <Dot as Operator<$type>>::Output> for Dot {
            fn kernel() -> PairKernel<$type, <Dot as Operator<$type>>::Output> {
                let states_per_split = tile_state::tile_states_per_value::<<Dot as Operator<$type>>::State>();
                // SAFETY: only `ByPairs` launches the kernel, with arguments that the plan has checked.
                PairKernel::InOrder { kernel: unsafe { pairs::pairs::handle::<Self, $type>() }, states_per_split }
            }
        }
    )*};
}

macro_rules! exact_dots {
    ($($operator:ty: $type:ident, to $output:ident, $finish:expr;)*) => {$(
        impl HasPairKernel<$type, $output> for $operator {
            fn kernel() -> PairKernel<$type, $output> {
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

/// The reduction of rows of two inputs by an operator's kernel.
pub(in crate::reduce) struct ByPairs<T: Element, R: Plain> {
    kernel: PairKernel<T, R>,
    pairs: Pairs,
    /// `None` if there is no output.
    blocks: Option<Blocks>,
}

impl<T: Element, R: Plain> ByPairs<T, R> {
    /// Plans the reduction, if possible.
    pub fn plan(kernel: PairKernel<T, R>, pairs: Pairs, multiprocessors: usize) -> Result<Launches<T, R, 2>, Error> {
        check_count(&pairs)?;
        let (rows, len, size) = (pairs.outputs(), pairs.len, size_of::<T>());
        let blocks = (rows > 0).then(|| match kernel {
            // Dot products of integers have the same bits in any order.
            PairKernel::InOrder { .. } => Blocks::of_rows(rows, len, size, VECTORS_IN_FLIGHT, multiprocessors),
            PairKernel::Exact { .. } => Blocks::exact(rows, len, size, PAIRS_IN_FLIGHT, multiprocessors),
        });
        Ok(Launches::new(Self { kernel, pairs, blocks }))
    }
}

impl<T: Element, R: Plain> fmt::Display for ByPairs<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pairs { groups, rows, len, .. } = self.pairs;
        let Some(blocks) = self.blocks else { return f.write_str("no outputs") };
        if groups > 1 {
            write!(f, "{groups} x ")?;
        }
        write!(f, "{rows} x {len} of both inputs by rows: {blocks}")
    }
}

impl<T: Element, R: Plain> Launch<T, R, 2> for ByPairs<T, R> {
    fn workspace_size(&self) -> WorkspaceSize {
        let (states_per_split, words) = match self.kernel {
            PairKernel::InOrder { states_per_split, .. } => (states_per_split, 0),
            PairKernel::Exact { states_per_split, words, .. } => (states_per_split, words),
        };
        let of_blocks = |blocks: Blocks| blocks.workspace_size(self.pairs.outputs(), states_per_split, words);
        self.blocks.map_or(WorkspaceSize::default(), of_blocks)
    }

    fn launch(
        &self,
        gpu: &Gpu,
        workspace: &mut Workspace,
        [first, second]: [View<'_, T>; 2],
        output: ViewMut<'_, R>,
    ) -> Result<(), Error> {
        let Some(blocks) = self.blocks else { return Ok(()) };
        let grid = grid(blocks.grid(self.pairs.outputs()), OPERATION)?;
        let Pairs { rows, len, pitches: [pitch, second_pitch], group_pitches, .. } = self.pairs;
        let [group_pitch, second_group_pitch] = group_pitches;
        // Fits, because the grid has a block for each row.
        let rows = rows as u32;
        let Blocks { splits, tiles, longer_splits, threads } = blocks;
        let tile_states = workspace.tile_states.view_mut();
        match &self.kernel {
            PairKernel::InOrder { kernel, .. } => {
                let arguments = PairArgs {
                    first,
                    second,
                    rows,
                    len,
                    pitch,
                    second_pitch,
                    group_pitch,
                    second_group_pitch,
                    splits,
                    tiles,
                    longer_splits,
                    tile_states,
                    output,
                };
                gpu.launch(kernel.with_block(threads), grid, arguments)
            }
            PairKernel::Exact { kernel, lane_memory, finish, .. } => {
                let arguments = ExactPairArgs {
                    first,
                    second,
                    rows,
                    len,
                    pitch,
                    second_pitch,
                    group_pitch,
                    second_group_pitch,
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
