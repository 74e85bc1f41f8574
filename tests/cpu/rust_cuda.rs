//! Kernels of the kinds that Rust-CUDA has, in the executor with all of its checks.

use std::collections::BTreeSet;

use cuda_builder::{Arch, CudaBuilder, ptx::Module};
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

/// The PTX of the kernels, for the oldest architecture and for one with all instructions.
fn modules() -> Vec<(Arch, Module)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
    CudaBuilder::new(folder).archs([Arch::SM_75, Arch::SM_90]).build().expect("the kernels build").modules
}

/// The opcodes of an entry's instructions, with the types of their operands.
fn instructions(module: &Module, entry: &str) -> BTreeSet<String> {
    let entry = module.entries().iter().find(|other| other.name == entry).expect("the entry exists");
    let first_word = |line: &str| line.split_whitespace().find(|word| !word.starts_with('@')).map(str::to_owned);
    entry.text.lines().filter_map(first_word).map(|word| word.trim_end_matches(';').to_owned()).collect()
}

#[test]
fn functions_are_the_instructions_that_their_docs_name() {
    let of_any = [
        ("warp_match_any", "match.any.sync.b32 match.any.sync.b64"),
        ("warp_match_all", "match.all.sync.b32 match.all.sync.b64"),
        ("warp_shuffle", "shfl.sync.bfly.b32 shfl.sync.down.b32 shfl.sync.up.b32 shfl.sync.idx.b32"),
        ("warp_functions", "bar.warp.sync activemask.b32"),
        ("thread_sync", "bar.sync bar.red.popc.u32 bar.red.and.pred bar.red.or.pred membar.gl membar.sys"),
        ("nanosleep_lock", "nanosleep.u32 atom.acquire.gpu.cas.b32 st.release.gpu.b32"),
        (
            "atomic_float_sums",
            "atom.relaxed.gpu.add.f32 atom.relaxed.sys.add.f32 atom.acq_rel.cta.add.f32 atom.relaxed.gpu.add.f64 \
             membar.sys atom.acq_rel.sys.add.f64 atom.release.cta.add.f64",
        ),
        (
            "atomic_integers",
            "atom.relaxed.gpu.add.u32 atom.acquire.sys.add.u32 atom.release.gpu.min.s32 atom.acq_rel.gpu.max.s32 \
             atom.relaxed.gpu.and.b32 atom.relaxed.gpu.or.b32 atom.relaxed.cta.add.s32 atom.relaxed.gpu.min.s64 \
             atom.relaxed.gpu.max.s64 atom.relaxed.gpu.exch.b64 atom.acq_rel.gpu.cas.b32 ld.relaxed.gpu.b32",
        ),
        (
            "counters_that_wrap",
            "atom.relaxed.gpu.inc.u32 atom.acq_rel.sys.dec.u32 atom.relaxed.gpu.dec.u32 atom.release.cta.inc.u32",
        ),
        // No atomic operation: the memory is local.
        ("core_atomics_of_a_thread", "ld.local.b32 ld.local.b64 setp.eq.b32 setp.eq.b64"),
        (
            "shared_atomics_i64",
            "atom.relaxed.cta.shared.add.u64 atom.relaxed.cta.shared.min.s64 atom.relaxed.cta.shared.max.s64 \
             atom.relaxed.cta.shared.and.b64 atom.relaxed.cta.shared.exch.b64 atom.relaxed.cta.shared.cas.b64",
        ),
        ("shared_float_atomics_f32", "atom.relaxed.cta.shared.add.f32 atom.relaxed.cta.shared.exch.b32"),
        ("static_shared_memory", "ld.shared.b32 st.shared.b32"),
        ("reverse_array_dynamic", "ld.shared.b64 st.shared.b64"),
        ("float_approximations", "sin.approx.f32 cos.approx.f32 ex2.approx.f32 lg2.approx.f32 rsqrt.approx.f32"),
        ("asserts", "trap;"),
    ];
    let from_sm_80 = [
        ("warp_reduce", "redux.sync.add.s32 redux.sync.min.u32 redux.sync.max.s32 redux.sync.xor.b32"),
        ("float_approximations", "tanh.approx.f32"),
    ];
    for (arch, module) in modules() {
        let has = |(entry, expected): (&str, &str), wanted: bool| {
            let found = instructions(&module, entry);
            for instruction in expected.split_whitespace() {
                assert_eq!(
                    found.contains(instruction.trim_end_matches(';')),
                    wanted,
                    "{instruction} in {entry} {arch}"
                );
            }
        };
        of_any.into_iter().for_each(|one| has(one, true));
        from_sm_80.into_iter().for_each(|one| has(one, arch >= Arch::SM_80));
        has(("warp_reduce", "shfl.sync.bfly.b32"), arch < Arch::SM_80);
        has(("core_atomics_of_a_thread", "atom.acq_rel.sys.local.cas.b32 atom.relaxed.sys.local.cas.b64"), false);
        // A struct passed by value does not turn accesses through pointer parameters into generic ones.
        has(("structs_by_value", "ld.global.b32 st.global.b32 st.global.b64"), true);
        has(("structs_by_value", "ld.b32 st.b32"), false);
        // A place in shared memory is not a pointer: it causes no generic access.
        has(("static_shared_memory", "cvta.shared.u64 ld.b32 st.b32"), false);
    }
}

/// The module of an entry has only the functions that the entry calls, and the tables of other crates that they read.
#[test]
fn entries_have_what_they_use_and_no_more() {
    for (arch, module) in modules() {
        assert_eq!(module.unresolved_call(), None, "{arch}");
        assert!(module.text().contains(".visible .func"), "{arch}: the visible function is in the module");
        let mut with_libm = Vec::new();
        for entry in module.entries() {
            let text = module.of_entry(entry);
            assert!(!text.contains(".extern .global"), "{} {arch}", entry.name);
            if text.contains("libm") {
                with_libm.push(entry.name.as_str());
            }
            assert_eq!(text.contains("CRC32_TABLE"), entry.name == "checksum_by_a_crate", "{} {arch}", entry.name);
        }
        let of_floats = |name: &&str| name.starts_with("float_functions_") || name.starts_with("float_extensions_");
        assert_eq!(with_libm.iter().filter(|name| of_floats(name)).count(), 4, "{arch}: {with_libm:?}");
        assert!(with_libm.iter().all(|name| of_floats(name) || *name == "render"), "{arch}: {with_libm:?}");
        assert!(module.entries().len() > 100, "{arch}: {} entries", module.entries().len());
    }
}
