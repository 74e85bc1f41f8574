//! The PTX itself, compared with what the ladder's documentation says.

mod floats;
mod rust_cuda;

use std::env;
use std::sync::LazyLock;

use cuda_builder::{Arch, Built, CudaBuilder};

/// The environment variable with the architectures to test, joined by commas. Each takes more than a minute to compile
/// and as long to assemble, so the default is one, the newest; `.ci/run` asks for more.
const ARCHS: &str = "WARPFOLD_TEST_ARCHS";

/// The PTX of all kernels.
static KERNELS: LazyLock<Built> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
    let names = env::var(ARCHS).unwrap_or_else(|_| "sm_90".to_owned());
    let archs = names.split(',').map(|name| name.parse::<Arch>().expect("an architecture"));
    CudaBuilder::new(folder).feature("ladder").archs(archs).build().expect("the kernels build")
});

/// The PTX of an entry, for each architecture.
fn entries(name: &str) -> Vec<(Arch, String)> {
    let of_module = |module: &cuda_builder::Module| {
        let entry = module.entries().iter().find(|entry| entry.name == name);
        entry.unwrap_or_else(|| panic!("no entry `{name}`")).text.clone()
    };
    KERNELS.modules.iter().map(|(arch, module)| (*arch, of_module(module))).collect()
}

/// The number of PTX instructions that begin with this text.
fn count(ptx: &str, instruction: &str) -> usize {
    let of_line = |line: &str| line.trim_start().trim_start_matches("{ ").starts_with(instruction);
    ptx.lines().filter(|line| of_line(line)).count()
}

/// The instances of every rung of the reduction ladder.
fn instances(rung: &str) -> Vec<(u32, String)> {
    let blocks = [64, 128, 256, 512, 1024];
    blocks
        .iter()
        .flat_map(|&block| ["f32", "f64", "i32", "i64"].map(|ty| (block, format!("{rung}_{ty}_{block}"))))
        .collect()
}

/// The names of all entries. The snapshot changes with each kernel that is added, removed or renamed.
#[test]
fn the_list_of_entries_is_current() {
    let mut all = KERNELS.modules.iter().map(|(arch, module)| {
        let mut names: Vec<_> = module.entries().iter().map(|entry| entry.name.as_str()).collect();
        names.sort_unstable();
        (arch, names.join("\n"))
    });
    let (_, first) = all.next().expect("an architecture");
    for (arch, names) in all {
        assert_eq!(names, first, "{arch} has the entries of the others");
    }
    insta::assert_snapshot!("entries", first);
}

/// The rungs with a block barrier in every step.
const LOOPING: [&str; 4] = ["divergent_modulo", "strided_index", "sequential", "first_add_on_load"];

/// The rungs that end with one warp in volatile shared memory.
const WITH_TAIL: [&str; 2] = ["unroll_last_warp", "complete_unroll"];

/// The header that a driver reads first.
#[test]
fn every_entry_has_a_ptx_header() {
    for (arch, module) in &KERNELS.modules {
        for entry in module.entries() {
            let text = module.of_entry(entry);
            assert!(
                text.starts_with(".version ") && text.contains(&format!(".target {arch}")),
                "{} {arch}",
                entry.name
            );
        }
    }
}

/// Whether an entry may call functions: rare paths of exact sums, and the long quotients and roots of exact means and
/// norms. They get arrays in local memory, by generic addresses.
fn has_functions(entry: &str) -> bool {
    entry.starts_with("exact_") || entry.contains("Mean_") || entry.contains("Norm_")
}

#[test]
fn nothing_is_left_to_be_linked() {
    for (arch, module) in &KERNELS.modules {
        assert_eq!(module.unresolved_call(), None, "{arch}");
        for entry in module.entries() {
            if !has_functions(&entry.name) {
                assert_eq!(count(&entry.text, "call"), 0, "{} {arch}: all is inlined", entry.name);
                assert_eq!(count(&entry.text, ".local"), 0, "{} {arch}: no array is in local memory", entry.name);
            }
        }
    }
}

/// `log2(block)` steps, and one barrier after the load.
#[test]
fn barriers_of_the_looping_rungs() {
    for rung in LOOPING {
        for (block, name) in instances(rung) {
            for (arch, ptx) in entries(&name) {
                assert_eq!(count(&ptx, "bar.sync"), 1 + block.ilog2() as usize, "{name} {arch}\n{ptx}");
            }
        }
    }
}

/// One warp executes the last six steps: two warp barriers per step, and volatile accesses to shared memory.
#[test]
fn the_volatile_tail() {
    for rung in WITH_TAIL {
        for (block, name) in instances(rung) {
            for (arch, ptx) in entries(&name) {
                assert_eq!(count(&ptx, "bar.sync"), 1 + block.ilog2() as usize - 6, "{name} {arch}");
                assert_eq!(count(&ptx, "bar.warp.sync"), 12, "{name} {arch}");
                // Two loads per step, and the result.
                assert_eq!(count(&ptx, "ld.volatile.shared"), 13, "{name} {arch}");
                assert_eq!(count(&ptx, "st.volatile.shared"), 6, "{name} {arch}");
            }
        }
    }
}

#[test]
fn shared_memory_is_never_reached_by_a_generic_address() {
    for (arch, module) in &KERNELS.modules {
        for entry in module.entries().iter().filter(|entry| !has_functions(&entry.name)) {
            let ptx = &entry.text;
            let loads = count(ptx, "ld.") - count(ptx, "ld.param");
            let known = count(ptx, "ld.global")
                + count(ptx, "ld.shared")
                + count(ptx, "ld.volatile.shared")
                + count(ptx, "ld.volatile.global")
                + count(ptx, "ld.relaxed.gpu.global");
            assert_eq!(loads, known, "{} {arch}", entry.name);
            let stores = count(ptx, "st.global")
                + count(ptx, "st.shared")
                + count(ptx, "st.volatile.shared")
                + count(ptx, "st.volatile.global")
                + count(ptx, "st.relaxed.gpu.global");
            assert_eq!(count(ptx, "st."), stores, "{} {arch}", entry.name);
        }
    }
}

/// `ptxas` does not report an array that LLVM puts in local memory as a spill, and it takes more time than the
/// additions. Rare paths are separate functions. Squares of `f64` in long rows have two terms, whose sums are added
/// there, after the loop.
#[test]
fn exact_sums_read_nothing_from_local_memory() {
    let kernels = [
        "exact_long_rows_",
        "exact_rows_",
        "exact_columns_",
        "exact_few_rows_",
        "exact_few_columns_",
        "exact_segments_",
    ];
    let is_checked =
        |name: &str| kernels.iter().any(|start| name.starts_with(start)) && name != "exact_long_rows_SumOfSquares_f64";
    for (arch, module) in &KERNELS.modules {
        for entry in module.entries().iter().filter(|entry| is_checked(&entry.name)) {
            assert_eq!(count(&entry.text, "ld.local"), 0, "{} {arch}", entry.name);
        }
    }
}

/// A structure that goes to a rare path is in local memory, and every thread writes it there first: 256 MiB of `f32` in
/// two rows took 142 us instead of 105.
#[test]
fn sums_of_few_write_nothing_to_local_memory() {
    for (arch, module) in &KERNELS.modules {
        let of_few: Vec<_> = module.entries().iter().filter(|entry| entry.name.starts_with("exact_few_")).collect();
        assert_eq!(of_few.len(), 14, "{arch}");
        for entry in of_few {
            let count = count(&entry.text, "st.local") + count(&entry.text, ".local");
            assert_eq!(count, 0, "{} {arch}", entry.name);
        }
    }
}

#[test]
fn single_launch_loads_16_bytes_at_once() {
    for (name, words) in
        [("single_launch_f32", 1), ("single_launch_i32", 1), ("single_launch_f64", 2), ("single_launch_i64", 2)]
    {
        for (arch, ptx) in entries(name) {
            assert!(count(&ptx, "ld.global.v4") >= 4, "{name} {arch}: four loads in flight");
            assert_eq!(
                count(&ptx, "shfl.sync.down"),
                20 * words,
                "{name} {arch}: two folds of a block, each two of a warp"
            );
            assert_eq!(count(&ptx, "atom."), 1, "{name} {arch}: one ticket");
        }
    }
}

/// The kernel that the driver compiles before a program's first sum has only the path of aligned segments: at most four
/// vectors of each of two tiles, of the last tile and of the remainder.
#[test]
fn aligned_rows_have_one_path() {
    for name in [
        "long_rows_Product_f32",
        "long_rows_MaxOfFloats_f16",
        "long_rows_Mean_i64",
        "long_rows_Norm_i16",
        "long_rows_Sum_i32",
    ] {
        for (arch, ptx) in entries(name) {
            assert!((8..=16).contains(&count(&ptx, "ld.global.v4")), "{name} {arch}");
        }
    }
}

/// Kernels that launch dependents read some parameters before they wait for the previous grid. Others do not.
#[test]
fn short_kernels_prefetch_parameters_before_they_wait() {
    let short = [
        "long_rows_Product_f32",
        "rows_MaxOfFloats_f16",
        "columns_Mean_i64",
        "register_tiles_u8_128",
        "narrow_tiles_u32_1024",
    ];
    let others = ["segments_Sum_i32", "in_place_tiles_u8_16384"];
    for (name, looks) in short.map(|name| (name, true)).into_iter().chain(others.map(|name| (name, false))) {
        for (arch, ptx) in entries(name) {
            let before_wait = ptx.split_once("griddepcontrol.wait;").map(|(before, _)| before);
            assert_eq!(before_wait.is_some(), arch >= Arch::SM_90, "{name} {arch}");
            let look = format!("ld.param.u8 %all, [{name}_param_");
            let has_look = before_wait.is_some_and(|before| before.contains(&look));
            assert_eq!(has_look, looks && arch >= Arch::SM_90, "{name} {arch}");
            assert_eq!(count(&ptx, "@%none nanosleep.u32 0;"), usize::from(has_look), "{name} {arch}");
        }
    }
}

/// A division by a kernel's argument inside a loop must be one 32-bit instruction: `ptxas` has miscompiled the upper
/// half of a 64-bit product.
#[test]
fn divisions_in_loops_have_32_bits() {
    let divides = |name: &str| {
        ["packed_segments", "tall_skinny", "short_wide", "copy_aligned_segments"]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    let takes_upper_half = |line: &str| line.contains("{_, ") || (line.contains("shr.u64") && line.ends_with(", 32;"));
    for (arch, module) in &KERNELS.modules {
        for entry in module.entries().iter().filter(|entry| divides(&entry.name)) {
            let has_one = entry.text.lines().any(takes_upper_half);
            assert!(!has_one, "{} {arch}: takes the upper half of a product", entry.name);
        }
    }
}

#[test]
fn tiled_transposes_have_one_barrier() {
    for rung in ["tiled", "tiled_padded"] {
        for tile in [8, 16, 32] {
            let name = format!("{rung}_f32_{tile}");
            let bytes = 4 * tile * (tile + usize::from(rung == "tiled_padded"));
            for (arch, ptx) in entries(&name) {
                assert_eq!(count(&ptx, "bar.sync"), 1, "{name} {arch}");
                assert_eq!((count(&ptx, "st.shared"), count(&ptx, "ld.shared")), (1, 1), "{name} {arch}");
                assert!(ptx.contains(&format!("[{bytes}];")), "{name} {arch}: {bytes} bytes of shared memory");
            }
        }
    }
}

#[test]
fn the_vectorized_transpose_moves_16_bytes_at_once() {
    for (arch, ptx) in entries("vectorized_f32") {
        for access in ["ld.global.v4", "st.global.v4", "ld.shared.v4", "st.shared.v4"] {
            assert_eq!(count(&ptx, access), 4, "{access} {arch}");
        }
        assert_eq!(count(&ptx, "bar.sync"), 1, "{arch}");
    }
}

/// If rows are not aligned, neither is a block's part of a row, so L2 fetches whole lines.
#[test]
fn unaligned_rows_are_fetched_by_cache_lines() {
    for (name, fetch) in [
        ("sector_aligned_tiles_u16_16384", "ld.global.L2::128B.v4"),
        ("sector_aligned_tiles_u32_4096", "ld.global.L2::128B.v4"),
        ("sector_aligned_tiles_u64_2048", "ld.global.L2::128B.v4"),
        ("short_wide_u64_4096", "ld.global.L2::256B.v4"),
    ] {
        for (arch, ptx) in entries(name) {
            assert_eq!(ptx.contains(fetch), arch.number() >= 90, "{name} {arch}");
            assert_eq!(ptx.contains("ld.global.v4"), arch.number() < 90, "{name} {arch}");
        }
    }
}

/// Elements of every size move 16 bytes at once, and are transposed in registers, not in local memory.
#[test]
fn tiles_of_every_size_move_16_bytes_at_once() {
    // The vectors of a thread, and its byte permutes: one for each of 32 words of halves, two for each of 64 words of
    // bytes.
    for (name, vectors, permutations) in [
        ("tiles_u8_32768_5", 16, 128),
        ("tiles_u16_16384_5", 8, 32),
        ("tiles_u32_4096_4", 4, 0),
        ("tiles_u32_4096_8", 4, 0),
        ("tiles_u64_2048_4", 4, 0),
    ] {
        for (arch, ptx) in entries(name) {
            for access in ["st.global.v4", "ld.shared.v4", "st.shared.v4"] {
                assert_eq!(count(&ptx, access), vectors, "{access} in {name} {arch}");
            }
            // For bytes two L2 lines are always fetched, for others if the pitch is not a multiple of two lines.
            let (plain, fetching) = (count(&ptx, "ld.global.v4"), count(&ptx, "ld.global.L2::256B.v4"));
            let ways = if name.contains("u8") { 1 } else { 2 };
            assert_eq!(plain + fetching, ways * vectors, "loads in {name} {arch}");
            assert_eq!(fetching, if arch.number() >= 90 { vectors } else { 0 }, "loads of two lines in {name} {arch}");
            assert_eq!(count(&ptx, "prmt"), permutations, "{name} {arch}");
            assert_eq!(count(&ptx, "bar.sync"), 1, "{name} {arch}");
            assert!(!ptx.contains(".local"), "{name} {arch}");
        }
    }
}

/// The tail in global memory: volatile accesses, ordered by warp barriers.
#[test]
fn the_volatile_tail_in_global_memory() {
    for name in ["unroll8_warp_tail_f32", "unroll8_complete_i32", "unroll8_complete_const_f32_512"] {
        for (arch, ptx) in entries(name) {
            assert_eq!(count(&ptx, "bar.warp.sync"), 12, "{name} {arch}");
            assert_eq!(count(&ptx, "ld.volatile.global"), 13, "{name} {arch}");
        }
    }
}

/// If the block size is a const parameter, the kernel does not read it, and the assembler knows it.
#[test]
fn a_const_generic_block_is_known() {
    for (arch, ptx) in entries("unroll8_complete_const_f32_256") {
        assert!(ptx.contains(".reqntid 256, 1, 1"), "{arch}");
    }
    for (arch, ptx) in entries("unroll8_complete_f32") {
        assert!(!ptx.contains(".reqntid") && ptx.contains("%ntid.x"), "{arch}");
    }
}

/// A short branch becomes a select, not a jump.
#[test]
fn the_predicated_branch_is_a_select() {
    for (arch, ptx) in entries("predicated") {
        assert_eq!(count(&ptx, "selp"), 1, "{arch}");
    }
}

#[test]
fn the_rolled_loop_is_rolled() {
    for (arch, ptx) in entries("loop_rolled") {
        assert_eq!(count(&ptx, "mad.lo"), 1, "{arch}");
    }
    for (arch, ptx) in entries("loop_unrolled") {
        assert_eq!(count(&ptx, "mad.lo"), 8, "{arch}");
    }
}

#[test]
fn barriers_that_count_are_one_instruction() {
    for (name, instruction) in [("sync_count", "bar.red.popc"), ("sync_and", "bar.red.and"), ("sync_or", "bar.red.or")]
    {
        for (arch, ptx) in entries(name) {
            assert!(
                ptx.contains(instruction) || ptx.contains(&instruction.replace("bar.", "barrier.cta.")),
                "{name} {arch}\n{ptx}"
            );
        }
    }
}

/// Every entry assembles, and keeps its values in registers. The reductions and the transposes' tiles (of 1 to 4 bytes
/// on sm_80) spill a few words, which ptxas does even if registers are free. Columns spill more, because with
/// four blocks they have 64 registers per thread: for bytes, which spill most, more rows in flight are faster in spite
/// of it, and the block that folds the partials holds several at once (`docs/notes/rows-and-columns.md`). Exact sums
/// spill on paths for rare data (`docs/notes/exact-sums.md`).
#[test]
fn nothing_spills() {
    let Some(ptxas) = cuda_builder::ptxas::find() else {
        println!("skipped: no ptxas here (`cargo xtask setup --ptxas` brings it)");
        return;
    };
    // The cache of `cargo xtask build-ptx --verify`, so that only one of the two has to assemble.
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/../cuda-builder/verify");
    let assembled = cuda_builder::ptxas::assemble(&ptxas, &KERNELS.modules, folder.as_ref()).expect("it assembles");
    for ((arch, module), usages) in KERNELS.modules.iter().zip(assembled) {
        assert_eq!(usages.len(), module.entries().len(), "{arch}");
        for usage in usages {
            let may_spill = [
                "long_rows_",
                "exact_",
                "rows_",
                "columns_",
                "segments_",
                "long_segments_",
                "pairs_",
                "tiles_",
                "in_place_tiles_",
                "aligned_in_place_tiles_",
                "aligned_interleaved_tiles_",
            ];
            let may_spill = may_spill.iter().any(|prefix| usage.entry.starts_with(prefix));
            // The limits of `xtask/src/build_ptx.rs`; other kernels must not spill.
            let (spilled, in_calls, stack) = match usage.entry.as_str() {
                entry if entry.starts_with("exact_") => (2_200, 4_000, 1_024),
                entry if entry.starts_with("columns_") => (512, 550, 512),
                entry if entry.starts_with("segments_") => (384, 550, 128),
                _ if may_spill => (128, 550, 128),
                _ => (0, 0, 0),
            };
            assert!(
                usage.spilled <= spilled && usage.spilled_in_calls <= in_calls && usage.stack <= stack,
                "{arch}: {usage:?}"
            );
        }
    }
}

/// A kernel crate's PTX as a file, as with Rust-CUDA's builder.
#[test]
fn the_builder_copies_ptx_to_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/vecadd/kernels");
    let one = folder.path().join("vecadd.ptx");
    CudaBuilder::new(kernels).arch(Arch::SM_90).copy_to(&one).build().expect("it builds");
    let ptx = std::fs::read_to_string(&one).expect("the file exists");
    assert!(ptx.contains(".target sm_90") && ptx.contains(".visible .entry vecadd("), "{ptx}");
    CudaBuilder::new(kernels).archs([Arch::SM_75, Arch::SM_90]).copy_to(&one).build().expect("it builds");
    for arch in ["sm_75", "sm_90"] {
        let ptx = std::fs::read_to_string(folder.path().join(format!("vecadd.{arch}.ptx"))).expect("the file exists");
        assert!(ptx.contains(&format!(".target {arch}")), "{ptx}");
    }
}

/// Of a crate that does not compile, only the error is printed, not what it is warned of.
#[test]
fn a_failed_build_prints_its_errors_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("the file is written");
    std::fs::create_dir(folder.path().join("src")).expect("the folder is made");
    write("Cargo.toml", "[package]\nname = \"broken\"\nedition = \"2024\"\n[workspace]\n");
    // The compiler finds this error last, after everything that it warns of.
    let (unused, some) =
        ("fn nobody_calls() {}", "fn some<const N: usize>() { const { assert!(N > 0, \"no blocks\") } }");
    write(
        "src/lib.rs",
        &format!("#![no_std]\n{unused}\n{some}\n#[unsafe(no_mangle)]\npub fn none() {{ some::<0>() }}\n"),
    );
    let builder = CudaBuilder::new(folder.path()).arch(Arch::SM_90).target_dir(folder.path().join("target"));
    let message = builder.build().expect_err("it does not compile").to_string();
    assert!(message.starts_with("the kernel crate `broken` does not compile for sm_90:\n"), "{message}");
    assert!(message.contains("no blocks") && message.contains("src/lib.rs:3:"), "{message}");
    assert!(!message.contains("nobody_calls"), "{message}");
}
