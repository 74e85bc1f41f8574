//! The teaching kernels, by name: each rung of the ladders, ready to be run, checked and timed.

use std::mem::size_of;

use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::{Kernel, KernelId};
use kernels::reduce::device::blocks_for;
use kernels::reduce::ladder as reduce;
use kernels::transpose::ladder as transpose;

use crate::sum::Workspace;
use crate::{Buffer, Error, Gpu, Matrix, Summable};

/// The block sizes that every rung with a choice has an instance for.
pub const BLOCKS: [usize; 5] = [64, 128, 256, 512, 1024];

/// A rung of a reduction ladder that leaves a partial sum for each block.
type Partials<T> = Kernel<(Global<'static, T>, GlobalMut<'static, T>)>;

/// A rung of the transpose ladder.
type Transpose = Kernel<(Global<'static, f32>, GlobalMut<'static, f32>, usize, usize)>;

/// A number that the reduction ladder has instances for.
pub trait LadderElement: Summable {
    #[doc(hidden)]
    fn partials(rung: ReduceRung, block: usize) -> Option<Partials<Self>>;
}

macro_rules! by_block {
    ($rung:ident, $type:ty, $block:expr) => {
        match $block {
            64 => Some(reduce::$rung::handle::<$type, 64>()),
            128 => Some(reduce::$rung::handle::<$type, 128>()),
            256 => Some(reduce::$rung::handle::<$type, 256>()),
            512 => Some(reduce::$rung::handle::<$type, 512>()),
            1024 => Some(reduce::$rung::handle::<$type, 1024>()),
            _ => None,
        }
    };
}

macro_rules! ladder_elements {
    ($($type:ty),*) => {$(
        impl LadderElement for $type {
            fn partials(rung: ReduceRung, block: usize) -> Option<Partials<Self>> {
                match rung {
                    ReduceRung::DivergentModulo => by_block!(divergent_modulo, $type, block),
                    ReduceRung::StridedIndex => by_block!(strided_index, $type, block),
                    ReduceRung::Sequential => by_block!(sequential, $type, block),
                    ReduceRung::FirstAddOnLoad => by_block!(first_add_on_load, $type, block),
                    ReduceRung::UnrollLastWarp => by_block!(unroll_last_warp, $type, block),
                    ReduceRung::CompleteUnroll => by_block!(complete_unroll, $type, block),
                    ReduceRung::SingleLaunch => None,
                }
            }
        }
    )*};
}

ladder_elements!(f32, i32);

/// The rungs of the reduction ladder, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReduceRung {
    /// [`kernels::reduce::ladder::divergent_modulo`](fn@kernels::reduce::ladder::divergent_modulo)
    DivergentModulo,
    /// [`kernels::reduce::ladder::strided_index`](fn@kernels::reduce::ladder::strided_index)
    StridedIndex,
    /// [`kernels::reduce::ladder::sequential`](fn@kernels::reduce::ladder::sequential)
    Sequential,
    /// [`kernels::reduce::ladder::first_add_on_load`](fn@kernels::reduce::ladder::first_add_on_load)
    FirstAddOnLoad,
    /// [`kernels::reduce::ladder::unroll_last_warp`](fn@kernels::reduce::ladder::unroll_last_warp)
    UnrollLastWarp,
    /// [`kernels::reduce::ladder::complete_unroll`](fn@kernels::reduce::ladder::complete_unroll)
    CompleteUnroll,
    /// [`kernels::reduce::device::single_launch`](fn@kernels::reduce::device::single_launch), which [`Gpu::sum`] uses
    SingleLaunch,
}

impl ReduceRung {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::DivergentModulo,
        Self::StridedIndex,
        Self::Sequential,
        Self::FirstAddOnLoad,
        Self::UnrollLastWarp,
        Self::CompleteUnroll,
        Self::SingleLaunch,
    ];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::DivergentModulo => "divergent_modulo",
            Self::StridedIndex => "strided_index",
            Self::Sequential => "sequential",
            Self::FirstAddOnLoad => "first_add_on_load",
            Self::UnrollLastWarp => "unroll_last_warp",
            Self::CompleteUnroll => "complete_unroll",
            Self::SingleLaunch => "single_launch",
        }
    }

    /// What it changes from the rung before, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::DivergentModulo => "every 2nd, 4th, ... thread adds",
            Self::StridedIndex => "the first threads add: no divergence",
            Self::Sequential => "neighbours read neighbours: no bank conflicts",
            Self::FirstAddOnLoad => "two elements a thread: no idle threads",
            Self::UnrollLastWarp => "the last warp needs no block barrier",
            Self::CompleteUnroll => "no loop: the block is in the type",
            Self::SingleLaunch => "16-byte loads, shuffles, one launch",
        }
    }

    /// The rung of that name.
    ///
    /// # Errors
    /// There is none; the error lists them.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        find(&Self::ALL, name, |rung| rung.name().to_owned())
    }

    /// How many elements a block of `block` threads folds to one.
    fn elements_per_block(self, block: usize) -> usize {
        match self {
            Self::DivergentModulo | Self::StridedIndex | Self::Sequential => block,
            _ => 2 * block,
        }
    }

    /// Makes ready to sum `len` elements by this rung: allocates all that it needs.
    ///
    /// `block` chooses among [`BLOCKS`]; `single_launch` has its own and ignores it.
    ///
    /// # Errors
    /// There is no instance for that block, or no memory.
    pub fn prepare<T: LadderElement>(self, gpu: &Gpu, len: usize, block: usize) -> Result<Reduction<T>, Error> {
        let steps = match self {
            Self::SingleLaunch => Steps::Single(Workspace::new(gpu)?),
            _ => {
                let kernel = T::partials(self, block).ok_or_else(|| no_such_block(block, &BLOCKS))?;
                let per_block = self.elements_per_block(block);
                let mut stages = Vec::new();
                let mut left = len;
                while left > 1 || stages.is_empty() {
                    left = left.div_ceil(per_block).max(1);
                    grid_of(kernel.id(), left)?;
                    stages.push(gpu.zeroed(left)?);
                }
                Steps::Stages { kernel, stages }
            }
        };
        Ok(Reduction { len, steps })
    }
}

/// A sum by one rung, ready to be started as often as one likes.
pub struct Reduction<T: 'static> {
    len: usize,
    steps: Steps<T>,
}

enum Steps<T: 'static> {
    /// The same kernel again and again, each time over the partials of the time before.
    Stages {
        kernel: Partials<T>,
        stages: Vec<Buffer<T>>,
    },
    Single(Workspace<T>),
}

impl<T: LadderElement> Reduction<T> {
    /// Starts the sum of `input`.
    ///
    /// # Errors
    /// `input` has not the length that the reduction was prepared for, or is another device's.
    pub fn start(&mut self, gpu: &Gpu, input: &Buffer<T>) -> Result<(), Error> {
        if input.len() != self.len {
            let (found, expected) = (input.len(), self.len);
            return Err(Error::Length { operation: "reduce", what: "the input", found, expected });
        }
        match &mut self.steps {
            Steps::Single(workspace) => workspace.start(gpu, input),
            Steps::Stages { kernel, stages } => {
                let mut source = input;
                for partials in stages {
                    let blocks = partials.len() as u32;
                    gpu.launch(*kernel, blocks, (source.view(), partials.view_mut()))?;
                    source = partials;
                }
                Ok(())
            }
        }
    }

    /// The result of the last start.
    ///
    /// # Errors
    /// Work before has failed.
    pub fn finish(&self, gpu: &Gpu) -> Result<T, Error> {
        match &self.steps {
            Steps::Single(workspace) => workspace.finish(gpu),
            Steps::Stages { stages, .. } => match stages.last() {
                Some(last) => Ok(gpu.download(last)?[0]),
                None => Ok(T::ZERO),
            },
        }
    }

    /// Launches that one sum takes.
    pub fn launches(&self) -> usize {
        match &self.steps {
            Steps::Single(_) => 1,
            Steps::Stages { stages, .. } => stages.len(),
        }
    }

    /// Blocks of the first launch.
    pub fn blocks(&self) -> usize {
        match &self.steps {
            Steps::Single(_) => blocks_for(self.len, size_of::<T>()),
            Steps::Stages { stages, .. } => stages.first().map_or(0, Buffer::len),
        }
    }
}

/// The rungs of the transpose ladder, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransposeRung {
    /// [`kernels::transpose::ladder::per_element`](fn@kernels::transpose::ladder::per_element)
    PerElement,
    /// [`kernels::transpose::ladder::tiled`](fn@kernels::transpose::ladder::tiled), with tiles of 8 x 8
    Tiled8,
    /// The same with tiles of 16 x 16
    Tiled16,
    /// The same with tiles of 32 x 32
    Tiled32,
    /// [`kernels::transpose::ladder::tiled_padded`](fn@kernels::transpose::ladder::tiled_padded), with tiles of 32 x 32
    TiledPadded,
}

impl TransposeRung {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::PerElement, Self::Tiled8, Self::Tiled16, Self::Tiled32, Self::TiledPadded];

    /// The kernel's name, and its tile where there is a choice.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerElement => "per_element",
            Self::Tiled8 => "tiled_8",
            Self::Tiled16 => "tiled_16",
            Self::Tiled32 => "tiled_32",
            Self::TiledPadded => "tiled_padded",
        }
    }

    /// What it changes from the rung before, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::PerElement => "a thread an element: scattered writes",
            Self::Tiled8 => "a tile turns in shared memory",
            Self::Tiled16 => "longer rows",
            Self::Tiled32 => "full lines, and 32-way bank conflicts",
            Self::TiledPadded => "one unused column: no bank conflicts",
        }
    }

    /// The rung of that name.
    ///
    /// # Errors
    /// There is none; the error lists them.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        find(&Self::ALL, name, |rung| rung.name().to_owned())
    }

    fn kernel(self) -> Transpose {
        match self {
            Self::PerElement => transpose::per_element::handle::<f32>(),
            Self::Tiled8 => transpose::tiled::handle::<f32, 8>(),
            Self::Tiled16 => transpose::tiled::handle::<f32, 16>(),
            Self::Tiled32 => transpose::tiled::handle::<f32, 32>(),
            Self::TiledPadded => transpose::tiled_padded::handle::<f32, 32>(),
        }
    }

    /// Starts the transpose of `matrix` into `result`. Allocates nothing.
    ///
    /// # Errors
    /// `result` has not the transposed shape, or one of the two is another device's.
    pub fn start(self, gpu: &Gpu, matrix: &Matrix<f32>, result: &mut Matrix<f32>) -> Result<(), Error> {
        crate::transpose::launch(gpu, self.kernel(), matrix, result)
    }
}

/// The grid of `blocks` blocks along x.
pub(crate) fn grid_of(kernel: KernelId, blocks: usize) -> Result<u32, Error> {
    // CUDA's limit along x, on every device.
    const MOST: usize = i32::MAX as usize;
    u32::try_from(blocks).ok().filter(|_| blocks <= MOST).ok_or_else(|| Error::InvalidLaunch {
        kernel: kernel.entry.to_owned(),
        what: "the grid's size along x",
        value: blocks.to_string(),
        limit: MOST.to_string(),
    })
}

fn find<R: Copy>(rungs: &[R], name: &str, name_of: impl Fn(R) -> String) -> Result<R, Error> {
    rungs.iter().copied().find(|&rung| name_of(rung) == name).ok_or_else(|| Error::NoSuchRung {
        what: "the rung",
        value: name.to_owned(),
        allowed: rungs.iter().map(|&rung| name_of(rung)).collect(),
    })
}

fn no_such_block(block: usize, allowed: &[usize]) -> Error {
    Error::NoSuchRung {
        what: "an instance for blocks of",
        value: block.to_string(),
        allowed: allowed.iter().map(usize::to_string).collect(),
    }
}
