//! Calls of every function of warpfold that may call the driver.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use test_kernels::{INDEX_WORDS, indices};
use test_support::TEST_KERNELS;
use warpfold::exact::ExactSum;
use warpfold::{Array, Error, Gpu, Layout, Scaling, ops};

use crate::witness::{Allowed, Witness, stream_of};

/// The driver's code for memory that runs out.
const OUT_OF_MEMORY: u32 = 2;

/// The types whose functions may call the driver.
const TYPES: [&str; 7] =
    ["ExactStates", "Gpu", "Recording", "Reducer", "SegmentReducer", "StagingBuffer", "StagingBuffers"];

/// The functions of these types that do not.
const WITHOUT_DRIVER: [&str; 17] = [
    "capacity",
    "clone",
    "cuda_stream",
    "deref",
    "deref_mut",
    "elements",
    "fmt",
    "is_cuda",
    "is_empty",
    "layouts",
    "len",
    "max_count",
    "output_extents",
    "segments",
    "simt",
    "simt_with",
    "words",
];

/// The public functions that may call the driver, from the list of the API: `Gpu::sum`.
pub fn public_functions() -> Vec<String> {
    let name = |line: &str| {
        let mut depth = 0;
        let is_outside = |&c: &char| {
            depth += i32::from(c == '<');
            let is_outside = depth == 0;
            depth -= i32::from(c == '>');
            is_outside
        };
        let path: String =
            line.strip_prefix("pub fn warpfold::")?.split('(').next()?.chars().filter(is_outside).collect();
        let (of_type, function) = path.split_once("::")?;
        (TYPES.contains(&of_type) && !WITHOUT_DRIVER.contains(&function)).then_some(path)
    };
    let functions: Vec<String> = include_str!("../../xtask/api/warpfold.txt").lines().filter_map(name).collect();
    assert!(functions.iter().any(|name| name == "ExactStates::means_into"), "the list has another form: {functions:?}");
    functions
}

/// Calls every function that needs a handle only, and verifies each call.
pub fn call_with(witness: &mut Witness, gpu: &Gpu) {
    copies(witness, gpu);
    reductions(witness, gpu);
    exact_sums(witness, gpu);
    chunks(witness, gpu);
    recordings(witness, gpu);
}

/// Calls every function, and verifies each call.
pub fn call_everything(witness: &mut Witness) {
    handles(witness);
    let gpu = Gpu::with_libraries(0, &[&TEST_KERNELS]).unwrap();
    let stream = stream_of(&gpu);
    witness.verify("Gpu::with_libraries", stream);
    call_with(witness, &gpu);
    let x = gpu.upload(&[1.0_f32; 100]).unwrap();
    let mut out = gpu.zeroed(64 * INDEX_WORDS).unwrap();
    let kernel = indices::handle().with_block(64);
    let id = kernel.id();
    gpu.launch(kernel, 1, indices::Args { out: out.view_mut() }).unwrap();
    witness.verify("Gpu::launch", stream);
    gpu.kernel_occupancy(id, 64).unwrap();
    witness.verify("Gpu::kernel_occupancy", stream);
    gpu.time(|| gpu.sum(&x).map(drop)).unwrap();
    witness.verify("Gpu::time", stream);
    assert!(matches!(gpu.zeroed::<u8>(1 << 40), Err(Error::OutOfMemory { .. })));
    witness.verify("Gpu::zeroed", Allowed { code: Some(OUT_OF_MEMORY), ..stream.into() });
    assert!(gpu.profile(|| Ok(())).is_err());
    witness.verify("Gpu::profile", stream);
    drop((x, out));
    witness.verify("drop of buffers", stream);
    // The last handle of the device, on a thread that has never called the driver.
    std::thread::spawn(move || drop(gpu)).join().unwrap();
    witness.verify("drop of a handle", stream);
}

fn handles(witness: &mut Witness) {
    let gpu = Gpu::new(0).unwrap();
    let stream = stream_of(&gpu);
    witness.verify("Gpu::new", stream);
    gpu.info().unwrap();
    witness.verify("Gpu::info", stream);
    gpu.free_memory().unwrap();
    witness.verify("Gpu::free_memory", stream);
    gpu.synchronize().unwrap();
    witness.verify("Gpu::synchronize", stream);
    let x = gpu.upload(&[5.0_f32; 4]).unwrap();
    let other = gpu.fork().unwrap();
    let of_other = stream_of(&other);
    assert_ne!(stream, of_other);
    witness.verify("Gpu::fork", stream);
    // The first use of another handle's memory.
    other.sum(&x).unwrap();
    witness.verify("Gpu::sum", Allowed { waits_for: Some(stream), ..of_other.into() });
    other.sum(&x).unwrap();
    witness.verify("Gpu::sum", of_other);
    // An event is recorded in the one stream, and the other one waits for it.
    other.wait_for(&gpu).unwrap();
    witness.verify("Gpu::wait_for", Allowed { waits_for: Some(stream), ..of_other.into() });
    drop(gpu);
    witness.verify("drop of a handle", stream);
    drop(x);
    witness.verify("drop of a buffer", stream);
    drop(other);
    witness.verify("drop of a handle", of_other);
    let first = Gpu::first_or_simt().unwrap();
    witness.verify("Gpu::first_or_simt", stream_of(&first));
    let second = Gpu::first_or_simt_with_libraries(&[&TEST_KERNELS]).unwrap();
    witness.verify("Gpu::first_or_simt_with_libraries", stream_of(&second));
    let streams = [stream_of(&first), stream_of(&second)];
    drop(first);
    witness.verify("drop of a handle", streams[0]);
    drop(second);
    witness.verify("drop of a handle", streams[1]);
}

fn copies(witness: &mut Witness, gpu: &Gpu) {
    let stream = stream_of(gpu);
    let x = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap().reshape(&[2, 3]).unwrap();
    witness.verify("Gpu::upload", stream);
    let mut y = gpu.zeroed::<f32>(6).unwrap().reshape(&[3, 2]).unwrap();
    witness.verify("Gpu::zeroed", stream);
    let turned = || x.view().permute_axes(&[1, 0]).unwrap();
    gpu.copy_array(turned(), &mut y).unwrap();
    witness.verify("Gpu::copy_array", stream);
    gpu.copy_scaled(Scaling::by(2.0), turned(), &mut y).unwrap();
    witness.verify("Gpu::copy_scaled", stream);
    gpu.upload_into(&[9.0; 6], &mut y).unwrap();
    witness.verify("Gpu::upload_into", stream);
    assert_eq!(gpu.download(&y).unwrap(), [9.0; 6]);
    witness.verify("Gpu::download", stream);
    gpu.download_into(&x, &mut [0.0; 6]).unwrap();
    witness.verify("Gpu::download_into", stream);
    let copies = [gpu.contiguous(turned()).unwrap(), gpu.transpose(&x).unwrap(), gpu.permute(&x, &[1, 0]).unwrap()];
    for call in ["Gpu::contiguous", "Gpu::transpose", "Gpu::permute"] {
        witness.verify(call, stream);
    }
    let mut square = gpu.zeroed::<u64>(64 * 64).unwrap().reshape(&[64, 64]).unwrap();
    gpu.transpose_in_place(&mut square).unwrap();
    witness.verify("Gpu::transpose_in_place", stream);
    let array = Array::from_ndarray(gpu, &ndarray::array![[1, 2], [3, 4]]).unwrap();
    assert_eq!(array.to_ndarray(gpu).unwrap(), ndarray::array![[1, 2], [3, 4]].into_dyn());
    witness.verify("Array::to_ndarray", stream);
    drop((x, y, copies, square, array));
    witness.verify("drop of arrays", stream);
}

fn reductions(witness: &mut Witness, gpu: &Gpu) {
    let stream = stream_of(gpu);
    let short = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let long = gpu.zeroed::<f32>(1 << 20).unwrap();
    macro_rules! whole {
        ($($name:ident),*) => {
            $(
                for x in [&short, &long] {
                    gpu.$name(x).unwrap();
                    witness.verify(concat!("Gpu::", stringify!($name)), stream);
                }
            )*
        };
    }
    whole!(sum, product, mean, norm, min, max, min_max, argmin, argmax, any, all, count_nonzero);
    gpu.dot(&short, &short).unwrap();
    witness.verify("Gpu::dot", stream);
    gpu.reduce_all(ops::PairwiseSum, &long).unwrap();
    witness.verify("Gpu::reduce_all", stream);
    let matrix = long.reshape(&[1 << 10, 1 << 10]).unwrap();
    let mut output = gpu.zeroed::<f32>(1 << 10).unwrap();
    let layout = Layout::contiguous(&[1 << 10, 1 << 10]).unwrap();
    for axis in [0, 1] {
        gpu.reduce(ops::Max, &matrix, axis).unwrap();
        witness.verify("Gpu::reduce", stream);
        gpu.reduce_into(ops::Sum, &matrix, axis, &mut output).unwrap();
        witness.verify("Gpu::reduce_into", stream);
        let mut reducer = gpu.reducer(ops::Mean, &layout, axis).unwrap();
        witness.verify("Gpu::reducer", stream);
        reducer.start(&matrix, &mut output).unwrap();
        witness.verify("Reducer::start", stream);
        drop(reducer);
        witness.verify("drop of a reducer", stream);
    }
    let elements = matrix.into_buffer();
    let offsets = gpu.upload(&[0_u64, 10, 100_000, 1 << 20]).unwrap();
    let mut sums = gpu.zeroed::<f32>(3).unwrap();
    gpu.reduce_segments(ops::Max, &elements, &offsets).unwrap();
    witness.verify("Gpu::reduce_segments", stream);
    let mut segments = gpu.segment_reducer(ops::Sum, 3, 1 << 20).unwrap();
    witness.verify("Gpu::segment_reducer", stream);
    segments.start(&elements, &offsets, &mut sums).unwrap();
    witness.verify("SegmentReducer::start", stream);
    segments.check().unwrap();
    witness.verify("SegmentReducer::check", stream);
    drop((segments, short, elements, output, offsets, sums));
    witness.verify("drop of a segment reducer", stream);
}

fn exact_sums(witness: &mut Witness, gpu: &Gpu) {
    let stream = stream_of(gpu);
    let rows = gpu.zeroed::<f64>(3 << 10).unwrap().reshape(&[3, 1 << 10]).unwrap();
    gpu.exact_sum(&rows).unwrap();
    witness.verify("Gpu::exact_sum", stream);
    let mut sums = gpu.exact_sums::<f64>(3).unwrap();
    witness.verify("Gpu::exact_sums", stream);
    let uploaded = gpu.upload_exact_sums(&[ExactSum::<f64>::new(); 3]).unwrap();
    witness.verify("Gpu::upload_exact_sums", stream);
    sums.add(&rows, 1).unwrap();
    witness.verify("ExactStates::add", stream);
    sums.merge(&uploaded).unwrap();
    witness.verify("ExactStates::merge", stream);
    let mut values = sums.values().unwrap();
    witness.verify("ExactStates::values", stream);
    sums.means().unwrap();
    witness.verify("ExactStates::means", stream);
    sums.values_into(&mut values).unwrap();
    witness.verify("ExactStates::values_into", stream);
    sums.means_into(&mut values).unwrap();
    witness.verify("ExactStates::means_into", stream);
    sums.all_reduce(2, |_, _| Ok::<(), Error>(())).unwrap();
    witness.verify("ExactStates::all_reduce", stream);
    sums.clear().unwrap();
    witness.verify("ExactStates::clear", stream);
    sums.download().unwrap();
    witness.verify("ExactStates::download", stream);
    gpu.exact_sum_of_squares(&rows).unwrap();
    witness.verify("Gpu::exact_sum_of_squares", stream);
    gpu.exact_dot((&rows, &rows)).unwrap();
    witness.verify("Gpu::exact_dot", stream);
    let mut dots = gpu.exact_dots::<f64>(3).unwrap();
    witness.verify("Gpu::exact_dots", stream);
    dots.add_squares(&rows, 1).unwrap();
    witness.verify("ExactStates::add_squares", stream);
    dots.add_products((&rows, &rows), 1).unwrap();
    witness.verify("ExactStates::add_products", stream);
    dots.norms().unwrap();
    witness.verify("ExactStates::norms", stream);
    dots.norms_into(&mut values).unwrap();
    witness.verify("ExactStates::norms_into", stream);
    drop((rows, sums, uploaded, values, dots));
    witness.verify("drop of exact sums", stream);
}

fn chunks(witness: &mut Witness, gpu: &Gpu) {
    // The copies of chunks have a stream of their own.
    let allowed = || Allowed { has_copies: true, ..stream_of(gpu).into() };
    gpu.sum_chunks([Ok([1.0_f32; 5]), Ok([2.0; 5])]).unwrap();
    witness.verify("Gpu::sum_chunks", allowed());
    gpu.sum_squares_of_chunks([Ok([1.0_f32; 5]), Ok([2.0; 5])]).unwrap();
    witness.verify("Gpu::sum_squares_of_chunks", allowed());
    gpu.sum_chunks::<f32, [f32; 0]>([Err(std::io::Error::from(std::io::ErrorKind::TimedOut))]).unwrap_err();
    witness.verify("Gpu::sum_chunks", allowed());
    let mut sums = gpu.exact_sums::<f32>(1).unwrap();
    let mut buffers = gpu.staging_buffers::<f32>(100).unwrap();
    witness.verify("Gpu::staging_buffers", allowed());
    for _ in 0..4 {
        let buffer = buffers.next_buffer().unwrap();
        witness.verify("StagingBuffers::next_buffer", allowed());
        buffer.submit(50, |chunk| sums.add(chunk, 0)).unwrap();
        witness.verify("StagingBuffer::submit", allowed());
    }
    drop((buffers, sums));
    witness.verify("StagingBuffers::drop", allowed());
}

fn recordings(witness: &mut Witness, gpu: &Gpu) {
    let stream = stream_of(gpu);
    let x = gpu.upload(&[1.0_f32, 2.0, 3.0]).unwrap();
    let (mut copy, mut sum) = (gpu.zeroed::<f32>(3).unwrap(), gpu.zeroed::<f32>(1).unwrap());
    let mut reducer = gpu.reducer(ops::Sum, &Layout::contiguous(&[3]).unwrap(), 0).unwrap();
    witness.verify("Gpu::reducer", stream);
    // A recording has a stream of its own.
    let recorder = Cell::new(0);
    let recording = gpu.record(|| {
        recorder.set(stream_of(gpu));
        gpu.copy_array(&x, &mut copy)?;
        reducer.start(&copy, &mut sum)
    });
    let recording = recording.unwrap();
    assert_ne!(recorder.get(), stream);
    witness.verify("Gpu::record", recorder.get());
    recording.start().unwrap();
    witness.verify("Recording::start", stream);
    drop(recording);
    witness.verify("drop of a recording", stream);
    let refused = gpu.record(|| {
        recorder.set(stream_of(gpu));
        gpu.sum(&x).map(drop)
    });
    assert!(matches!(refused, Err(Error::Recording { .. })), "{refused:?}");
    witness.verify("Gpu::record", recorder.get());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        gpu.record(|| {
            recorder.set(stream_of(gpu));
            resume_unwind(Box::new("on purpose"))
        })
    }));
    assert!(panicked.is_err());
    witness.verify("Gpu::record", recorder.get());
    drop((reducer, x, copy, sum));
    witness.verify("drop of a reducer", stream);
}
