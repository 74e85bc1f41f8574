//! Turns comments that `cuda_std` writes in an entry into PTX: launch bounds, and prefetches of parameters.

use super::text::symbols;

/// Turns the comments with which `cuda_std` states an entry's block, its maximum block size and its minimum number of
/// resident blocks into PTX directives, which go between the parameters and the body.
pub(super) fn with_launch_bounds(entry: &str) -> String {
    const DIRECTIVES: [&str; 3] = ["reqntid ", "maxntid ", "minnctapersm "];
    let said = DIRECTIVES.iter().filter_map(|directive| {
        let comments = entry.lines().filter_map(|line| line.trim_start().strip_prefix("// "));
        comments.into_iter().find(|comment| comment.starts_with(directive))
    });
    let directives: String = said.map(|directive| format!(".{directive}\n")).collect();
    match entry.split_once("\n{") {
        Some((head, body)) if !directives.is_empty() => format!("{head}\n{directives}{{{body}"),
        _ => entry.to_owned(),
    }
}

/// With this instruction an entry waits for the previous grid (programmatic dependent launch).
pub(super) const WAIT: &str = "griddepcontrol.wait;";

/// With this instruction an entry lets the next grid start.
pub(super) const LAUNCH_DEPENDENTS: &str = "griddepcontrol.launch_dependents;";

/// One of this many words is read: every 32 bytes, if each word has 8.
const PREFETCH_STRIDE: usize = 4;

/// The comment with which an entry asks that its blocks read their parameters before the wait, followed by the maximum
/// number of blocks along x.
const PREFETCH: &str = "// prefetch_blocks ";

/// Makes the blocks of an entry read some parameters before they wait for the previous grid, if the entry asks for it
/// and launches dependents itself.
///
/// Parameters are in constant memory, which each launch fetches anew. After the wait, the first read takes as long as a
/// memory access; before the wait, it is hidden. On an H200 this makes launches of one or two microseconds 0.03 to 0.09
/// us faster. Blocks of an entry that does not launch dependents skip these reads: after a kernel of the same kind,
/// such blocks start when that grid has ended, so the reads would only cost time (4 % of row reductions,
/// `docs/notes/short-kernels.md`).
///
/// One byte of some parameters is enough. `ptxas` would keep whole parameters in registers, and would drop loads
/// without an effect. So a thread sleeps for zero time if all bits of these bytes are set. Reading the size of the grid
/// fetches the line with the sizes of block and grid.
pub(super) fn with_parameter_prefetch(name: &str, entry: &str) -> String {
    let max_blocks = entry.lines().find_map(|line| line.trim_start().strip_prefix(PREFETCH));
    let (Some(max_blocks), Some((before, after)), Some((head, _))) =
        (max_blocks, entry.split_once(WAIT), entry.split_once("\n{"))
    else {
        return entry.to_owned();
    };
    let words: Vec<String> = head.split(".param ").flat_map(|parameter| words_of(name, parameter)).collect();
    let prefetches = after.contains(LAUNCH_DEPENDENTS) && !before.contains("%seen");
    let Some((last, others)) = words.split_last().filter(|_| prefetches) else {
        return entry.to_owned();
    };
    let further: String = others
        .iter()
        .step_by(PREFETCH_STRIDE)
        .map(|word| format!("\tld.param.u8 %seen, [{word}];\n\tand.b32 %all, %all, %seen;\n"))
        .collect();
    format!(
        "{before}{{ .reg .pred %wide, %none; .reg .b32 %seen, %all;\n\tmov.u32 %seen, %nctaid.x;\n\t\
         setp.gt.u32 %wide, %seen, {max_blocks};\n\t@%wide bra SEEN;\n\tld.param.u8 %all, [{last}];\n{further}\t\
         setp.eq.u32 %none, %all, 255;\n\t@%none nanosleep.u32 0;\nSEEN: }}\n\t{WAIT}{after}"
    )
}

/// The address of the fourth byte of each word of a parameter: of a number's, and of each 8 bytes of a struct's.
/// Smaller parameters have none.
fn words_of(name: &str, parameter: &str) -> Vec<String> {
    let Some(symbol) = symbols(parameter).into_iter().find(|symbol| symbol.starts_with(name)) else {
        return Vec::new();
    };
    if parameter.get(2..4).is_some_and(|bits| bits == "32" || bits == "64") {
        return vec![format!("{symbol}+3")];
    }
    // A struct passed by value: `.align 8 .b8 name_param_3[264]`.
    let bytes = parameter.split_once(symbol).and_then(|(_, rest)| rest.strip_prefix('[')?.split_once(']'));
    let bytes: usize = bytes.and_then(|(bytes, _)| bytes.parse().ok()).unwrap_or(0);
    (0..bytes).step_by(8).filter(|at| at + 4 <= bytes).map(|at| format!("{symbol}+{}", at + 3)).collect()
}
