//! The table of kernels that move units of each size.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::copy::elements::copy_aligned_segments;
use kernels::transpose::copy::strided::{FEW_AXES, MAX_AXES, copy_strided, swap_strided};
use kernels::transpose::copy::vectors::copy_segments;
use kernels::transpose::packed::capacity;
use kernels::transpose::packed::segments::packed_segments;
use kernels::transpose::packed::segments_short_wide::packed_segments_short_wide;
use kernels::transpose::packed::short_wide::short_wide;
use kernels::transpose::packed::tall_skinny::{allocation, tall_skinny};
use kernels::transpose::registers::register_tiles;
use kernels::transpose::tiled::in_place::{InPlaceArgs, aligned_in_place_tiles, elements_of_tile, in_place_tiles};
use kernels::transpose::tiled::interleaved::{InterleavedArgs, aligned_interleaved_tiles, interleaved_tiles};
use kernels::transpose::tiled::kernels::{TileArgs, sector_aligned_tiles, tiles};
use kernels::transpose::tiled::narrow::narrow_tiles;
use kernels::transpose::tuning::{
    REGISTER_TILES_BLOCK, SMALL_REGISTER_TILES_BLOCK, blocks_in_many_waves, blocks_in_one_wave, blocks_of_small_tiles,
    narrow_tile_words, small_in_place_elements, small_tile_elements, tile_elements,
};

use super::tiling::Waves;

/// A unit, and its kernels.
pub(super) trait HasKernels: Plain {
    /// The kernels. Only this module launches them, with arguments made for views that have all units that the
    /// arguments name.
    fn kernels() -> Kernels<Self>;
}

/// The kernels for units of one size. "Aligned" are those for rows that begin and end at multiples of 16 bytes.
pub(super) struct Kernels<T: Plain> {
    /// Aligned small matrices: in small blocks, and in large ones.
    pub in_registers: [Kernel<register_tiles::Args<'static, T>>; 2],
    /// Other aligned matrices.
    pub tiles: TileKernels<T>,
    /// Matrices that may not be aligned; `None` for units of 16 bytes, which always are.
    pub unaligned: Option<UnalignedKernels<T>>,
    /// Interleaved rows: any, and aligned ones.
    pub interleaved: [Kernel<InterleavedArgs<'static, T>>; 2],
    /// Square matrices in place.
    pub in_place: InPlaceKernels<T>,
    /// Segments that are long.
    pub long_segments: LongSegments<T>,
    /// Copies between any layouts with few axes, and with many.
    pub strided: (StridedKernel<T, FEW_AXES>, StridedKernel<T, MAX_AXES>),
    /// Exchanges of units of any layout.
    pub swap: Kernel<swap_strided::Args<'static, T>>,
}

/// A kernel for copies between layouts with at most `AXES` axes.
pub(super) type StridedKernel<T, const AXES: usize> = Kernel<copy_strided::Args<'static, T, AXES>>;

/// The kernels of tiles of vectors.
pub(super) struct TileKernels<T: Plain> {
    /// For many waves: of rows that begin at multiples of a pair of lines, and of others.
    many_waves: [Kernel<TileArgs<'static, T>>; 2],
    one_wave: Kernel<TileArgs<'static, T>>,
    /// With small tiles, for less than a wave.
    small: Kernel<TileArgs<'static, T>>,
}

impl<T: Plain> TileKernels<T> {
    pub fn of(&self, waves: Waves, are_line_pair_aligned: bool) -> Kernel<TileArgs<'static, T>> {
        match waves {
            Waves::Many => self.many_waves[usize::from(!are_line_pair_aligned)],
            Waves::One => self.one_wave,
            Waves::Partial => self.small,
        }
    }
}

/// The kernels for rows that begin anywhere.
pub(super) struct UnalignedKernels<T: Plain> {
    pub tall_skinny: Kernel<tall_skinny::Args<'static, T>>,
    pub short_wide: Kernel<short_wide::Args<'static, T>>,
    pub sector_aligned: Kernel<TileArgs<'static, T>>,
    /// The second has small tiles.
    pub narrow: [Kernel<TileArgs<'static, T>>; 2],
    /// Matrices of short segments.
    pub segments: Kernel<packed_segments::Args<'static, T>>,
    /// Matrices of few rows of short segments.
    pub segments_short_wide: Kernel<packed_segments_short_wide::Args<'static, T>>,
}

/// The kernels of square matrices in place.
pub(super) struct InPlaceKernels<T: Plain> {
    pub unaligned: Kernel<InPlaceArgs<'static, T>>,
    /// The second has small tiles.
    pub aligned: [Kernel<InPlaceArgs<'static, T>>; 2],
}

/// The kernel of matrices of long segments.
pub(super) enum LongSegments<T: Plain> {
    /// Copies vectors to aligned ones of the output.
    Vectors(Kernel<copy_segments::Args<'static, T>>),
    /// Copies units.
    Units(Kernel<copy_aligned_segments::Args<'static, T>>),
}

/// The word in which narrow tiles keep units of `size` bytes.
const fn size_of_word(size: usize) -> usize {
    if size < 4 { 4 } else { size }
}

macro_rules! kernels_of {
    ($($type:ident: $long:ident by $copy:ident;)*) => {$(
        impl HasKernels for $type {
            fn kernels() -> Kernels<Self> {
                const SIZE: usize = size_of::<$type>();
                // SAFETY: no holder of the handles launches them with other arguments.
                unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<$type, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<$type, REGISTER_TILES_BLOCK>(),
                        ],
                        tiles: TileKernels {
                            many_waves: [
                                tiles::handle::<
                                    $type,
                                    { tile_elements(SIZE) },
                                    { blocks_in_many_waves(SIZE, true) },
                                >(),
                                tiles::handle::<
                                    $type,
                                    { tile_elements(SIZE) },
                                    { blocks_in_many_waves(SIZE, false) },
                                >(),
                            ],
                            one_wave: tiles::handle::<$type, { tile_elements(SIZE) }, { blocks_in_one_wave(SIZE) }>(),
                            small: tiles::handle::<
                                $type,
                                { small_tile_elements(SIZE) },
                                { blocks_of_small_tiles(SIZE) },
                            >(),
                        },
                        unaligned: unaligned!($type),
                        interleaved: interleaved!($type),
                        in_place: InPlaceKernels {
                            unaligned: in_place!($type),
                            aligned: [
                                aligned_in_place_tiles::handle::<$type, { elements_of_tile(SIZE) }>(),
                                aligned_in_place_tiles::handle::<$type, { small_in_place_elements(SIZE) }>(),
                            ],
                        },
                        long_segments: LongSegments::$long($copy::handle::<$type>()),
                        strided: (copy_strided::handle::<$type, FEW_AXES>(), copy_strided::handle::<$type, MAX_AXES>()),
                        swap: swap_strided::handle::<$type>(),
                    }
                }
            }
        }
    )*};
}

/// What differs for units of 16 bytes, which are vectors.
macro_rules! unaligned {
    (u128) => {
        None
    };
    ($type:ident) => {
        Some(UnalignedKernels {
            tall_skinny: tall_skinny::handle::<$type, { allocation(SIZE) }>(),
            short_wide: short_wide::handle::<$type, { capacity(SIZE) }>(),
            sector_aligned: sector_aligned_tiles::handle::<$type, { tile_elements(SIZE) }>(),
            narrow: [
                narrow_tiles::handle::<$type, { narrow_tile_words(size_of_word(SIZE), false) }>(),
                narrow_tiles::handle::<$type, { narrow_tile_words(size_of_word(SIZE), true) }>(),
            ],
            segments: packed_segments::handle::<$type, { capacity(SIZE) }>(),
            segments_short_wide: packed_segments_short_wide::handle::<$type, { capacity(SIZE) }>(),
        })
    };
}

macro_rules! interleaved {
    (u128) => {
        [aligned_interleaved_tiles::handle::<u128, { tile_elements(SIZE) }>(); 2]
    };
    ($type:ident) => {
        [
            interleaved_tiles::handle::<$type, { tile_elements(SIZE) }>(),
            aligned_interleaved_tiles::handle::<$type, { tile_elements(SIZE) }>(),
        ]
    };
}

macro_rules! in_place {
    (u128) => {
        aligned_in_place_tiles::handle::<u128, { elements_of_tile(SIZE) }>()
    };
    ($type:ident) => {
        in_place_tiles::handle::<$type, { elements_of_tile(SIZE) }>()
    };
}

kernels_of! {
    u8: Vectors by copy_segments;
    u16: Vectors by copy_segments;
    u32: Units by copy_aligned_segments;
    u64: Units by copy_aligned_segments;
    u128: Units by copy_aligned_segments;
}

/// Evaluates an expression with a name for the integer of a unit's size.
macro_rules! for_unit {
    ($unit:expr, |$type:ident| $call:expr) => {
        match $unit {
            Unit::One => {
                type $type = u8;
                $call
            }
            Unit::Two => {
                type $type = u16;
                $call
            }
            Unit::Four => {
                type $type = u32;
                $call
            }
            Unit::Eight => {
                type $type = u64;
                $call
            }
            Unit::Sixteen => {
                type $type = u128;
                $call
            }
        }
    };
}

pub(super) use for_unit;
