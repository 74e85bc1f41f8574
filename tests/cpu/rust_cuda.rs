//! Kernels of the kinds that Rust-CUDA has, in the executor with all of its checks.

use test_kernels::rust_cuda as k;
use test_support::rust_cuda::{FLOAT_RUNS, RUNS};
use warpfold::{Check, Error, Gpu, Schedule, SimtOptions};

#[test]
fn every_kind_writes_what_it_should() {
    let gpu = Gpu::simt();
    for (name, run) in RUNS {
        run(&gpu).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn functions_of_floats_are_those_of_std() {
    let gpu = Gpu::simt();
    for (name, run) in FLOAT_RUNS {
        let words = run(&gpu).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(words.len() > 500, "{name}");
    }
}

/// The order of the threads changes nothing.
#[test]
fn every_kind_writes_the_same_in_a_random_order() {
    let (in_order, random) =
        (Gpu::simt(), Gpu::simt_with(SimtOptions { schedule: Schedule::Seed(11), ..SimtOptions::default() }));
    for (name, run) in RUNS {
        assert_eq!(run(&in_order).unwrap(), run(&random).unwrap(), "{name}");
    }
}

/// The message of a launch that fails.
fn failure(result: Result<(), Error>) -> String {
    result.expect_err("the launch fails").to_string()
}

#[test]
fn an_assertion_that_fails_is_a_fault_with_both_values() {
    let gpu = Gpu::simt();
    let (a, b) = (gpu.upload(&[1_u32, 2, 3]).unwrap(), gpu.upload(&[1_u32, 2, 4]).unwrap());
    let mut output = gpu.zeroed::<u32>(3).unwrap();
    // SAFETY: all have 3 elements.
    let kernel = unsafe { k::functions::asserts::handle() }.with_block(32);
    let arguments = k::functions::asserts::Args { a: a.view(), b: b.view(), output: output.view_mut() };
    let message = failure(gpu.launch(kernel, 1, arguments));
    for part in ["`asserts`", "thread (2, 0, 0) panicked", "element 2", "left: 3", "right: 4", "functions.rs"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn a_function_for_gpus_only_is_a_fault_that_names_it() {
    let gpu = Gpu::simt();
    let mut output = gpu.zeroed::<u32>(32).unwrap();
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::functions::calls_gpu_only::handle() }.with_block(32);
    let arguments = k::functions::calls_gpu_only::Args { output: output.view_mut() };
    let message = failure(gpu.launch(kernel, 1, arguments));
    assert!(message.contains("`only_there` is `#[gpu_only]`: it has no code for the CPU"), "{message}");
}

#[test]
fn a_place_that_is_kept_over_a_barrier_is_a_fault() {
    let gpu = Gpu::simt();
    let mut output = gpu.zeroed::<u32>(32).unwrap();
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::shared::a_place_kept_too_long::handle() }.with_block(32);
    let arguments = k::shared::a_place_kept_too_long::Args { output: output.view_mut() };
    let message = failure(gpu.launch(kernel, 1, arguments));
    for part in ["the store of this element is older than a barrier", "write `*array.add(i)` in one statement"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(message.contains("shared.rs"), "{message}");
}

/// Accesses through a place are reported with the line that created the place.
#[test]
fn races_by_places_are_found() {
    let gpu = Gpu::simt();
    let mut output = gpu.zeroed::<u32>(64).unwrap();
    // SAFETY: a word for each thread.
    let kernel = unsafe { k::shared::a_race_by_places::handle() }.with_block(64);
    let arguments = k::shared::a_race_by_places::Args { output: output.view_mut() };
    let error = gpu.launch(kernel, 1, arguments).expect_err("a race");
    let Error::Fault(fault) = &error else { panic!("{error}") };
    assert!(fault.findings().is_some_and(|findings| findings.has(Check::SharedRace)), "{error}");
    assert!(error.to_string().contains("tests/kernels/src/rust_cuda/shared.rs"), "{error}");
}

#[test]
fn an_atomic_of_a_block_that_all_blocks_use_is_found() {
    let gpu = Gpu::simt();
    let mut counter = gpu.zeroed::<u32>(1).unwrap();
    let kernel = k::atomics::too_narrow_a_scope::handle().with_block(32);
    let arguments = k::atomics::too_narrow_a_scope::Args { counter: counter.view_mut() };
    let error = gpu.launch(kernel, 2, arguments).expect_err("the scope is too narrow");
    let Error::Fault(fault) = &error else { panic!("{error}") };
    assert!(fault.findings().is_some_and(|findings| findings.has(Check::Scope)), "{error}");
    assert!(error.to_string().contains("tests/kernels/src/rust_cuda/atomics.rs"), "{error}");
}

#[test]
fn an_index_past_the_end_of_shared_memory_is_named() {
    let gpu = Gpu::simt();
    let mut d = gpu.zeroed::<f64>(40).unwrap();
    // SAFETY: as many elements as threads; too little shared memory, which is checked.
    let kernel = unsafe { k::shared::reverse_array_dynamic::handle() }.with_block(40).with_dynamic_shared(32 * 8);
    let arguments = k::shared::reverse_array_dynamic::Args { d: d.view_mut(), n: 40 };
    let message = failure(gpu.launch(kernel, 1, arguments));
    assert!(message.contains("index 32 of dynamic shared memory of length 32"), "{message}");
}
