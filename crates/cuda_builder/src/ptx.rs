//! A PTX module, split into its entries.
//!
//! The compiler writes one module per crate, and the driver compiles a module as a whole. So that a program that uses
//! one kernel does not load all of them, [`Module::of_entry`] makes a module of one entry and the items that it needs.

mod directives;
mod local_atomics;
mod text;

use std::collections::BTreeSet;

use self::directives::{with_launch_bounds, with_parameter_prefetch};
use self::local_atomics::without_local_atomics;
pub(crate) use self::text::{
    function_name, has_directive, prototype, symbols, top_level_items, variable_name, with_symbol_renamed,
    without_linkage,
};
use self::text::{symbol_after, with_labels_numbered};

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
    /// The entry that makes the call, directly or through other functions.
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
                let text = without_local_atomics(with_parameter_prefetch(&name, &with_launch_bounds(&item)));
                module.entries.push(Entry { name, text });
            } else if words.contains(&".func") {
                // `.func (.param .b32 result) name (...)`: the name is the last word before the parameters.
                let name = function_name(&item);
                let is_extern = words.contains(&".extern");
                module.others.push(Item { name, is_extern, text: without_local_atomics(item) });
            } else if let Some(name) = variable_name(&item) {
                let is_extern = words.contains(&".extern") && !words.contains(&".shared");
                module.others.push(Item { name, is_extern, text: item });
            }
        }
        module.declare_shared_memory();
        module.text = module.assemble(module.others.iter(), module.entries.iter());
        module
    }

    /// Declares the shared memory that `cuda_std` names, before the functions that use it.
    fn declare_shared_memory(&mut self) {
        let texts = self.others.iter().map(|item| &item.text).chain(self.entries.iter().map(|entry| &entry.text));
        let used: BTreeSet<&str> = texts.flat_map(|text| symbols(text)).collect();
        let is_missing = |declaration: &Item| self.others.iter().all(|item| item.name != declaration.name);
        let declarations: Vec<Item> = used.into_iter().filter_map(shared_memory).filter(is_missing).collect();
        self.others.splice(..0, declarations);
    }

    /// Merges the modules of a crate that was compiled in parts. Entries are sorted by name, and labels are numbered by
    /// entry, so that the result does not depend on the parts.
    pub fn from_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut module = Self { text: String::new(), header: String::new(), entries: Vec::new(), others: Vec::new() };
        for (number, mut part) in parts.into_iter().enumerate() {
            part.rename_conflicts(&module.others, number);
            module.header = part.header;
            module.entries.append(&mut part.entries);
            part.others.retain(|other| !module.others.contains(other));
            module.others.append(&mut part.others);
        }
        module.entries.sort_by(|a, b| a.name.cmp(&b.name));
        for (number, entry) in module.entries.iter_mut().enumerate() {
            entry.text = with_labels_numbered(&entry.text, number);
        }
        module.text = module.assemble(module.others.iter(), module.entries.iter());
        module
    }

    /// Renames items that differ from an item of the same name in `others`: in each module the compiler numbers
    /// constants from the same number on. A function may occur twice, as its declaration and its definition.
    fn rename_conflicts(&mut self, others: &[Item], number: usize) {
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
            // All items of one name: a function may occur twice, as its declaration and its definition.
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

/// The declaration of shared memory, if `symbol` is some: `cuda_std` names a static in it `shared_ID_BYTES`.
fn shared_memory(symbol: &str) -> Option<Item> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let text = match symbol.strip_prefix("shared_")?.split_once('_') {
        Some((id, bytes)) if is_number(id) && is_number(bytes) => {
            format!(".shared .align 16 .b8 {symbol}[{bytes}];")
        }
        None if symbol == DYNAMIC_SHARED => format!(".extern .shared .align 16 .b8 {symbol}[];"),
        _ => return None,
    };
    Some(Item { name: symbol.to_owned(), text, is_extern: false })
}

#[cfg(test)]
mod tests {
    use super::directives::{LAUNCH_DEPENDENTS, WAIT};
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
    fn the_module_of_an_entry_has_only_what_it_needs() {
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
    fn callees_of_a_function_with_a_declaration_are_included() {
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
        let function = ".func inner()\n{\nmov.u32 %r1, shared_dynamic;\nret;\n}\n";
        let module = Module::parse(&format!("{function}.visible .entry first(\n)\n{{\ncall.uni inner;\nret;\n}}\n"));
        let first = module.of_entry(&module.entries()[0]);
        assert!(first.contains(declaration) && first.find(declaration) < first.find(".func inner"), "{first}");
    }

    #[test]
    fn statics_in_shared_memory_are_declared_before_their_uses() {
        let text = MODULE
            .replace("ld.global.b32 %r1, [table];", "ld.global.b32 %r1, [table];\n\tmov.u32 %r2, shared_77_1024;")
            .replace("\tcall.uni (retval0)", "\tmov.u32 %r1, shared_5_64;\n\tcall.uni (retval0)");
        let module = Module::parse(&text);
        let [first, second] = [0, 1].map(|i| module.of_entry(&module.entries()[i]));
        let [long, short] =
            [(77, 1024), (5, 64)].map(|(id, bytes)| format!(".shared .align 16 .b8 shared_{id}_{bytes}[{bytes}];"));
        assert!(first.find(&long).unwrap() < first.find(".func helper").unwrap(), "{first}");
        assert!(second.contains(&short) && !second.contains(&long) && !first.contains(&short), "{first}{second}");
        // A module that is parsed again, or merged, declares them once.
        for module in [Module::parse(module.text()), Module::from_parts([module.clone(), module])] {
            assert_eq!(module.text().matches(&long).count(), 1, "{}", module.text());
        }
        assert_eq!(shared_memory("shared_77").or(shared_memory("shared_7_")).or(shared_memory("shared_a_4")), None);
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
    fn every_32_bytes_of_a_struct_are_read_before_the_wait() {
        let parameters = "\t.param .u64 .ptr .global .align 4 first_param_0,\n\
                          \t.param .align 8 .b8 first_param_1[72],\n\t.param .u32 first_param_2";
        let body = format!("\t// prefetch_blocks 528\n\t{WAIT}\n\t{LAUNCH_DEPENDENTS}\n\tmov.u32 %r1, shared_dynamic;");
        let text =
            MODULE.replace("\t.param .u64 first_param_0", parameters).replace("\tmov.u32 %r1, shared_dynamic;", &body);
        let module = Module::parse(&text);
        let first = &module.entries()[0].text;
        let reads: Vec<&str> =
            first.split("ld.param.u8 ").skip(1).filter_map(|read| read.split(['[', ']']).nth(1)).collect();
        // The last word first; then the first, and each fourth after it.
        assert_eq!(reads, ["first_param_2+3", "first_param_0+3", "first_param_1+27", "first_param_1+59"], "{first}");
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
    fn parts_are_merged_into_one_module() {
        let part = |entry: &str, value: u32| {
            Module::parse(&format!(
                ".version 7.8\n.target sm_90\n.address_size 64\n.global .align 4 .b8 both[4] = {{1, 0, 0, 0}};\n\
                 .global .align 4 .b8 unnamed_1[4] = {{{value}, 0, 0, 0}};\n.visible .entry {entry}(\n)\n{{\n\
                 \tbra $L__BB0_12;\n$L__BB0_12:\n\tmov.b64 %r1, unnamed_1;\n\tmov.b64 %r1, both;\n\tret;\n}}\n"
            ))
        };
        let module = Module::from_parts([part("second", 5), part("first", 6)]);
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
    fn functions_that_differ_between_parts_are_renamed() {
        let part = |entry: &str, constant: u32| {
            Module::parse(&format!(
                ".version 7.8\n.target sm_90\n.address_size 64\n\n.func leaf\n()\n;\n\
                 .func caller()\n{{\n\tcall.uni leaf, ();\n}}\n.func leaf()\n{{\n\tmov.u32 %r1, {constant};\n}}\n\
                 .visible .entry {entry}()\n{{\n\tcall.uni \
                 caller, ();\n}}\n"
            ))
        };
        let module = Module::from_parts([part("first", 5), part("second", 6)]);
        for (entry, constant, other) in [("first", "%r1, 5;", "%r1, 6;"), ("second", "%r1, 6;", "%r1, 5;")] {
            let entry = module.entries().iter().find(|found| found.name == entry).unwrap();
            let text = module.of_entry(entry);
            assert!(text.contains(constant) && !text.contains(other), "{text}");
            assert_eq!(text.matches(".func caller").count(), 1, "{text}");
            // Declared and defined.
            assert_eq!(text.matches(".func leaf").count(), 2, "{text}");
        }
        let same = Module::from_parts([part("first", 5), part("second", 5)]);
        assert_eq!(same.text().matches(".func").count(), 3, "{}", same.text());
    }
}
