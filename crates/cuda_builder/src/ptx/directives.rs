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

/// One of this many parameters is read: every 32 bytes, if each parameter has 8.
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
    // The fourth byte is read, so parameters of fewer than four bytes are left out.
    let parameters: Vec<&str> = head
        .split(".param ")
        .filter(|parameter| parameter.get(2..4).is_some_and(|bits| bits == "32" || bits == "64"))
        .filter_map(|parameter| symbols(parameter).into_iter().find(|symbol| symbol.starts_with(name)))
        .collect();
    let prefetches = after.contains(LAUNCH_DEPENDENTS) && !before.contains("%seen");
    let Some((last, others)) = parameters.split_last().filter(|_| prefetches) else {
        return entry.to_owned();
    };
    let further: String = others
        .iter()
        .step_by(PREFETCH_STRIDE)
        .map(|parameter| format!("\tld.param.u8 %seen, [{parameter}+3];\n\tand.b32 %all, %all, %seen;\n"))
        .collect();
    format!(
        "{before}{{ .reg .pred %wide, %none; .reg .b32 %seen, %all;\n\tmov.u32 %seen, %nctaid.x;\n\t\
         setp.gt.u32 %wide, %seen, {max_blocks};\n\t@%wide bra SEEN;\n\tld.param.u8 %all, [{last}+3];\n{further}\t\
         setp.eq.u32 %none, %all, 255;\n\t@%none nanosleep.u32 0;\nSEEN: }}\n\t{WAIT}{after}"
    )
}
