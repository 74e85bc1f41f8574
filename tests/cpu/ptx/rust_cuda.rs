//! The PTX of kernels as users of Rust-CUDA write them: which instructions it has, and which functions.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use cuda_builder::{Arch, CudaBuilder, ptx::Module};

/// The PTX of the kernels, for the oldest architecture and for one with all instructions.
static MODULES: LazyLock<Vec<(Arch, Module)>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
    CudaBuilder::new(folder).archs([Arch::SM_75, Arch::SM_90]).build().expect("the kernels build").modules
});

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
    for &(arch, ref module) in MODULES.iter() {
        let has = |(entry, expected): (&str, &str), wanted: bool| {
            let found = instructions(module, entry);
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
    for &(arch, ref module) in MODULES.iter() {
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
        // The square roots and sines of `glam` are those of `libm`.
        let of_vectors = |name: &&str| ["issue_283", "render", "rotations", "vec3_operations"].contains(name);
        assert!(with_libm.iter().all(|name| of_floats(name) || of_vectors(name)), "{arch}: {with_libm:?}");
        assert!(module.entries().len() > 100, "{arch}: {} entries", module.entries().len());
    }
}

/// Functions that the compiler calls by name are in the PTX of the entries that use them, and in no other.
#[test]
fn functions_of_core_are_linked_where_they_are_used() {
    let uses = [
        ("copies", "memcpy memmove memset"),
        ("comparisons", "memcmp bcmp memchr_aligned"),
        ("words_by_match", "memcmp from_utf8"),
        // By instructions alone.
        ("integers_to_floats", ""),
        ("floats_to_integers", "__fixsfti __fixunssfti __fixdfti __fixunsdfti"),
    ];
    for &(arch, ref module) in MODULES.iter() {
        for (name, functions) in uses {
            let entry = module.entries().iter().find(|entry| entry.name == name).expect("the entry exists");
            let text = module.of_entry(entry);
            assert_eq!(text.contains(".func"), !functions.is_empty(), "{name} {arch}");
            assert!(!text.contains(".extern") && !text.contains(".weak"), "{name} {arch}: {text}");
            for function in functions.split_whitespace() {
                // The end of a mangled name, or the whole name.
                let ends = |line: &&str| line.contains(".func") && line.contains(&format!("{function}("));
                assert_eq!(text.lines().filter(ends).count(), 2, "{function} is declared and defined in {name} {arch}");
            }
        }
        let others = module.entries().iter().filter(|entry| uses.iter().all(|(name, _)| *name != entry.name));
        for entry in others {
            let text = module.of_entry(entry);
            assert!(!text.contains("memcpy") && !text.contains("__fix"), "{} {arch}", entry.name);
        }
    }
}

/// A value is one parameter of the entry, whose name is the kernel's, even if that is a keyword.
#[test]
fn values_are_one_parameter() {
    let of_entry = [
        ("only_a_struct", ".align 8 .b8 only_a_struct_param_0[16]"),
        ("only_an_alias", ".align 8 .b8 only_an_alias_param_0[16]"),
        ("only_a_generic_struct_f32", ".align 8 .b8 only_a_generic_struct_f32_param_0[16]"),
        ("only_a_bool", ".u8 only_a_bool_param_0"),
        ("only_a_u128", ".align 16 .b8 only_a_u128_param_0[16]"),
        ("while", ".align 8 .b8 while_param_0[16]"),
    ];
    for &(arch, ref module) in MODULES.iter() {
        let entry = |name: &str| {
            let found = module.entries().iter().find(|entry| entry.name == name);
            found.unwrap_or_else(|| panic!("no entry `{name}` for {arch}"))
        };
        for (name, parameter) in of_entry {
            let text = &entry(name).text;
            assert!(text.contains(parameter), "{name} {arch}: {text}");
            assert_eq!(text.matches("\t.param ").count(), 1, "{name} {arch}: {text}");
        }
        assert_eq!(entry("match_u32").text.matches("\t.param ").count(), 5, "{arch}: two views and a number");
        assert_eq!(entry("loop").text.matches("\t.param ").count(), 5, "{arch}: two views and a number");
        // Each loaded byte is only compared with 0.
        let bools: Vec<&str> = entry("bools").text.lines().collect();
        let loads = bools.windows(2).filter(|lines| lines[0].contains("ld.global.b8"));
        let compares = loads.map(|lines| lines[1].contains("setp.ne.b16") && lines[1].ends_with(", 0;"));
        assert_eq!(compares.collect::<Vec<_>>(), [true; 3], "{arch}: {bools:#?}");
    }
}
