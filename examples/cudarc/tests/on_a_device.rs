//! The adapter on a CUDA device. A machine without one says that the test was skipped.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use on_cudarc::adapter::{self, OnCudarc};
use warpfold::{Error, Gpu, ops};

/// Numbers whose sums are only right if they are exact.
fn numbers(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| {
            if i % 3 == 0 {
                1e20
            } else if i % 3 == 1 {
                -1e20
            } else {
                i as f32
            }
        })
        .collect()
}

/// A device, or `None` without one.
fn device() -> Option<(Gpu, Arc<CudaContext>)> {
    match Gpu::new(0) {
        Ok(gpu) => Some((gpu, CudaContext::new(0).expect("cudarc has the same devices"))),
        Err(error @ (Error::NoDriver(_) | Error::NoDevice { .. })) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Keeps a stream busy, so that work which does not wait for it comes first.
fn delay(stream: &Arc<CudaStream>) {
    let block = vec![0_u8; 64 << 20];
    let mut to = stream.alloc_zeros::<u8>(block.len()).unwrap();
    (0..8).for_each(|_| stream.memcpy_htod(&block, &mut to).unwrap());
}

#[test]
fn arrays_of_cudarc_are_reduced_where_they_lie() {
    let Some((gpu, context)) = device() else { return };
    let streams = [context.default_stream(), context.new_stream().unwrap()];
    for stream in &streams {
        let on_cudarc = OnCudarc::new(&gpu, stream).unwrap();
        let data = numbers(300 * 400);
        delay(stream);
        // Uploaded after the delay, read in the order of the stream, and overwritten after it.
        let mut matrix = stream.clone_htod(&data).unwrap();
        let mut sums = stream.alloc_zeros::<f32>(300).unwrap();
        let (input, mut output) =
            (on_cudarc.read(&matrix, &[300, 400]).unwrap(), on_cudarc.write(&mut sums, &[300]).unwrap());
        on_cudarc.gpu().reduce_into(ops::Sum, input.view(), 1, output.view_mut()).unwrap();
        drop((input, output));
        stream.memset_zeros(&mut matrix).unwrap();
        let expected: Vec<f32> =
            data.chunks(400).map(|row| warpfold::exact::ExactSum::from_iter(row.iter().copied()).value()).collect();
        assert_eq!(stream.clone_dtoh(&sums).unwrap(), expected);
    }
}

#[test]
fn views_and_another_stream_are_in_order() {
    let Some((gpu, context)) = device() else { return };
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let on_second = OnCudarc::new(&gpu, &second).unwrap();
    let data = numbers(30_000);
    delay(&first);
    // Written on the first stream, and read on the second one: cudarc's events order them.
    let slice = first.clone_htod(&data).unwrap();
    let part = slice.slice(3..29_997);
    let sum = on_second.gpu().sum(on_second.read(&part, &[29_994]).unwrap().view()).unwrap();
    assert_eq!(sum, warpfold::exact::ExactSum::from_iter(data[3..29_997].iter().copied()).value());
    assert!(matches!(on_second.read(&part, &[3]), Err(Error::Length { found: 29_994, expected: 3, .. })));
}

#[test]
fn a_buffer_is_lent_to_cudarc() {
    let Some((gpu, context)) = device() else { return };
    let stream = context.new_stream().unwrap();
    let on_cudarc = OnCudarc::new(&gpu, &stream).unwrap();
    let mut buffer = on_cudarc.gpu().upload(&[1.0_f32, 2.0, 3.0]).unwrap();
    assert_eq!(stream.clone_dtoh(&*on_cudarc.lend(&mut buffer)).unwrap(), [1.0, 2.0, 3.0]);
    // The buffer frees its memory itself, and can be used again.
    assert_eq!(on_cudarc.gpu().sum(&buffer).unwrap(), 6.0);
    // SAFETY: the handle outlives the stream.
    let own = unsafe { adapter::stream_of(&gpu, &context) }.unwrap();
    let mut other = gpu.upload(&[4.0_f32, 5.0]).unwrap();
    let on_own = OnCudarc::new(&gpu, &own).unwrap();
    assert_eq!(own.clone_dtoh(&*on_own.lend(&mut other)).unwrap(), [4.0, 5.0]);
}
