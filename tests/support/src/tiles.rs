//! Direct launches of the kernel that transposes tiles of vectors. The library uses it only for matrices of several
//! MiB.

use cuda_std::launch::Kernel;
use kernels::transpose::tiled::block_tile::micro_tiles;
use kernels::transpose::tiled::kernels::{TileArgs, tiles};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::{Error, Gpu, Plain};

/// Transposes a matrix of whole vectors, with numbers from a seed, and compares. Its rows are split into 1, 2, 4 and 8
/// interleaved panels.
pub type TileCheck = fn(&Gpu, usize, usize, u64) -> Result<(), String>;

/// The number of additional passes through shared memory because of bank conflicts.
pub type Conflicts = fn(&Gpu, usize, usize) -> Result<u64, Error>;

macro_rules! instances {
    ($($type:ty, $len:literal, $blocks:literal;)*) => {
        /// One check for each element size, tile size, and number of resident blocks.
        pub static TILE_CHECKS: &[(&str, TileCheck, Conflicts)] = &[$((
            concat!(stringify!($type), " by tiles of ", $len, ", blocks ", $blocks),
            |gpu, rows, columns, seed| {
                // SAFETY: `run_tiles` launches it with a tile's arguments for the whole matrix.
                let tile = (unsafe { tiles::handle::<$type, $len, $blocks>() }, $len);
                let number = |bits: u128| bits as $type;
                check(gpu, tile, [rows, columns], seed, number)
            },
            |gpu, rows, columns| {
                let numbers = vec![<$type>::default(); rows * columns];
                // SAFETY: `run_tiles` launches it with a tile's arguments for the whole matrix.
                let tile = (unsafe { tiles::handle::<$type, $len, $blocks>() }, $len);
                let profile = gpu.profile(|| run_tiles(gpu, tile, [rows, columns], 0, &numbers).map(|_| ()))?;
                Ok(profile.bank_conflicts())
            },
        )),*];
    };
}

instances! {
    u8, 32768, 5;
    u8, 8192, 10;
    u16, 16384, 4;
    u16, 16384, 5;
    u16, 4096, 8;
    u32, 4096, 4;
    u32, 4096, 8;
    u32, 1024, 32;
    u64, 2048, 4;
    u64, 2048, 8;
    u64, 512, 16;
    u128, 1024, 4;
    u128, 1024, 8;
    u128, 256, 8;
}

/// The transpose by a kernel with tiles of `len` elements, and with `2^partitions` interleaved panels.
fn run_tiles<T: Plain>(
    gpu: &Gpu,
    (kernel, len): (Kernel<TileArgs<'static, T>>, usize),
    [rows, columns]: [usize; 2],
    partitions: u32,
    numbers: &[T],
) -> Result<Vec<T>, Error> {
    let (input, mut output) = (gpu.upload(numbers)?, gpu.upload(&vec![numbers[0]; numbers.len()])?);
    let (side, all) = (16 / size_of::<T>(), micro_tiles(len, size_of::<T>()).ilog2());
    let across = all / 2;
    let (width, height) = (side << across, side << (all - across));
    let (tiles_down, tiles_across) = (rows.div_ceil(height) as u32, columns.div_ceil(width) as u32);
    let arguments = TileArgs {
        input: input.view(),
        output: output.view_mut(),
        rows,
        columns,
        input_pitch: columns,
        output_pitch: rows,
        input_batch_pitch: rows * columns,
        output_batch_pitch: rows * columns,
        log2_across: across,
        tiles_down,
        tiles_across,
        log2_partitions: partitions,
    };
    gpu.launch(kernel, tiles_down * tiles_across, arguments)?;
    gpu.download(&output)
}

fn check<T: Plain + PartialEq>(
    gpu: &Gpu,
    tile: (Kernel<TileArgs<'static, T>>, usize),
    [rows, columns]: [usize; 2],
    seed: u64,
    number: impl Fn(u128) -> T,
) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(seed);
    let numbers: Vec<T> = (0..rows * columns).map(|_| number(source.random())).collect();
    for partitions in 0..4 {
        let found = run_tiles(gpu, tile, [rows, columns], partitions, &numbers).map_err(|error| error.to_string())?;
        let is_right = |place: usize| found[place] == numbers[place % rows * columns + place / rows];
        if let Some(place) = (0..rows * columns).find(|&place| !is_right(place)) {
            let len = tile.1;
            return Err(format!(
                "{rows} x {columns}, tiles of {len}, 2^{partitions} partitions: element {place} is wrong"
            ));
        }
    }
    Ok(())
}
