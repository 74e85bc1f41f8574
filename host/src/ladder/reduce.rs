//! The reduction ladders, by name.

use cuda_std::launch::Kernel;
use kernels::ladder::reduce_shared::{MAX_BLOCKS, SINGLE_LAUNCH_BLOCK};
use kernels::ladder::{reduce_global as global, reduce_shared as shared};
use kernels::ops::Number;

use super::single_launch::SingleLaunch;
use super::{find, grid_of};
use crate::{Buffer, Element, Error, Gpu, Layout, Reducer, ops};

/// The block sizes of the rungs that have a choice.
pub const BLOCKS: [usize; 5] = [64, 128, 256, 512, 1024];

/// A kernel that reads its input and writes a partial sum for each block.
type Reading<T> = Kernel<shared::FoldArgs<'static, T>>;

/// A kernel that folds its input in place, and writes a partial sum for each block.
type InPlace<T> = Kernel<global::FoldInPlaceArgs<'static, T>>;

/// A type of number that the ladders' kernels sum: every type in shared memory, `f32` and `i32` in global memory.
pub trait LadderElement: Number {
    /// The sum of no elements.
    #[doc(hidden)]
    const ZERO: Self;
    #[doc(hidden)]
    fn single_launch() -> Kernel<shared::single_launch::Args<'static, Self>>;
    #[doc(hidden)]
    fn reading(rung: ReduceRung, block: usize) -> Option<Reading<Self>>;
    #[doc(hidden)]
    fn in_place(rung: ReduceRung, block: usize) -> Option<InPlace<Self>>;
    /// The library's exact sum of `len` elements, with the plan of [`Gpu::sum`].
    #[doc(hidden)]
    fn exact(gpu: &Gpu, len: usize) -> Result<Reducer<Self, Self>, Error>;
}

macro_rules! by_block {
    ($ladder:ident::$rung:ident, $type:ty, $block:expr) => {
        match $block {
            64 => Some($ladder::$rung::handle::<$type, 64>()),
            128 => Some($ladder::$rung::handle::<$type, 128>()),
            256 => Some($ladder::$rung::handle::<$type, 256>()),
            512 => Some($ladder::$rung::handle::<$type, 512>()),
            1024 => Some($ladder::$rung::handle::<$type, 1024>()),
            _ => None,
        }
    };
}

macro_rules! reading {
    ($type:ty, $exact:ident, zero $zero:literal) => {
        const ZERO: Self = $zero;

        fn exact(gpu: &Gpu, len: usize) -> Result<Reducer<Self, Self>, Error> {
            $exact(gpu, len)
        }

        fn single_launch() -> Kernel<shared::single_launch::Args<'static, Self>> {
            shared::single_launch::handle::<$type>()
        }

        fn reading(rung: ReduceRung, block: usize) -> Option<Reading<Self>> {
            match rung {
                ReduceRung::DivergentModulo => by_block!(shared::divergent_modulo, $type, block),
                ReduceRung::StridedIndex => by_block!(shared::strided_index, $type, block),
                ReduceRung::Sequential => by_block!(shared::sequential, $type, block),
                ReduceRung::FirstAddOnLoad => by_block!(shared::first_add_on_load, $type, block),
                ReduceRung::UnrollLastWarp => by_block!(shared::unroll_last_warp, $type, block),
                ReduceRung::CompleteUnroll => by_block!(shared::complete_unroll, $type, block),
                ReduceRung::GridStride => by_block!(shared::grid_stride, $type, block),
                ReduceRung::WarpShuffle => by_block!(shared::warp_shuffle, $type, block),
                ReduceRung::Vectorized => by_block!(shared::vectorized, $type, block),
                _ => None,
            }
        }
    };
}

macro_rules! in_both_memories {
    ($($type:ty, $exact:ident, zero $zero:literal;)*) => {$(
        impl LadderElement for $type {
            reading!($type, $exact, zero $zero);

            fn in_place(rung: ReduceRung, block: usize) -> Option<InPlace<Self>> {
                if !BLOCKS.contains(&block) {
                    return None;
                }
                let any_block = match rung {
                    ReduceRung::Neighbored => global::neighbored::handle::<$type>(),
                    ReduceRung::NeighboredLess => global::neighbored_less::handle::<$type>(),
                    ReduceRung::Interleaved => global::interleaved::handle::<$type>(),
                    ReduceRung::Unroll2 => global::unroll2::handle::<$type>(),
                    ReduceRung::Unroll4 => global::unroll4::handle::<$type>(),
                    ReduceRung::Unroll8 => global::unroll8::handle::<$type>(),
                    ReduceRung::Unroll8WarpTail => global::unroll8_warp_tail::handle::<$type>(),
                    ReduceRung::Unroll8Complete => global::unroll8_complete::handle::<$type>(),
                    ReduceRung::Unroll8CompleteConst => {
                        return by_block!(global::unroll8_complete_const, $type, block);
                    }
                    _ => return None,
                };
                Some(any_block.with_block(block as u32))
            }
        }
    )*};
}

macro_rules! in_shared_memory {
    ($($type:ty, $exact:ident, zero $zero:literal;)*) => {$(
        impl LadderElement for $type {
            reading!($type, $exact, zero $zero);

            fn in_place(_: ReduceRung, _: usize) -> Option<InPlace<Self>> {
                None
            }
        }
    )*};
}

in_both_memories! {
    f32, by_library, zero 0.0;
    i32, no_exact_sum, zero 0;
}
in_shared_memory! {
    f64, by_library, zero 0.0;
    i64, no_exact_sum, zero 0;
}

/// The reducer of all `len` elements: the plan and the kernel of [`Gpu::sum`].
fn by_library<T: Number>(gpu: &Gpu, len: usize) -> Result<Reducer<T, T>, Error>
where
    ops::Sum: crate::Reduction<T, Output = T>,
{
    Layout::contiguous(&[len]).and_then(|layout| gpu.reducer(ops::Sum, &layout, 0))
}

/// The error for integers, whose sums are exact in every rung.
fn no_exact_sum<T: Number>(_: &Gpu, _: usize) -> Result<Reducer<T, T>, Error> {
    Err(Error::NoSuchRung {
        what: "kernel for exact sums of",
        value: std::any::type_name::<T>().to_owned(),
        allowed: vec!["f32".to_owned(), "f64".to_owned()],
    })
}

/// The rungs of the reduction ladders, from first to last, named as their kernels in [`kernels::ladder::reduce_global`]
/// and [`kernels::ladder::reduce_shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // each is documented at its kernel and by `summary`
pub enum ReduceRung {
    Neighbored,
    NeighboredLess,
    Interleaved,
    Unroll2,
    Unroll4,
    Unroll8,
    Unroll8WarpTail,
    Unroll8Complete,
    Unroll8CompleteConst,
    DivergentModulo,
    StridedIndex,
    Sequential,
    FirstAddOnLoad,
    UnrollLastWarp,
    CompleteUnroll,
    GridStride,
    WarpShuffle,
    Vectorized,
    SingleLaunch,
    ExactLongRows,
}

impl ReduceRung {
    /// The ladder in global memory.
    pub const GLOBAL: [Self; 9] = [
        Self::Neighbored,
        Self::NeighboredLess,
        Self::Interleaved,
        Self::Unroll2,
        Self::Unroll4,
        Self::Unroll8,
        Self::Unroll8WarpTail,
        Self::Unroll8Complete,
        Self::Unroll8CompleteConst,
    ];

    /// The ladder in shared memory. Its last rung is the kernel that [`Gpu::sum`] launches for floats.
    pub const SHARED: [Self; 11] = [
        Self::DivergentModulo,
        Self::StridedIndex,
        Self::Sequential,
        Self::FirstAddOnLoad,
        Self::UnrollLastWarp,
        Self::CompleteUnroll,
        Self::GridStride,
        Self::WarpShuffle,
        Self::Vectorized,
        Self::SingleLaunch,
        Self::ExactLongRows,
    ];

    /// All rungs of both ladders.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::GLOBAL.into_iter().chain(Self::SHARED)
    }

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Neighbored => "neighbored",
            Self::NeighboredLess => "neighbored_less",
            Self::Interleaved => "interleaved",
            Self::Unroll2 => "unroll2",
            Self::Unroll4 => "unroll4",
            Self::Unroll8 => "unroll8",
            Self::Unroll8WarpTail => "unroll8_warp_tail",
            Self::Unroll8Complete => "unroll8_complete",
            Self::Unroll8CompleteConst => "unroll8_complete_const",
            Self::DivergentModulo => "divergent_modulo",
            Self::StridedIndex => "strided_index",
            Self::Sequential => "sequential",
            Self::FirstAddOnLoad => "first_add_on_load",
            Self::UnrollLastWarp => "unroll_last_warp",
            Self::CompleteUnroll => "complete_unroll",
            Self::GridStride => "grid_stride",
            Self::WarpShuffle => "warp_shuffle",
            Self::Vectorized => "vectorized",
            Self::SingleLaunch => "single_launch",
            Self::ExactLongRows => "exact_long_rows",
        }
    }

    /// A short description of what the rung changes, compared with the rung before it.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Neighbored => "every 2nd, 4th, ... thread adds",
            Self::NeighboredLess => "the first threads add: no divergence",
            Self::Interleaved => "neighbours read neighbours: coalesced",
            Self::Unroll2 => "two elements a thread: half the blocks",
            Self::Unroll4 => "four elements a thread",
            Self::Unroll8 => "eight elements a thread",
            Self::Unroll8WarpTail => "the last warp needs no block barrier",
            Self::Unroll8Complete => "no loop",
            Self::Unroll8CompleteConst => "the block size is a constant",
            Self::DivergentModulo => "every 2nd, 4th, ... thread adds",
            Self::StridedIndex => "the first threads add: no divergence",
            Self::Sequential => "neighbours read neighbours: no bank conflicts",
            Self::FirstAddOnLoad => "two elements a thread: no idle threads",
            Self::UnrollLastWarp => "the last warp needs no block barrier",
            Self::CompleteUnroll => "no loop: the block size is a constant",
            Self::GridStride => "few blocks, each over the whole input",
            Self::WarpShuffle => "registers instead of shared memory",
            Self::Vectorized => "16-byte loads, several in flight",
            Self::SingleLaunch => "the last block folds the partials",
            Self::ExactLongRows => "integers instead of floats: exact",
        }
    }

    /// The rung with this name.
    ///
    /// # Errors
    /// No rung has this name. The error lists all names.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let all: Vec<Self> = Self::all().collect();
        find(&all, name, Self::name)
    }

    /// Whether the rung folds its input in place. It then works on a copy.
    pub fn is_in_place(self) -> bool {
        Self::GLOBAL.contains(&self)
    }

    /// Whether the rung's float sum is exact, rounded once. Sums of integers are exact in every rung.
    pub fn is_exact(self) -> bool {
        self == Self::ExactLongRows
    }

    /// Whether the rung's block size is fixed.
    pub fn has_fixed_block(self) -> bool {
        matches!(self, Self::SingleLaunch | Self::ExactLongRows)
    }

    /// The number of blocks of `block` threads for `len` elements.
    fn blocks(self, len: usize, block: usize) -> usize {
        let elements_per_block = match self {
            Self::FirstAddOnLoad | Self::UnrollLastWarp | Self::CompleteUnroll | Self::Unroll2 => 2 * block,
            Self::Unroll4 => 4 * block,
            Self::Unroll8 | Self::Unroll8WarpTail | Self::Unroll8Complete | Self::Unroll8CompleteConst => 8 * block,
            _ => block,
        };
        let blocks = len.div_ceil(elements_per_block).max(1);
        match self {
            // No more threads than `single_launch` has, for any block size; one block for the last launch.
            Self::GridStride | Self::WarpShuffle | Self::Vectorized => {
                if len <= MAX_BLOCKS * SINGLE_LAUNCH_BLOCK / 64 {
                    1
                } else {
                    blocks.min(MAX_BLOCKS * SINGLE_LAUNCH_BLOCK / block)
                }
            }
            _ => blocks,
        }
    }

    /// Prepares a sum of `len` elements by this rung, and allocates its memory.
    ///
    /// `block` is one of [`BLOCKS`]. A rung with a [fixed block](ReduceRung::has_fixed_block) ignores it.
    ///
    /// # Errors
    /// There is no instance for that type or block, or no memory.
    pub fn prepare<T: LadderElement>(self, gpu: &Gpu, len: usize, block: usize) -> Result<PreparedSum<T>, Error> {
        let stages = |kernel_id| {
            let mut stages = Vec::new();
            let mut left = len;
            while left > 1 || stages.is_empty() {
                left = self.blocks(left, block);
                grid_of(kernel_id, left)?;
                stages.push(gpu.zeroed(left)?);
            }
            Ok::<_, Error>(stages)
        };
        let steps = if self == Self::SingleLaunch {
            Steps::Single(SingleLaunch::new(gpu, T::single_launch())?)
        } else if self == Self::ExactLongRows {
            Steps::Exact { reducer: Box::new(T::exact(gpu, len)?), output: gpu.zeroed(1)? }
        } else if self.is_in_place() {
            let kernel = T::in_place(self, block).ok_or_else(|| no_instance::<T>(block))?;
            Steps::InPlace { kernel, scratch: gpu.zeroed(len)?, stages: stages(kernel.id())? }
        } else {
            let kernel = T::reading(self, block).ok_or_else(|| no_instance::<T>(block))?;
            Steps::Reading { kernel, stages: stages(kernel.id())? }
        };
        Ok(PreparedSum { len, steps })
    }
}

/// A prepared sum by one rung, which can be started any number of times.
pub struct PreparedSum<T: Element> {
    len: usize,
    steps: Steps<T>,
}

/// The launches of a sum: one, or several of the same kernel, each over the partials of the previous launch.
enum Steps<T: Element> {
    Reading { kernel: Reading<T>, stages: Vec<Buffer<T>> },
    InPlace { kernel: InPlace<T>, scratch: Buffer<T>, stages: Vec<Buffer<T>> },
    Single(SingleLaunch<T>),
    Exact { reducer: Box<Reducer<T, T>>, output: Buffer<T> },
}

impl<T: LadderElement> PreparedSum<T> {
    /// Copies `input`, if the rung works in place.
    ///
    /// Call this before each start whose result is read. A start that is only timed does not need it.
    ///
    /// # Errors
    /// The reduction was prepared for another length than that of `input`, or `input` belongs to another device.
    pub fn load(&mut self, gpu: &Gpu, input: &Buffer<T>) -> Result<(), Error> {
        self.check(input)?;
        match &mut self.steps {
            Steps::InPlace { scratch, .. } => gpu.copy_array(input, scratch),
            _ => Ok(()),
        }
    }

    /// Starts the sum of `input`, or of its copy for a rung that works in place.
    ///
    /// # Errors
    /// The reduction was prepared for another length than that of `input`, or `input` belongs to another device.
    pub fn start(&mut self, gpu: &Gpu, input: &Buffer<T>) -> Result<(), Error> {
        self.check(input)?;
        match &mut self.steps {
            Steps::Single(single) => single.start(gpu, input),
            Steps::Exact { reducer, output } => reducer.start(input, output),
            Steps::Reading { kernel, stages } => {
                let mut source = input;
                for partials in stages {
                    let blocks = partials.len() as u32;
                    let arguments = shared::FoldArgs { input: source.view(), partials: partials.view_mut() };
                    gpu.launch(*kernel, blocks, arguments)?;
                    source = partials;
                }
                Ok(())
            }
            Steps::InPlace { kernel, scratch, stages } => {
                let mut source = scratch;
                for partials in stages {
                    let blocks = partials.len() as u32;
                    let arguments = global::FoldInPlaceArgs { data: source.view_mut(), partials: partials.view_mut() };
                    gpu.launch(*kernel, blocks, arguments)?;
                    source = partials;
                }
                Ok(())
            }
        }
    }

    fn check(&self, input: &Buffer<T>) -> Result<(), Error> {
        let (found, expected) = (input.len(), self.len);
        if found == expected {
            Ok(())
        } else {
            Err(Error::Length { operation: "reduce", what: "the input", found, expected })
        }
    }

    /// The result of the last start.
    ///
    /// # Errors
    /// Earlier work has failed.
    pub fn finish(&self, gpu: &Gpu) -> Result<T, Error> {
        if self.len == 0 {
            // The kernels' sum of no elements is their neutral element, -0.0.
            return Ok(T::ZERO);
        }
        match &self.steps {
            Steps::Single(single) => single.finish(gpu),
            Steps::Exact { output, .. } => Ok(gpu.download(output)?[0]),
            Steps::Reading { stages, .. } | Steps::InPlace { stages, .. } => match stages.last() {
                Some(last) => Ok(gpu.download(last)?[0]),
                None => Ok(T::ZERO),
            },
        }
    }

    /// The number of launches of one sum.
    pub fn launches(&self) -> usize {
        match &self.steps {
            Steps::Single(_) | Steps::Exact { .. } => 1,
            Steps::Reading { stages, .. } | Steps::InPlace { stages, .. } => stages.len(),
        }
    }
}

fn no_instance<T: LadderElement>(block: usize) -> Error {
    if BLOCKS.contains(&block) {
        return Error::NoSuchRung {
            what: "kernel of the ladder in global memory for",
            value: std::any::type_name::<T>().to_owned(),
            allowed: vec!["f32".to_owned(), "i32".to_owned()],
        };
    }
    Error::NoSuchRung {
        what: "kernel for blocks of",
        value: block.to_string(),
        allowed: BLOCKS.iter().map(usize::to_string).collect(),
    }
}
