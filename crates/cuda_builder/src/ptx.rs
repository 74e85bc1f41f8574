//! A PTX module, split into its entries.
//!
//! The compiler writes one module per crate. The driver compiles a module as a whole, so a program that uses one kernel
//! of a hundred should not load them all: [`Module::of_entry`] makes a module of one entry and the items that it needs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A PTX module.
#[derive(Clone, Debug)]
pub struct Module {
    text: String,
    /// `.version`, `.target` and `.address_size`.
    header: String,
    entries: Vec<Entry>,
    /// Functions and variables at module scope.
    others: Vec<Item>,
}

/// A kernel's PTX entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name by which the driver finds it.
    pub name: String,
    /// The PTX, from `.visible .entry` to the closing brace.
    pub text: String,
}

/// Another item at module scope.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    name: String,
    text: String,
    is_extern: bool,
}

/// A call of a function that the module does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedCall {
    /// The entry that makes the call, perhaps through other functions.
    pub entry: String,
    /// The called function.
    pub function: String,
}

/// The symbol of dynamic shared memory that `cuda_std` uses. It must be declared at module scope.
const DYNAMIC_SHARED: &str = "shared_dynamic";

impl Module {
    /// Parses a module.
    pub fn parse(text: &str) -> Self {
        let mut module = Self { text: String::new(), header: String::new(), entries: Vec::new(), others: Vec::new() };
        for item in top_level_items(text) {
            let words: Vec<&str> = item.split_whitespace().take(8).collect();
            if matches!(words.first(), Some(&(".version" | ".target" | ".address_size"))) {
                module.header.push_str(item.trim());
                module.header.push('\n');
            } else if words.contains(&".entry") {
                let name = symbol_after(&item, ".entry");
                let text = with_parameter_prefetch(&name, &with_block(&item));
                module.entries.push(Entry { name, text });
            } else if words.contains(&".func") {
                // `.func (.param .b32 result) name (...)`: the name is the last word before the parameters.
                let name = function_name(&item);
                module.others.push(Item { name, is_extern: words.contains(&".extern"), text: item });
            } else if let Some(name) = variable_name(&item) {
                let is_extern = words.contains(&".extern") && !words.contains(&".shared");
                module.others.push(Item { name, is_extern, text: item });
            }
        }
        let uses_dynamic_shared = module.entries.iter().any(|entry| symbols(&entry.text).contains(DYNAMIC_SHARED));
        if uses_dynamic_shared {
            module.others.push(Item {
                name: DYNAMIC_SHARED.to_owned(),
                text: format!(".extern .shared .align 16 .b8 {DYNAMIC_SHARED}[];"),
                is_extern: false,
            });
        }
        module.text = module.assemble(module.others.iter(), module.entries.iter());
        module
    }

    /// Merges modules that share a crate's entries, as if they had been compiled together: the entries are sorted by
    /// name, and their labels numbered by entry.
    pub fn of_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut module = Self { text: String::new(), header: String::new(), entries: Vec::new(), others: Vec::new() };
        for (number, mut part) in parts.into_iter().enumerate() {
            part.rename_what_differs(&module.others, number);
            module.header = part.header;
            module.entries.append(&mut part.entries);
            part.others.retain(|other| !module.others.contains(other));
            module.others.append(&mut part.others);
        }
        module.entries.sort_by(|a, b| a.name.cmp(&b.name));
        for (number, entry) in module.entries.iter_mut().enumerate() {
            entry.text = with_labels_of(&entry.text, number);
        }
        module.text = module.assemble(module.others.iter(), module.entries.iter());
        module
    }

    /// Renames items that have the name of one of `others` but differ from it: the compiler numbers constants in each
    /// module from the same number. A function may occur twice, declared and defined.
    fn rename_what_differs(&mut self, others: &[Item], number: usize) {
        // An item that refers to a renamed item then differs, too.
        loop {
            let differs = |item: &&Item| others.iter().any(|other| other.name == item.name) && !others.contains(*item);
            let names: BTreeSet<String> = self.others.iter().filter(differs).map(|item| item.name.clone()).collect();
            if names.is_empty() {
                return;
            }
            for name in names {
                self.rename(&name, &format!("{name}_{number}"));
            }
        }
    }

    fn rename(&mut self, name: &str, new: &str) {
        for item in &mut self.others {
            item.text = with_symbol_renamed(&item.text, name, new);
            if item.name == name {
                new.clone_into(&mut item.name);
            }
        }
        for entry in &mut self.entries {
            entry.text = with_symbol_renamed(&entry.text, name, new);
        }
    }

    /// The text of the whole module.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The entries, in the compiler's order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// A module of this entry and the items it refers to.
    pub fn of_entry(&self, entry: &Entry) -> String {
        self.of_entries(&[entry])
    }

    /// A module of these entries and the items they refer to.
    pub fn of_entries(&self, entries: &[&Entry]) -> String {
        let needed: BTreeSet<&str> = entries.iter().flat_map(|entry| self.reachable(entry)).collect();
        self.assemble(self.others.iter().filter(|item| needed.contains(item.name.as_str())), entries.iter().copied())
    }

    /// A function or a static that an entry uses and the module only declares, if any.
    pub fn unresolved_call(&self) -> Option<UnresolvedCall> {
        self.entries.iter().find_map(|entry| {
            let needed = self.reachable(entry);
            let function = self.others.iter().find(|item| item.is_extern && needed.contains(item.name.as_str()))?;
            Some(UnresolvedCall { entry: entry.name.clone(), function: function.name.clone() })
        })
    }

    /// The names of all items that the entry refers to, directly or indirectly.
    fn reachable(&self, entry: &Entry) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![entry.text.as_str()];
        while let Some(text) = open.pop() {
            let used = symbols(text);
            let new = |item: &&Item| used.contains(item.name.as_str()) && !reached.contains(item.name.as_str());
            // All items of one name: a function that is declared before its definition occurs twice.
            let items: Vec<&Item> = self.others.iter().filter(new).collect();
            open.extend(items.iter().map(|item| item.text.as_str()));
            reached.extend(items.iter().map(|item| item.name.as_str()));
        }
        reached
    }

    fn assemble<'a>(
        &self,
        others: impl IntoIterator<Item = &'a Item>,
        entries: impl IntoIterator<Item = &'a Entry>,
    ) -> String {
        let mut text = self.header.clone();
        let others = others.into_iter().map(|item| item.text.trim());
        for item in others.chain(entries.into_iter().map(|entry| entry.text.trim())) {
            text.push('\n');
            text.push_str(item);
            text.push('\n');
        }
        text
    }
}

/// Turns the comments with which `cuda_std` states an entry's block, its maximum block size and its minimum number of
/// resident blocks into PTX directives, which go between the parameters and the body.
fn with_block(entry: &str) -> String {
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
const WAIT: &str = "griddepcontrol.wait;";

/// With this instruction an entry lets the next grid start.
const LAUNCH_DEPENDENTS: &str = "griddepcontrol.launch_dependents;";

/// The distance between parameters that are read: 32 bytes, if each has 8.
const PREFETCH_STRIDE: usize = 4;

/// The comment with which an entry asks that its blocks read their parameters before the wait, followed by the maximum
/// number of blocks along x.
const PREFETCH: &str = "// prefetch_blocks ";

/// Makes the blocks of an entry read some parameters before they wait for the previous grid, if the entry asks for it
/// and launches dependents itself.
///
/// Parameters are in constant memory, which each launch fetches anew. After the wait, the first read takes as long as a
/// memory access; before the wait, it is hidden. On an H200, launches of one or two microseconds became 0.03 to 0.09 us
/// faster. Blocks of an entry that does not launch dependents do not read first: behind a kernel of the same kind they
/// start when nothing is left to wait for, and row reductions lost 4 % (`docs/notes/short-kernels.md`).
///
/// One byte of some parameters is enough. If whole parameters were loaded, `ptxas` would keep their values in
/// registers; a load without effect it would drop. So a thread that finds all bits of these bytes set sleeps, for zero
/// time. Reading the grid's size fetches the line with the sizes of block and grid.
fn with_parameter_prefetch(name: &str, entry: &str) -> String {
    let max_blocks = entry.lines().find_map(|line| line.trim_start().strip_prefix(PREFETCH));
    let (Some(max_blocks), Some((before, after)), Some((head, _))) =
        (max_blocks, entry.split_once(WAIT), entry.split_once("\n{"))
    else {
        return entry.to_owned();
    };
    // The last of the four lowest bytes, so parameters of fewer bytes are left out.
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

/// The items at module scope: one-line directives, declarations up to their `;`, definitions up to their `}`.
pub(crate) fn top_level_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut depth = 0_usize;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        if item.is_empty() && code.trim().is_empty() {
            continue;
        }
        item.push_str(line);
        item.push('\n');
        let had_body = depth > 0 || code.contains('{');
        depth = (depth + code.matches('{').count()).saturating_sub(code.matches('}').count());
        let code = code.trim_end();
        let is_header = [".version", ".target", ".address_size"].iter().any(|word| item.trim_start().starts_with(word));
        if depth == 0 && (is_header || (had_body && code.ends_with(['}', ';'])) || code.ends_with(';')) {
            items.push(std::mem::take(&mut item));
        }
    }
    items
}

/// All words of a text that could be symbols.
fn symbols(text: &str) -> BTreeSet<&str> {
    text.split(ends_a_symbol).filter(|word| !word.is_empty()).collect()
}

fn ends_a_symbol(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'))
}

/// The text with a symbol renamed.
fn with_symbol_renamed(text: &str, name: &str, new: &str) -> String {
    let words = text.split_inclusive(ends_a_symbol).map(|word| match word.strip_prefix(name) {
        Some(rest) if rest.chars().all(ends_a_symbol) => format!("{new}{rest}"),
        _ => word.to_owned(),
    });
    words.collect()
}

/// The text with `number` in all labels of basic blocks, `$L__BB12_3`.
fn with_labels_of(text: &str, number: usize) -> String {
    const LABEL: &str = "$L__BB";
    let mut pieces = text.split(LABEL);
    let mut numbered = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        let _ = write!(numbered, "{LABEL}{number}{rest}");
    }
    numbered
}

fn symbol_after(item: &str, directive: &str) -> String {
    let rest = item.split_once(directive).map_or("", |(_, rest)| rest);
    rest.trim_start().chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_' || c == '$').collect()
}

fn function_name(item: &str) -> String {
    let rest = item.split_once(".func").map_or("", |(_, rest)| rest).trim_start();
    // The result, if any, is in parentheses before the name.
    let rest = if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
    rest.trim_start().chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_' || c == '$').collect()
}

/// The name in `.global .align 4 .b8 NAME[16] = {...};`, whatever the spaces.
pub(crate) fn variable_name(item: &str) -> Option<String> {
    let declaration = item.split(['=', '[', ';']).next()?;
    let name = declaration.split_whitespace().last()?;
    (!name.starts_with('.')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "
//
// Generated by LLVM NVPTX Back-End
//

.version 6.3
.target sm_75
.address_size 64

.extern .func  (.param .b64 func_retval0) elsewhere
(
\t.param .b64 elsewhere_param_0
)
;
.func helper(
\t.param .b32 helper_param_0
)
{
\tld.global.b32 %r1, [table];
\tret;
}
.global .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.global .align 4 .b8 unused[4] = {1, 0, 0, 0};

\t// .globl\tfirst
.visible .entry first(
\t.param .u64 first_param_0
)
{
\tmov.u32 %r1, shared_dynamic;
\t{ // callseq 0, 0
\tcall.uni helper, (param0);
\t} // callseq 0
\tret;
}
\t// -- End function
.visible .entry second(
)
{
\tcall.uni (retval0), elsewhere, (param0);
\tret;
}
";

    #[test]
    fn entries_are_found_in_order() {
        let module = Module::parse(MODULE);
        let names: Vec<_> = module.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn an_entry_takes_along_what_it_needs_and_no_more() {
        let module = Module::parse(MODULE);
        let first = module.of_entry(&module.entries()[0]);
        assert!(first.starts_with(".version 6.3\n.target sm_75\n.address_size 64\n"), "{first}");
        assert!(
            first.contains(".entry first") && first.contains(".func helper") && first.contains(" table[8]"),
            "{first}"
        );
        assert!(!first.contains("second") && !first.contains("unused") && !first.contains("elsewhere"), "{first}");
    }

    #[test]
    fn what_a_function_calls_that_is_declared_first_is_taken_along() {
        let functions = ".func outer\n()\n;\n.func inner()\n{\nret;\n}\n.func outer()\n{\ncall.uni inner;\nret;\n}\n";
        let module = Module::parse(&format!("{functions}.visible .entry first(\n)\n{{\ncall.uni outer;\nret;\n}}\n"));
        let first = module.of_entry(&module.entries()[0]);
        assert!(first.contains(".func inner()"), "{first}");
    }

    #[test]
    fn dynamic_shared_memory_is_declared_where_it_is_used() {
        let module = Module::parse(MODULE);
        let declaration = ".extern .shared .align 16 .b8 shared_dynamic[];";
        assert!(module.of_entry(&module.entries()[0]).contains(declaration));
        assert!(!module.of_entry(&module.entries()[1]).contains(declaration));
        assert!(module.text().contains(declaration));
    }

    #[test]
    fn a_block_becomes_a_directive() {
        let text = MODULE.replace("\tmov.u32 %r1, shared_dynamic;", "\t// reqntid 32, 8, 1\n\tmov.u32 %r1, %tid.x;");
        let module = Module::parse(&text);
        assert!(module.text().contains(")\n.reqntid 32, 8, 1\n{"), "{}", module.text());
        assert_eq!(module.text().matches(".reqntid").count(), 1, "the other entry takes any block");
        let module = Module::parse(&text.replace("reqntid 32, 8, 1", "maxntid 1024"));
        assert!(module.text().contains(")\n.maxntid 1024\n{"), "{}", module.text());
        let module =
            Module::parse(&text.replace("\tmov.u32 %r1, %tid.x;", "\t// minnctapersm 4\n\tmov.u32 %r1, %tid.x;"));
        assert!(module.text().contains(")\n.reqntid 32, 8, 1\n.minnctapersm 4\n{"), "{}", module.text());
    }

    #[test]
    fn parameters_are_read_before_the_wait_for_the_previous_grid() {
        let parameters: Vec<_> = ["u64 .ptr .global .align 4", "b64", "b32", "b16", "b64", "b64", "f64"]
            .iter()
            .enumerate()
            .map(|(i, kind)| format!("\t.param .{kind} first_param_{i}"))
            .collect();
        let body = "\t// prefetch_blocks 528\n\tgriddepcontrol.wait;\n\tmov.u32 %r1, shared_dynamic;";
        let waiting = MODULE
            .replace("\t.param .u64 first_param_0", &parameters.join(",\n"))
            .replace("\tmov.u32 %r1, shared_dynamic;", body);
        let dependent = waiting.replace(WAIT, &format!("{WAIT}\n\t{LAUNCH_DEPENDENTS}"));
        let module = Module::parse(&dependent);
        let first = &module.entries()[0].text;
        let (before, after) = first.split_once(WAIT).unwrap();
        for (i, is_read) in [true, false, false, false, false, true, true].into_iter().enumerate() {
            assert_eq!(before.contains(&format!("[first_param_{i}+3]")), is_read, "{i}: {first}");
        }
        assert!(before.contains("setp.gt.u32 %wide, %seen, 528;") && before.contains("@%wide bra SEEN;"), "{first}");
        assert!(
            before.contains("@%none nanosleep.u32 0;") && after.contains("mov.u32 %r1, shared_dynamic;"),
            "{first}"
        );
        assert_eq!(Module::parse(module.text()).text().matches("nanosleep").count(), 1, "once is enough");
        assert_eq!(
            Module::parse(&waiting).text().matches("nanosleep").count(),
            0,
            "no prefetch without launch_dependents"
        );
        assert_eq!(Module::parse(MODULE).text().matches("nanosleep").count(), 0, "no prefetch without a wait");
        let without = dependent.replace("\t// prefetch_blocks 528\n", "");
        assert_eq!(Module::parse(&without).text().matches("nanosleep").count(), 0, "no prefetch unless asked for");
    }

    #[test]
    fn an_unresolved_call_names_kernel_and_function() {
        let call = Module::parse(MODULE).unresolved_call().unwrap();
        assert_eq!((call.entry.as_str(), call.function.as_str()), ("second", "elsewhere"));
    }

    #[test]
    fn a_module_whose_calls_all_resolve_is_accepted() {
        let text = MODULE.replace("elsewhere, (param0)", "helper, (param0)");
        assert_eq!(Module::parse(&text).unresolved_call(), None);
    }

    #[test]
    fn parts_are_one_module() {
        let part = |entry: &str, value: u32| {
            Module::parse(&format!(
                ".version 7.8\n.target sm_90\n.address_size 64\n.global .align 4 .b8 both[4] = {{1, 0, 0, 0}};\n\
                 .global .align 4 .b8 unnamed_1[4] = {{{value}, 0, 0, 0}};\n.visible .entry {entry}(\n)\n{{\n\
                 \tbra $L__BB0_12;\n$L__BB0_12:\n\tmov.b64 %r1, unnamed_1;\n\tmov.b64 %r1, both;\n\tret;\n}}\n"
            ))
        };
        let module = Module::of_parts([part("second", 5), part("first", 6)]);
        let names: Vec<&str> = module.entries().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["first", "second"]);
        let [first, second] = [0, 1].map(|i| module.of_entry(&module.entries()[i]));
        assert!(first.contains("unnamed_1_1[4] = {6,") && first.contains("%r1, unnamed_1_1;"), "{first}");
        assert!(second.contains("unnamed_1[4] = {5,") && second.contains("%r1, unnamed_1;"), "{second}");
        assert!(first.contains("bra $L__BB0_12;") && second.contains("$L__BB1_12:"), "{first}{second}");
        assert_eq!(module.text().matches(" both[4]").count(), 1);
    }

    /// A function that is declared before its definition, one that differs, and one that differs only in its callee.
    #[test]
    fn functions_of_parts_are_their_own() {
        let part = |entry: &str, constant: u32| {
            Module::parse(&format!(
                ".version 7.8\n.target sm_90\n.address_size 64\n\n.func leaf\n()\n;\n\
                 .func caller()\n{{\n\tcall.uni leaf, ();\n}}\n.func leaf()\n{{\n\tmov.u32 %r1, {constant};\n}}\n\
                 .visible .entry {entry}()\n{{\n\tcall.uni \
                 caller, ();\n}}\n"
            ))
        };
        let module = Module::of_parts([part("first", 5), part("second", 6)]);
        for (entry, constant, other) in [("first", "%r1, 5;", "%r1, 6;"), ("second", "%r1, 6;", "%r1, 5;")] {
            let entry = module.entries().iter().find(|found| found.name == entry).unwrap();
            let text = module.of_entry(entry);
            assert!(text.contains(constant) && !text.contains(other), "{text}");
            assert_eq!(text.matches(".func caller").count(), 1, "{text}");
            // Declared and defined.
            assert_eq!(text.matches(".func leaf").count(), 2, "{text}");
        }
        let same = Module::of_parts([part("first", 5), part("second", 5)]);
        assert_eq!(same.text().matches(".func").count(), 3, "{}", same.text());
    }
}
