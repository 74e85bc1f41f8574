//! The PTX itself: what a reader of the ladder is told must be there is there.

use std::sync::LazyLock;

use cuda_builder::{Arch, Built, CudaBuilder};

static KERNELS: LazyLock<Built> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
    CudaBuilder::new(folder).archs([Arch::SM_75, Arch::SM_80, Arch::SM_90]).build().expect("the kernels build")
});

/// The PTX of an entry, for each architecture.
fn entries(name: &str) -> Vec<(Arch, String)> {
    let of_module = |module: &cuda_builder::Module| {
        let entry = module.entries().iter().find(|entry| entry.name == name);
        entry.unwrap_or_else(|| panic!("no entry `{name}`")).text.clone()
    };
    KERNELS.modules.iter().map(|(arch, module)| (*arch, of_module(module))).collect()
}

/// How many instructions of PTX start so.
fn count(ptx: &str, instruction: &str) -> usize {
    let of_line = |line: &str| line.trim_start().trim_start_matches("{ ").starts_with(instruction);
    ptx.lines().filter(|line| of_line(line)).count()
}

/// The instances of every rung of the reduction ladder.
fn instances(rung: &str) -> Vec<(u32, String)> {
    let blocks = [64, 128, 256, 512, 1024];
    blocks.iter().flat_map(|&block| ["f32", "i32"].map(|ty| (block, format!("{rung}_{ty}_{block}")))).collect()
}

#[test]
fn every_rung_is_there_for_every_type_and_block() {
    let mut expected: Vec<String> =
        ["divergent_modulo", "strided_index", "sequential", "first_add_on_load", "unroll_last_warp", "complete_unroll"]
            .iter()
            .flat_map(|rung| instances(rung).into_iter().map(|(_, name)| name))
            .collect();
    expected.extend(["single_launch_f32", "single_launch_i32", "per_element_f32"].map(str::to_owned));
    expected
        .extend(["tiled", "tiled_padded"].iter().flat_map(|rung| [8, 16, 32].map(|tile| format!("{rung}_f32_{tile}"))));
    expected.sort();
    for (arch, module) in &KERNELS.modules {
        let mut found: Vec<_> = module.entries().iter().map(|entry| entry.name.clone()).collect();
        found.sort();
        assert_eq!(found, expected, "{arch}");
    }
}

#[test]
fn nothing_is_left_to_be_linked() {
    for (arch, module) in &KERNELS.modules {
        assert_eq!(module.unresolved_call(), None, "{arch}");
        assert_eq!(count(module.text(), "call"), 0, "{arch}: all is inlined");
        assert_eq!(count(module.text(), ".local"), 0, "{arch}: no array is in local memory");
    }
}

/// `log2(block)` steps, and one barrier after the load.
#[test]
fn barriers_of_the_looping_rungs() {
    for rung in ["divergent_modulo", "strided_index", "sequential", "first_add_on_load"] {
        for (block, name) in instances(rung) {
            for (arch, ptx) in entries(&name) {
                assert_eq!(count(&ptx, "bar.sync"), 1 + block.ilog2() as usize, "{name} {arch}\n{ptx}");
            }
        }
    }
}

/// The last six steps are one warp's: its own barriers, two a step, and volatile accesses of shared memory.
#[test]
fn the_volatile_tail() {
    for rung in ["unroll_last_warp", "complete_unroll"] {
        for (block, name) in instances(rung) {
            for (arch, ptx) in entries(&name) {
                assert_eq!(count(&ptx, "bar.sync"), 1 + block.ilog2() as usize - 6, "{name} {arch}");
                assert_eq!(count(&ptx, "bar.warp.sync"), 12, "{name} {arch}");
                // Two loads a step, and the result.
                assert_eq!(count(&ptx, "ld.volatile.shared"), 13, "{name} {arch}");
                assert_eq!(count(&ptx, "st.volatile.shared"), 6, "{name} {arch}");
            }
        }
    }
}

#[test]
fn shared_memory_is_never_reached_by_a_generic_address() {
    for (arch, module) in &KERNELS.modules {
        for entry in module.entries() {
            let ptx = &entry.text;
            let loads = count(ptx, "ld.") - count(ptx, "ld.param");
            let known = count(ptx, "ld.global")
                + count(ptx, "ld.shared")
                + count(ptx, "ld.volatile.shared")
                + count(ptx, "ld.volatile.global");
            assert_eq!(loads, known, "{} {arch}", entry.name);
            let stores = count(ptx, "st.global")
                + count(ptx, "st.shared")
                + count(ptx, "st.volatile.shared")
                + count(ptx, "st.volatile.global");
            assert_eq!(count(ptx, "st."), stores, "{} {arch}", entry.name);
        }
    }
}

#[test]
fn the_production_sum_loads_16_bytes_at_once() {
    for name in ["single_launch_f32", "single_launch_i32"] {
        for (arch, ptx) in entries(name) {
            assert!(count(&ptx, "ld.global.v4") >= 4, "{name} {arch}: four are in flight");
            assert_eq!(count(&ptx, "shfl.sync.down"), 20, "{name} {arch}: two folds of a block, each two of a warp");
            assert_eq!(count(&ptx, "atom."), 1, "{name} {arch}: one ticket");
        }
    }
}

#[test]
fn tiles_turn_between_one_barrier() {
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
