//! The kernels on a CUDA device: compared with the CPU, and bit for bit with the executor.
//!
//! Without a device every test is shown as ignored, and a line gives the reason.

mod exact_cross;
mod interop;
mod large;
mod reductions;
mod refused;
mod transposes;

use std::sync::{Arc, RwLock};
use std::time::Duration;

use half::{bf16, f16};
use libtest_mimic::{Arguments, Failed, Trial};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_kernels::rust_cuda::functions::{asserts, calls_gpu_only};
use test_kernels::{indices, out_of_bounds};
use test_support::arrays;
use test_support::by_shape::ByShape;
use test_support::calls::Calls;
use test_support::cases;
use test_support::chunks;
use test_support::exact::Data;
use test_support::one_hash;
use test_support::pairs;
use test_support::reductions::{PAIRS, dots, large as large_inputs, planned_for_other_devices};
use test_support::shape::Shape;
use test_support::soak::soak;
use test_support::tiles::TILE_CHECKS;
use test_support::transposes as transposes_of_any;
use test_support::{
    by_length, custom, device_library, exact, exact_edges, exact_sums, exact_words, executor, first_gpu, rust_cuda,
    streams,
};
use warpfold::KERNELS;
use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::num_complex::Complex32;
use warpfold::occupancy::Multiprocessor;
use warpfold::ops::Sum;
use warpfold::{Error, Gpu, KernelId, Scaling};

use self::reductions::{dot_products, lengths, reductions, sums};
use self::transposes::{permutations, transposes_by_rung, transposes_by_tiles, transposes_in_place, transposes_of};

fn main() {
    match std::env::var_os(TRAPPING) {
        Some(what) if what == ASSERTION => fail_an_assertion_here(),
        Some(_) => trap_here(),
        None => {}
    }
    let arguments = Arguments::from_args();
    let gpu = match first_gpu() {
        Ok(gpu) => {
            println!("on {}", gpu.info().map_or_else(|error| error.to_string(), |info| info.name));
            Some(Arc::new(gpu))
        }
        Err(error) => {
            println!("all tests are skipped: {error}");
            None
        }
    };
    libtest_mimic::run(&arguments, trials(gpu)).exit();
}

/// The environment variable of the child process whose kernel traps. A trap destroys the context, which all tests of a
/// process share.
const TRAPPING: &str = "WARPFOLD_TEST_TRAPPING";

/// The value of [`TRAPPING`] for the kernel whose assertion fails.
const ASSERTION: &str = "an assertion";

/// Launches a kernel whose assertion fails, and exits with 0 if the error is a trap.
fn fail_an_assertion_here() -> ! {
    let results = first_gpu().and_then(|gpu| {
        let (a, b) = (gpu.upload(&[1_u32, 2, 3])?, gpu.upload(&[1_u32, 2, 4])?);
        let mut output = gpu.zeroed::<u32>(3)?;
        // SAFETY: all have 3 elements.
        let kernel = unsafe { asserts::handle() }.with_block(32);
        gpu.launch(kernel, 1, asserts::Args { a: a.view(), b: b.view(), output: output.view_mut() })?;
        Ok(gpu.synchronize())
    });
    println!("{results:?}");
    std::process::exit(i32::from(!matches!(results, Ok(Err(Error::Trap { .. })))))
}

/// Launches a kernel with an index out of bounds, and exits with 0 if all later calls report the trap.
fn trap_here() -> ! {
    let results = first_gpu().and_then(|gpu| {
        let (x, mut out) = (gpu.upload(&[1_u32; 10])?, gpu.zeroed::<u32>(10)?);
        let (mut reducer, mut sum) = (gpu.reducer_of(Sum, Shape::all(10))?, gpu.zeroed(1)?);
        let recording = gpu.record(|| reducer.start(&x, &mut sum))?;
        let fork = gpu.fork()?;
        let arguments = out_of_bounds::Args { out: out.view_mut(), index: 10 };
        gpu.launch(out_of_bounds::handle(), 1, arguments)?;
        Ok([
            ("synchronize", gpu.synchronize().err()),
            ("the reducer", reducer.start(&x, &mut sum).err()),
            ("a recording from before", recording.start().err()),
            ("upload", gpu.upload(&[1_u32]).err()),
            ("download", gpu.download(&sum).err()),
            ("zeroed", gpu.zeroed::<u32>(1).err()),
            ("copy", gpu.copy_array(&x, &mut out).err()),
            ("sum", gpu.sum(&x).err()),
            ("record", gpu.record(|| Ok(())).err()),
            ("fork", gpu.fork().err()),
            ("time", gpu.time(|| Ok(())).err()),
            ("free_memory", gpu.free_memory().err()),
            ("a fork from before", fork.sum(&x).err()),
        ])
    });
    println!("{results:?}");
    let is_trap = |error: &Option<Error>| matches!(error, Some(Error::Trap { .. }));
    std::process::exit(i32::from(!results.is_ok_and(|results| results.iter().all(|(_, error)| is_trap(error)))))
}

/// Runs random operations in many threads, for `WARPFOLD_SOAK_SECONDS` seconds.
fn soaked(gpu: &Gpu) -> Result<(), Failed> {
    let asked = std::env::var("WARPFOLD_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let seconds = asked.unwrap_or(if is_sanitized() { 1 } else { 5 });
    let threads = if is_sanitized() { 8 } else { 64 };
    let before = gpu.free_memory()?;
    let steps = soak(gpu, threads, Duration::from_secs(seconds), false)?;
    let after = gpu.free_memory()?;
    println!("{steps} steps of {threads} threads in {seconds} s; {before} bytes were free before, {after} after");
    Ok(())
}

fn a_trap_is_reported(_: &Gpu) -> Result<(), Failed> {
    in_child("an index")
}

fn a_failed_assertion_traps(_: &Gpu) -> Result<(), Failed> {
    in_child(ASSERTION)
}

/// Runs this program in a child process with [`TRAPPING`] set.
fn in_child(what: &str) -> Result<(), Failed> {
    let child = std::process::Command::new(std::env::current_exe()?).env(TRAPPING, what).output()?;
    if child.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&child.stdout).into_owned().into()) }
}

/// A lock that each test holds shared while it runs. Tests that measure the device's free memory, or capture streams,
/// hold it exclusively.
static OTHERS: RwLock<()> = RwLock::new(());

/// The body of a test on the device.
type Test = Box<dyn Fn(&Gpu) -> Result<(), Failed> + Send>;

/// The body of a test that runs alone.
type TestAlone = fn(&Gpu) -> Result<(), Failed>;

/// Every test. Without a device they are shown as ignored.
fn trials(gpu: Option<Arc<Gpu>>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |name: String, test: Test| {
        let own = gpu.clone();
        let run = move || {
            let _others = OTHERS.read();
            own.as_deref().map_or_else(|| Err("no CUDA device".into()), &test)
        };
        trials.push(Trial::test(name, run).with_ignored_flag(gpu.is_none()));
    };
    add("many threads do everything at once".into(), Box::new(soaked));
    // A trial for each size: compute-sanitizer takes minutes for the larger ones, and runs them side by side.
    for (len, seed) in
        [0, 1, 127, 4096, 8193, 100_000, if is_sanitized() { 150_001 } else { 1_000_003 }].into_iter().zip(38..)
    {
        let check = move |gpu: &Gpu| Ok(exact::check(gpu, len, &mut SmallRng::seed_from_u64(seed))?);
        add(format!("exact sums, any data: {len} elements"), Box::new(check));
    }
    add("workspaces of exact sums are left clean".into(), Box::new(|gpu| Ok(exact::workspaces_are_left_clean(gpu)?)));
    add(
        "exact sums of elements on rare paths, at any position".into(),
        Box::new(|gpu| Ok(exact_edges::elements_on_rare_paths(gpu)?)),
    );
    add("recordings of extremes".into(), Box::new(|gpu| Ok(exact_edges::extremes_in_recordings(gpu)?)));
    for (rows, len) in [(70, 16), (37, 33), (19, 127), (7, 512), (5, 600), (1000, 250), (2, 40_000), (16_000, 250)] {
        let check = move |gpu: &Gpu| Ok(exact::rows_and_columns(gpu, rows, len, &mut SmallRng::seed_from_u64(39))?);
        add(format!("exact row and column sums: {rows}x{len} elements"), Box::new(check));
    }
    add(
        "exact row and column sums: random sizes".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(39);
            for _ in 0..if is_sanitized() { 3 } else { 100 } {
                let (rows, len) = (source.random_range(1..200), source.random_range(0..2000));
                exact::rows_and_columns(gpu, rows, len, &mut source)?;
            }
            Ok(())
        }),
    );
    for trials in [
        exact_cross::trials::<f32>(),
        exact_cross::trials::<f64>(),
        exact_cross::trials::<f16>(),
        exact_cross::trials::<bf16>(),
    ] {
        trials.into_iter().for_each(|(name, test)| add(name, test));
    }
    add(
        "exact row sums, few elements".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(41);
            for (rows, len) in [(600, 2), (1030, 3), (5000, 4), (66_000, 5)] {
                exact::rows_and_columns(gpu, rows, len, &mut source)?;
            }
            for len in if is_sanitized() { 12..13 } else { 6..42 } {
                exact::rows_and_columns(gpu, (1 << 16) + source.random_range(0..1500), len, &mut source)?;
            }
            Ok(())
        }),
    );
    add(
        "exact column sums".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(40);
            for (batches, rows, columns) in [
                (1, 3, 1030),
                (1, 16, 6000),
                (1, 200, 700),
                (3, 33, 9),
                (1, 1500, 7),
                (1, 20_000, 2),
                (1, 100_000, 1),
                (1, 20_000, 16),
                (1, 3000, 127),
            ] {
                exact::columns(gpu, batches, rows, columns, &mut source)?;
            }
            for _ in 0..if is_sanitized() { 3 } else { 60 } {
                let (rows, columns) = (source.random_range(1..3000), source.random_range(1..150));
                exact::columns(gpu, source.random_range(1..4), rows, columns, &mut source)?;
                let (rows, columns) = (source.random_range(1..40), source.random_range(500..3000));
                exact::columns(gpu, source.random_range(1..4), rows, columns, &mut source)?;
            }
            Ok(())
        }),
    );
    add(
        "exact segment sums".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(41);
            for (count, most) in
                if is_sanitized() { [(500, 200), (3, 100_000)] } else { [(100_000, 40), (9, 1_000_000)] }
            {
                let lengths = |_: usize, source: &mut SmallRng| -> Vec<usize> {
                    (0..count).map(|_| source.random_range(0..most)).collect()
                };
                exact::segments(gpu, &lengths, &[Data::Normal], &mut source)?;
            }
            for _ in 0..if is_sanitized() { 2 } else { 60 } {
                // A few long ones among many short ones.
                let any = |_: usize, source: &mut SmallRng| -> Vec<usize> {
                    let most = source.random_range(2.0..20.0);
                    (0..200).map(|_| f64::exp2(source.random::<f64>().powi(4) * most) as usize - 1).collect()
                };
                exact::segments(gpu, &any, &exact::ALL, &mut source)?;
            }
            Ok(exact::segments_leave_workspaces_clean(gpu)?)
        }),
    );
    add(
        "exact sums that stay on the device".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(42);
            for len in [0, 1, 127, 4096, if is_sanitized() { 50_001 } else { 300_003 }] {
                exact_sums::parts(gpu, len, &mut source)?;
            }
            for (outputs, most) in [(0, 5), (1, 30_000), (3, 9000), (24, 40), (700, 600), (5000, 70)] {
                let most = if is_sanitized() { most / 10 + 1 } else { most };
                exact_sums::shapes(gpu, outputs, most, &mut source)?;
            }
            for _ in 0..if is_sanitized() { 3 } else { 20 } {
                let outputs = source.random_range(1..300);
                exact_sums::shapes(gpu, outputs, source.random_range(1..2000), &mut source)?;
            }
            exact_sums::errors(gpu)?;
            exact_sums::recorded(&gpu.fork()?)?;
            Ok(exact_sums::many_additions(gpu, if is_sanitized() { 20 } else { 1000 })?)
        }),
    );
    add(
        "sums of chunks".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(63);
            for (len, chunk) in [(0, None), (1, Some(1)), (5000, Some(1)), (300_003, Some(7)), (300_003, None)] {
                chunks::chunks(gpu, len, chunk, &mut source)?;
            }
            for (rows, columns) in [(5, 1), (1000, 33), (7, 100_000)] {
                chunks::columns(gpu, rows, columns, &mut source)?;
            }
            if is_sanitized() {
                return Ok(());
            }
            // Several buffers of 16 MiB.
            for chunk in [Some(1000), Some(1 << 20), Some(1 << 24), None] {
                chunks::chunks_of::<f32>(gpu, Data::AnyFinite, (1 << 25) + 5, chunk, &mut source)?;
            }
            Ok(chunks::chunks_of::<f64>(gpu, Data::AnyFinite, (1 << 24) + 5, Some(1 << 23), &mut source)?)
        }),
    );
    add(
        "one hash by every way".into(),
        Box::new(|gpu| {
            one_hash::on_device(gpu, one_hash::LEAST)?;
            if is_sanitized() { Ok(()) } else { Ok(one_hash::on_device(gpu, one_hash::MOST)?) }
        }),
    );
    add(
        "exact sums of products that stay on the device, and words of sums".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(46);
            for (rows, columns) in
                [(0, 5), (5, 0), (1, 1), (1, 300_003), (3000, 1), (400, 700), (7, 100_000), (5000, 3)]
            {
                let (rows, columns) = if is_sanitized() { (rows.min(40), columns.min(3000)) } else { (rows, columns) };
                exact_words::products(gpu, rows, columns, &mut source)?;
            }
            for _ in 0..if is_sanitized() { 3 } else { 20 } {
                exact_words::products(gpu, source.random_range(1..60), source.random_range(1..3000), &mut source)?;
            }
            for len in [1, 3, if is_sanitized() { 300 } else { 3000 }] {
                exact_words::all_reduce(gpu, len, &mut source)?;
            }
            exact_words::many_ranks(gpu)?;
            Ok(exact_words::errors(gpu)?)
        }),
    );
    for data in exact::ALL {
        let check = move |gpu: &Gpu| {
            let mut source = SmallRng::seed_from_u64(64);
            let most = if is_sanitized() { 4000 } else { usize::MAX };
            for (rows, columns) in custom::SHAPES.into_iter().filter(|(rows, columns)| rows * columns <= most) {
                custom::check(gpu, rows, columns, data, &mut source)?;
            }
            Ok(())
        };
        add(format!("custom operators: {data:?}"), Box::new(check));
    }
    add(
        "custom operators keep the order of built-in ones".into(),
        Box::new(|gpu| {
            let mut source = SmallRng::seed_from_u64(65);
            for (rows, columns) in custom::SHAPES {
                custom::order_of_products(gpu, rows, columns, &mut source)?;
            }
            custom::fields_of_reducers(&gpu.fork()?, 30, 500, &mut source)?;
            Ok(custom::errors(gpu)?)
        }),
    );
    for (name, run) in device_library::RUNS {
        add(format!("device library: {name}"), Box::new(move |gpu| same_as_executor(gpu, run)));
    }
    for (name, run) in rust_cuda::RUNS.into_iter().chain(rust_cuda::FLOAT_RUNS) {
        add(format!("as for Rust-CUDA: {name}"), Box::new(move |gpu| same_as_executor(gpu, run)));
    }
    add("as for Rust-CUDA: a function for GPUs only".into(), Box::new(gpu_only));
    for rung in ReduceRung::all() {
        add(format!("sum of f32 by {}", rung.name()), Box::new(move |gpu| sums::<f32>(gpu, rung)));
        if !rung.is_exact() {
            add(format!("sum of i32 by {}", rung.name()), Box::new(move |gpu| sums::<i32>(gpu, rung)));
        }
    }
    for rung in ReduceRung::SHARED {
        add(format!("sum of f64 by {}", rung.name()), Box::new(move |gpu| sums::<f64>(gpu, rung)));
        if !rung.is_exact() {
            add(format!("sum of i64 by {}", rung.name()), Box::new(move |gpu| sums::<i64>(gpu, rung)));
        }
    }
    for rung in ControlFlowRung::ALL {
        add(format!("control flow: {}", rung.name()), Box::new(move |gpu| control_flow(gpu, rung)));
    }
    add("control flow: the warps of a cube".into(), Box::new(warps_of_cube));
    for rung in TransposeRung::ALL {
        add(format!("transpose by {}", rung.name()), Box::new(move |gpu| transposes_by_rung(gpu, rung)));
    }
    for (name, check) in transposes_of_any::CHECKS {
        add(format!("transpose of {name}"), Box::new(move |gpu| transposes_of(gpu, check)));
    }
    for &(name, check, _) in TILE_CHECKS {
        add(format!("transpose of {name}"), Box::new(move |gpu| transposes_by_tiles(gpu, check)));
    }
    for (name, check) in transposes_of_any::SCALED_CHECKS {
        add(format!("transpose of scaled {name}"), Box::new(move |gpu| transposes_of(gpu, check)));
    }
    for (name, check) in transposes_of_any::IN_PLACE_CHECKS {
        add(format!("transpose in place of {name}"), Box::new(move |gpu| transposes_in_place(gpu, check)));
    }
    for (name, check) in transposes_of_any::PERMUTE_CHECKS {
        add(format!("permutations of {name}"), Box::new(move |gpu| permutations(gpu, check)));
    }
    for (name, check) in arrays::CHECKS {
        let run = move |gpu: &Gpu| {
            let (times, most) = if is_sanitized() { (20, 3000) } else { (400, 300_000) };
            (0..times)
                .try_for_each(|i: u32| check(gpu, rand::random(), if i.is_multiple_of(2) { 500 } else { most }))?;
            Ok(())
        };
        add(format!("copies of arrays of {name}"), Box::new(run));
    }
    add(
        "reductions along any axes".into(),
        Box::new(|gpu| {
            let (times, most) = if is_sanitized() { (5, 3000) } else { (400, 300_000) };
            let of = |i: u32| arrays::check_reduced(gpu, rand::random(), if i.is_multiple_of(2) { 500 } else { most });
            Ok((0..times).try_for_each(of)?)
        }),
    );
    add(
        "dot products along any axes".into(),
        Box::new(|gpu| {
            let (times, most) = if is_sanitized() { (10, 3000) } else { (400, 300_000) };
            let of = |i: u32| pairs::check_pairs(gpu, rand::random(), if i.is_multiple_of(2) { 500 } else { most });
            Ok((0..times).try_for_each(of)?)
        }),
    );
    add("computed cases".into(), Box::new(|gpu| Ok(cases::check_cases(gpu)?)));
    add("copies of twenty axes".into(), Box::new(copies_of_twenty_axes));
    for checks in &transposes_of_any::EVERY_SIZE {
        let run = move |gpu: &Gpu| {
            let sides = [(2, 3), (19, 7), (33, 40), (130, 257), (1000, 513)];
            for (rows, columns) in sides.into_iter().take(if is_sanitized() { 3 } else { sides.len() }) {
                checks.run(gpu, rows, columns, rand::random())?;
            }
            Ok(())
        };
        add(format!("every transpose of elements of {} bytes", checks.size), Box::new(run));
    }
    add("occupancy equals the driver's".into(), Box::new(occupancies));
    add("recordings".into(), Box::new(|gpu| streams::recordings(gpu).map_err(Failed::from)));
    add("recordings of each kind".into(), Box::new(|gpu| streams::recordings_of_each_kind(gpu).map_err(Failed::from)));
    add(
        "recordings of exact sums".into(),
        Box::new(|gpu| streams::recordings_of_exact_sums(gpu).map_err(Failed::from)),
    );
    add("memory that was freed".into(), Box::new(|gpu| streams::freed_memory(gpu).map_err(Failed::from)));
    add(
        "64 threads with a stream each".into(),
        Box::new(|gpu| {
            let (threads, seconds) = if is_sanitized() { (16, 1) } else { (64, 60) };
            streams::threads(gpu, threads, Duration::from_secs(seconds)).map_err(Failed::from)
        }),
    );
    for pair in PAIRS {
        let name = format!("reduction: {} of {}", pair.operator.name(), pair.dtype);
        add(name, Box::new(move |gpu| reductions(gpu, pair)));
    }
    let special = if is_sanitized() { 200_003 } else { (1 << 24) + 3 };
    add(
        "reductions of infinities and NaN".into(),
        Box::new(move |gpu| large_inputs::special(gpu, special).map_err(Failed::from)),
    );
    if !is_sanitized() {
        add(
            "ten million empty segments".into(),
            Box::new(|gpu| large_inputs::empty_segments(gpu).map_err(Failed::from)),
        );
    }
    let elements = if is_sanitized() { 20_000 } else { 60_000 };
    add(
        "results for any number of multiprocessors".into(),
        Box::new(move |gpu| Ok(planned_for_other_devices(gpu, elements)?)),
    );
    add("products of rows of one length".into(), Box::new(|gpu| Ok(by_length::products_of_rows(gpu)?)));
    let rows = if is_sanitized() { 10_000 } else { 1_000_000 };
    add(format!("a row's product among {rows} rows"), Box::new(move |gpu| Ok(by_length::products_among(gpu, rows)?)));
    add("products of columns of one length".into(), Box::new(|gpu| Ok(by_length::products_of_columns(gpu)?)));
    add("pairwise sums of long inputs".into(), Box::new(|gpu| Ok(by_length::long_pairwise_sums(gpu)?)));
    for &(dtype, check) in dots::CHECKS {
        add(format!("dot product of {dtype}"), Box::new(move |gpu| dot_products(gpu, check)));
    }
    add("out of memory is only an error".into(), Box::new(out_of_memory));
    if !is_sanitized() {
        add("an index outside of a view traps, and is reported".into(), Box::new(a_trap_is_reported));
        add("an assertion that fails traps".into(), Box::new(a_failed_assertion_traps));
    }
    add("an invalid launch is refused".into(), Box::new(refused_launches));
    add("PTX that the driver refuses is an error".into(), Box::new(refused::refused_ptx));
    if !is_sanitized() {
        trials.extend(large::trials(gpu.as_ref()));
    }
    // A test of captures is alone, because another thread that allocates would end them.
    let alone: [(&str, TestAlone); 6] = [
        ("10,000 calls leave no memory behind", no_leaks),
        ("other libraries: borrowed streams are in order", interop::borrowed_streams_are_in_order),
        ("other libraries: the default stream is in order", interop::the_default_stream_is_in_order),
        ("other libraries: handles wait for each other", interop::handles_wait_for_each_other),
        ("other libraries: captured sums are replayed", interop::captured_sums_are_replayed),
        ("other libraries: wrong memory and streams are refused", interop::wrong_memory_and_streams_are_refused),
    ];
    for (name, test) in alone {
        let own = gpu.clone();
        let run = move || {
            let _alone = OTHERS.write();
            own.as_deref().map_or_else(|| Err("no CUDA device".into()), test)
        };
        trials.push(Trial::test(name, run).with_ignored_flag(gpu.is_none()));
    }
    trials
}

/// Smaller inputs under compute-sanitizer, which slows kernels down a hundred times.
fn is_sanitized() -> bool {
    std::env::var_os("WARPFOLD_SANITIZER").is_some()
}

fn same_as_executor(gpu: &Gpu, run: device_library::Run) -> Result<(), Failed> {
    let (found, expected) = (run(gpu)?, run(&executor())?);
    if let Some(at) = (0..expected.len().max(found.len())).find(|&i| found.get(i) != expected.get(i)) {
        let (found, expected) = (found.get(at), expected.get(at));
        return Err(format!("word {at} is {found:x?} on the GPU and {expected:x?} in the executor").into());
    }
    Ok(())
}

/// A function that has no code for the CPU.
fn gpu_only(gpu: &Gpu) -> Result<(), Failed> {
    let mut output = gpu.zeroed::<u32>(64)?;
    // SAFETY: a word for each thread.
    let kernel = unsafe { calls_gpu_only::handle() }.with_block(32);
    gpu.launch(kernel, 2, calls_gpu_only::Args { output: output.view_mut() })?;
    let found = gpu.download(&output)?;
    if found.iter().copied().eq(1..=64) { Ok(()) } else { Err(format!("{found:?}").into()) }
}

fn control_flow(gpu: &Gpu, rung: ControlFlowRung) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    for len in lengths() {
        let words: Vec<u32> = (0..len).map(|_| source.random()).collect();
        let mut result = gpu.zeroed::<u32>(len)?;
        rung.start(gpu, &gpu.upload(&words)?, &mut result)?;
        let (found, expected) = (gpu.download(&result)?, rung.expected(&words));
        if let Some(i) = (0..len).find(|&i| found[i] != expected[i]) {
            return Err(format!("{len} numbers: number {i} is {}, should be {}", found[i], expected[i]).into());
        }
    }
    Ok(())
}

fn warps_of_cube(gpu: &Gpu) -> Result<(), Failed> {
    if test_support::warps_of_cube(gpu)? { Ok(()) } else { Err("threads are not in warps as CUDA says".into()) }
}

/// Axes of two elements in orders in which none can be merged, as tensor networks have them, also scaled.
fn copies_of_twenty_axes(gpu: &Gpu) -> Result<(), Failed> {
    let rank = if is_sanitized() { 12 } else { 20 };
    let numbers: Vec<u32> = (0..1 << rank).collect();
    let scaled: Vec<Complex32> = numbers.iter().map(|&i| Complex32::new(i as f32, 1.0)).collect();
    let (x, z) = (gpu.upload(&numbers)?.reshape(&vec![2; rank])?, gpu.upload(&scaled)?.reshape(&vec![2; rank])?);
    for step in [7, 11, 13] {
        let axes: Vec<isize> = (0..rank).map(|axis| (axis * step % rank) as isize).collect();
        let permuted = x.view().permute_axes(&axes)?;
        let positions = arrays::positions(permuted.layout());
        let expected: Vec<u32> = positions.iter().map(|&at| at as u32).collect();
        if gpu.download(&gpu.contiguous(permuted)?)? != expected {
            return Err(format!("axes {axes:?} are permuted wrongly").into());
        }
        let mut output = gpu.zeroed::<Complex32>(1 << rank)?.reshape(&vec![2; rank])?;
        gpu.copy_scaled(Scaling::by(Complex32::i()).and_conjugate(), z.view().permute_axes(&axes)?, &mut output)?;
        let expected: Vec<Complex32> = positions.iter().map(|&at| Complex32::i() * scaled[at].conj()).collect();
        if gpu.download(&output)? != expected {
            return Err(format!("axes {axes:?} are scaled wrongly").into());
        }
    }
    Ok(())
}

fn occupancies(gpu: &Gpu) -> Result<(), Failed> {
    let info = gpu.info()?;
    let own = info.multiprocessor.ok_or("a CUDA device has multiprocessors")?;
    if let Some(known) = Multiprocessor::of(own.compute)
        && known != own
    {
        return Err(format!("the table has {known:?}, the device is {own:?}").into());
    }
    for entry in KERNELS.entries()? {
        let ptx = KERNELS.ptx(entry, own.compute)?;
        let fixed: Option<u32> = ptx.lines().find_map(|line| {
            line.strip_prefix(".reqntid ")?.split(", ").map(str::parse::<u32>).product::<Result<u32, _>>().ok()
        });
        for threads in fixed.map_or(vec![64, 256, 1024], |fixed| vec![fixed]) {
            let id = KernelId { library: KERNELS.name(), entry };
            let driver = gpu.kernel_occupancy(id, threads)?.ok_or("a CUDA device knows")?;
            let computed = own.occupancy(driver.resources);
            if computed.blocks != driver.blocks {
                let message = format!("{entry} of {threads}: {computed:?}, the driver says {driver:?}");
                return Err(message.into());
            }
        }
    }
    Ok(())
}

fn out_of_memory(gpu: &Gpu) -> Result<(), Failed> {
    for bytes in [1 << 48, usize::MAX] {
        match gpu.zeroed::<u8>(bytes) {
            Err(Error::OutOfMemory { requested, free, .. }) if requested == bytes && free > 0 => {}
            other => return Err(format!("expected `OutOfMemory` of {bytes} bytes, got {other:?}").into()),
        }
    }
    let sum = gpu.sum(&gpu.upload(&[1.0_f32, 2.0])?)?;
    if sum == 3.0 { Ok(()) } else { Err(format!("afterwards 1 + 2 is {sum}").into()) }
}

/// Checks that calls of every kind leave no device memory allocated.
fn no_leaks(gpu: &Gpu) -> Result<(), Failed> {
    let mut calls = Calls::new(gpu, 0)?;
    calls.check(gpu)?;
    let before = gpu.free_memory()?;
    // A dozen calls each.
    for _ in 0..if is_sanitized() { 3 } else { 1000 } {
        calls.check(gpu)?;
    }
    let after = gpu.free_memory()?;
    if after < before { Err(format!("{before} bytes were free before, {after} after").into()) } else { Ok(()) }
}

fn refused_launches(gpu: &Gpu) -> Result<(), Failed> {
    let mut out = gpu.zeroed::<u32>(test_kernels::INDEX_WORDS)?;
    let kernel = indices::handle();
    for (grid, block) in [
        ((0, 1, 1), (1, 1, 1)),
        ((1, 65_536, 1), (1, 1, 1)),
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (1, 1, 65)),
        ((1, 1, 1), (0, 1, 1)),
    ] {
        match gpu.launch(kernel.with_block(block), grid, indices::Args { out: out.view_mut() }) {
            Err(Error::InvalidLaunch { .. }) => {}
            other => {
                return Err(format!("{grid:?} blocks of {block:?}: expected `InvalidLaunch`, got {other:?}").into());
            }
        }
    }
    let mut other = executor().zeroed::<u32>(test_kernels::INDEX_WORDS)?;
    let found = gpu.launch(kernel.with_block(1), 1, indices::Args { out: other.view_mut() });
    matches!(found, Err(Error::OtherDevice { .. })).then_some(()).ok_or_else(|| format!("{found:?}").into())
}
