//! The float operations in the PTX of exact sums.

use super::KERNELS;

/// Float operations whose result is rounded to nearest, if they say so.
const ROUNDED: [&str; 7] = ["add", "sub", "mul", "fma", "div", "sqrt", "rcp"];

/// Float operations that are always approximate, or rounded twice.
const APPROXIMATE: [&str; 7] = ["mad", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"];

/// The numbers of rounded operations and of fused ones in PTX. An error is the first line with a float operation that
/// is not rounded to nearest, flushes subnormals, is approximate, or is fused by the compiler: the source's own
/// `multiply_add` is inline assembly, and so are `add_down` and `add_up`, which round down and up on purpose.
fn rounded_operations(ptx: &str) -> Result<(usize, usize), String> {
    let (mut rounded, mut fused, mut is_asm) = (0, 0, false);
    for line in ptx.lines().map(str::trim) {
        match line {
            "// begin inline asm" => is_asm = true,
            "// end inline asm" => is_asm = false,
            _ => {}
        }
        for instruction in line.split(';').map(|text| text.trim().trim_start_matches(['{', ' '])) {
            // After the predicate.
            let instruction = match instruction.strip_prefix('@') {
                Some(rest) => rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start()),
                None => instruction,
            };
            let opcode = instruction.split_whitespace().next().unwrap_or("");
            let mut parts = opcode.split('.');
            let operation = parts.next().unwrap_or("");
            let modifiers: Vec<&str> = parts.collect();
            if !modifiers.iter().any(|part| ["f16", "f16x2", "bf16", "bf16x2", "f32", "f64"].contains(part)) {
                continue;
            }
            let is_rounded = ROUNDED.contains(&operation);
            let is_directed =
                is_asm && operation == "add" && ["rm.f64", "rp.f64"].contains(&modifiers.join(".").as_str());
            let is_wrong = ["ftz", "approx", "full", "sat"].iter().any(|part| modifiers.contains(part))
                || is_rounded && !is_directed && !modifiers.contains(&"rn")
                || APPROXIMATE.contains(&operation)
                || operation == "fma" && !is_asm;
            if is_wrong {
                return Err(line.to_owned());
            }
            rounded += usize::from(is_rounded);
            fused += usize::from(operation == "fma");
        }
    }
    Ok((rounded, fused))
}

#[test]
fn operations_that_are_not_rounded_once_are_found() {
    let of = |line: &str| rounded_operations(line);
    assert_eq!(
        of("\tadd.rn.f32 \t%r1, %r2, %r3;\n\tmad.lo.s32 %r1, %r2, %r3, %r4;\n\tcvt.rzi.s64.f64 %rd1, %rd2;"),
        Ok((1, 0))
    );
    let asm = "\t// begin inline asm\n\tfma.rn.f64 %rd1, %rd2, %rd3, %rd4;\n\t// end inline asm\n";
    assert_eq!(of(&[asm, asm].concat()), Ok((2, 2)));
    let directed = asm.replace("fma.rn", "add.rm") + &asm.replace("fma.rn", "add.rp");
    assert_eq!(of(&directed), Ok((2, 0)));
    for line in [
        "add.f32 %r1, %r2, %r3;",
        "@%p1 mul.rz.f64 %rd1, %rd2, %rd3;",
        "add.rp.f64 %rd1, %rd2, %rd3;",
        "sub.rn.ftz.f32 %r1, %r2, %r3;",
        "{ cvt.ftz.f32.f16 %r1, %rs1; }",
        "div.full.f32 %r1, %r2, %r3;",
        "sqrt.approx.f32 %r1, %r2;",
        "fma.rn.f64 %rd1, %rd2, %rd3, %rd4;",
        "@!%p2 mad.f32 %r1, %r2, %r3, %r4;",
        "rsqrt.approx.f64 %rd1, %rd2;",
    ] {
        assert_eq!(of(&format!("{asm}\t{line}")), Err(line.to_owned()));
    }
}

/// Nothing is contracted, flushed or approximated in exact sums: tests in the executor would not notice, because it
/// runs the source and not the PTX.
#[test]
fn exact_sums_round_each_operation_to_nearest() {
    for (arch, module) in &KERNELS.modules {
        let (mut rounded, mut fused) = (0, 0);
        for entry in module.entries().iter().filter(|entry| entry.name.starts_with("exact_")) {
            // With the functions that it calls.
            let text = module.of_entry(entry);
            let found = rounded_operations(&text).unwrap_or_else(|line| panic!("{} {arch}: {line}", entry.name));
            (rounded, fused) = (rounded + found.0, fused + found.1);
        }
        assert!(rounded > 1000 && fused > 0, "{arch}: {rounded} rounded operations, {fused} fused");
    }
}
