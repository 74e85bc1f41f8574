//! The exact sum of an array over several GPUs of this process: the same bits for any number of them.
//!
//! `on_nccl [RANKS]` takes one rank a GPU. With more ranks than GPUs, several share one, which NCCL allows from 2.30 on
//! if `NCCL_MULTI_RANK_GPU_ENABLE=1` is set.

use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::{env, thread};

use anyhow::{Result, anyhow, bail};
use cudarc::driver::CudaContext;
use cudarc::nccl::{Comm, Id, ReduceOp, result::NcclError};
use warpfold::exact::ExactSum;
use warpfold::{Error, Gpu, interop};

/// Numbers whose sum is right only if it is exact.
fn numbers() -> Vec<f32> {
    let number = |i: usize| [1e30, i as f32, -1e30, 1e-30][i % 4];
    (0..1_000_003).map(number).collect()
}

/// The sum over all ranks of the shards of which this rank has one. All ranks call this together.
fn sum(shard: &[f32], device: usize, (rank, ranks, id): (usize, usize, Id)) -> Result<f32> {
    let stream = CudaContext::new(device)?.new_stream()?;
    let comm = Comm::from_rank(stream.clone(), rank, ranks, id).map_err(of_nccl)?;
    // SAFETY: the handle keeps the stream as its owner, and nothing captures it.
    let gpu = unsafe { interop::on_stream_of(&Gpu::new(device as u32)?, stream.cu_stream().cast(), stream.clone())? };
    let mut sums = gpu.exact_sums::<f32>(1)?;
    sums.add(&gpu.upload(shard)?, 0)?;
    sums.all_reduce(ranks as u32, |_, words| {
        let (address, len) = (words.device_address(), words.len());
        // SAFETY: the words are borrowed mutably, and the slice is forgotten, so that they are freed by their owner.
        let mut words = ManuallyDrop::new(unsafe { stream.upgrade_device_ptr::<i64>(address, len) });
        let reduced = comm.all_reduce_in_place(&mut *words, &ReduceOp::Sum).map_err(of_nccl);
        ManuallyDrop::into_inner(words).leak();
        reduced.map(|_| ())
    })?;
    // Waits, so that the communicator ends after its work.
    Ok(gpu.download(&sums.values()?)?[0])
}

fn of_nccl(error: NcclError) -> anyhow::Error {
    anyhow!("NCCL failed: {:?}; with NCCL_DEBUG=WARN it says why", error.0)
}

fn main() -> Result<ExitCode> {
    // SAFETY: it loads a library, whose initializers are those of NCCL.
    if !unsafe { cudarc::nccl::sys::is_culib_present() } {
        eprintln!(
            "NCCL was not found: cudarc loads `libnccl.so`. Install NCCL (`pip install nvidia-nccl-cu12` has \
             `libnccl.so.2`), make a link `libnccl.so` to it, and put the link's folder into LD_LIBRARY_PATH"
        );
        return Ok(ExitCode::from(2));
    }
    let gpus = match Gpu::new(0) {
        Ok(_) => CudaContext::device_count()? as usize,
        Err(error @ (Error::NoDriver(_) | Error::NoDevice { .. })) => {
            eprintln!("NCCL needs a CUDA device: {error}");
            return Ok(ExitCode::from(2));
        }
        Err(error) => return Err(error.into()),
    };
    let ranks: usize = env::args().nth(1).map_or(Ok(gpus), |ranks| ranks.parse())?;
    if !(1..=1024).contains(&ranks) {
        bail!("{ranks} ranks: give 1 to 1024");
    }
    let (numbers, id) = (numbers(), Id::new().map_err(of_nccl)?);
    // Uneven shards: the last one is shorter, or empty.
    let shard = |rank: usize| {
        let each = numbers.len().div_ceil(ranks);
        &numbers[(rank * each).min(numbers.len())..((rank + 1) * each).min(numbers.len())]
    };
    let sums = thread::scope(|scope| {
        let of_rank = |rank: usize| scope.spawn(move || sum(shard(rank), rank % gpus, (rank, ranks, id)));
        let threads: Vec<_> = (0..ranks).map(of_rank).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank panicked")).collect::<Result<Vec<f32>>>()
    })?;
    let right = numbers.iter().copied().collect::<ExactSum<f32>>().value();
    println!("{ranks} ranks on {} GPUs: {sums:?}", gpus.min(ranks));
    println!("on the host:     {right:?}");
    Ok(ExitCode::from(u8::from(sums.iter().any(|sum| sum.to_bits() != right.to_bits()))))
}
