//! Compare-and-swaps of local memory, where PTX has no atomic operations.

/// Replaces each compare-and-swap of local memory by a load, a comparison and a store. Local memory belongs to one
/// thread, so the result is the same.
///
/// LLVM does that with all other atomic operations, such as those of a `core::sync::atomic::AtomicU32` in a variable of
/// a kernel. It leaves `atom.relaxed.sys.local.cas.b32 %r2, [%rd1], 0, 1;`, which `ptxas` refuses.
pub(super) fn without_local_atomics(item: String) -> String {
    if !item.contains(CAS) {
        return item;
    }
    item.split_inclusive('\n').map(|line| as_load_and_store(line).unwrap_or_else(|| line.to_owned())).collect()
}

const CAS: &str = ".local.cas.b";

/// The replacement of a line that is such an instruction.
fn as_load_and_store(line: &str) -> Option<String> {
    let (operation, operands) = line.trim_start().strip_prefix("atom.")?.split_once(char::is_whitespace)?;
    let (_, bits) = operation.split_once(CAS)?;
    let operands: Vec<&str> = operands.split_once(';')?.0.split(',').map(str::trim).collect();
    let [before, address, expected, new] = operands[..] else { return None };
    Some(format!(
        "\t{{ .reg .pred %equal; .reg .b{bits} %found;\n\tld.local.b{bits} %found, {address};\n\t\
         setp.eq.b{bits} %equal, %found, {expected};\n\t@%equal st.local.b{bits} {address}, {new};\n\t\
         mov.b{bits} {before}, %found; }}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compare_and_swap_of_local_memory_is_a_load_and_a_store() {
        let entry = "{\n\tst.local.b64 \t[%rd1], 0;\n\tatom.acq_rel.sys.local.cas.b64 \t%rd2, [%rd1+8], %rd2, 1;\n\
                     \tatom.relaxed.sys.global.cas.b64 \t%rd3, [table], 0, 1;\n}\n";
        let replaced = without_local_atomics(entry.to_owned());
        let expected = "{\n\tst.local.b64 \t[%rd1], 0;\n\
                        \t{ .reg .pred %equal; .reg .b64 %found;\n\
                        \tld.local.b64 %found, [%rd1+8];\n\
                        \tsetp.eq.b64 %equal, %found, %rd2;\n\
                        \t@%equal st.local.b64 [%rd1+8], 1;\n\
                        \tmov.b64 %rd2, %found; }\n\
                        \tatom.relaxed.sys.global.cas.b64 \t%rd3, [table], 0, 1;\n}\n";
        assert_eq!(replaced, expected);
        assert_eq!(without_local_atomics(replaced.clone()), replaced);
    }

    #[test]
    fn comments_stay_unchanged() {
        let entry = "{\n\t// atom.relaxed.sys.local.cas.b64 %rd2, [%rd1], 0, 1;\n}\n";
        assert_eq!(without_local_atomics(entry.to_owned()), entry);
    }
}
