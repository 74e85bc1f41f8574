//! Links a kernel crate's PTX with that of the crates it uses.
//!
//! The PTX of a kernel crate contains the functions of other crates that its kernels call, except those that rustc does
//! not compile into their callers: functions of `core` that are not inlined (`memchr`), functions that `core` and LLVM
//! call by name, which the crate `compiler_builtins` defines (`memcmp`), and functions marked `#[inline(never)]` or
//! `#[no_mangle]`. It also only declares the statics of those crates (mostly tables of numbers). A driver gets each
//! kernel as a module of its own, so these definitions are copied into the PTX from that of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::ptx::{
    function_name, has_directive, prototype, symbols, top_level_items, variable_name, with_symbol_renamed,
    without_linkage,
};

/// Replaces declarations of functions and statics in `parts` by their definitions from the PTX files `libraries`.
/// Declarations that no kernel and no visible function uses, or that no library defines, stay.
pub(crate) fn link(parts: &mut [String], libraries: &[PathBuf]) -> io::Result<()> {
    if parts.iter().all(|part| used_declarations(&top_level_items(part)).is_empty()) {
        return Ok(());
    }
    let libraries = libraries.iter().map(|file| Ok(Library::parse(&fs::read_to_string(file)?)));
    let libraries = libraries.collect::<io::Result<Vec<_>>>()?;
    for part in parts {
        if let Some(linked) = linked(part, &libraries) {
            *part = linked;
        }
    }
    Ok(())
}

/// The part with definitions in place of declarations; `None` if none is replaced.
fn linked(part: &str, libraries: &[Library]) -> Option<String> {
    let items = top_level_items(part);
    let mut declared = used_declarations(&items);
    declared.retain(|name| find(libraries, name).is_some());
    if declared.is_empty() {
        return None;
    }
    let own = items.iter().filter_map(|item| name_of(item)).filter(|name| !declared.contains(name));
    let mut linker = Linker { libraries, names: BTreeMap::new(), taken: own.collect(), text: String::new() };
    // A declaration comes before the uses, and so does the definition in its place.
    for item in &items {
        match name_of(item).filter(|name| declared.contains(name)) {
            Some(name) => {
                let library = find(libraries, &name).expect("a library defines it, as just checked");
                linker.define(library, &name);
            }
            None => linker.text.push_str(item),
        }
    }
    Some(linker.text)
}

/// The names of the functions and statics that are only declared, and that a kernel or a visible function uses,
/// directly or indirectly.
fn used_declarations(items: &[String]) -> BTreeSet<String> {
    let is_declared = |item: &str| has_directive(item, ".extern") && !has_directive(item, ".shared");
    let declared: BTreeSet<String> = items.iter().filter(|item| is_declared(item)).filter_map(|i| name_of(i)).collect();
    if declared.is_empty() {
        return declared;
    }
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for item in items {
        texts.entry(name_of(item).unwrap_or_default()).or_default().push(item);
    }
    let is_root = |item: &&String| has_directive(item, ".entry") || has_directive(item, ".visible");
    let mut open: Vec<&str> = items.iter().filter(is_root).map(String::as_str).collect();
    let mut used = BTreeSet::new();
    while let Some(text) = open.pop() {
        for symbol in symbols(text) {
            if let Some(of_symbol) = texts.get(symbol)
                && used.insert(symbol)
            {
                open.extend(of_symbol);
            }
        }
    }
    declared.into_iter().filter(|name| used.contains(name.as_str())).collect()
}

/// The name of a function or a variable; `None` for entries and the directives of the module.
fn name_of(item: &str) -> Option<String> {
    if has_directive(item, ".func") {
        return Some(function_name(item));
    }
    let is_variable = [".global", ".const", ".shared"].iter().any(|space| has_directive(item, space));
    variable_name(item).filter(|_| is_variable && !has_directive(item, ".entry"))
}

/// A crate's PTX.
struct Library {
    /// The definitions of functions and variables, by name.
    definitions: BTreeMap<String, Definition>,
}

struct Definition {
    text: String,
    /// Whether other modules can use it.
    is_visible: bool,
    /// Whether a definition of the same name in another crate replaces it.
    is_weak: bool,
}

impl Library {
    fn parse(text: &str) -> Self {
        let mut definitions = BTreeMap::new();
        for item in top_level_items(text) {
            let is_prototype = has_directive(&item, ".func") && !item.contains('{');
            let Some(name) = name_of(&item).filter(|_| !is_prototype && !has_directive(&item, ".extern")) else {
                continue;
            };
            let is_weak = has_directive(&item, ".weak");
            let is_visible = is_weak || has_directive(&item, ".visible");
            definitions.insert(name, Definition { text: without_linkage(&item), is_visible, is_weak });
        }
        Self { definitions }
    }
}

/// The index of the library that defines `name` for others.
fn find(libraries: &[Library], name: &str) -> Option<usize> {
    let visible = |library: &Library| library.definitions.get(name).filter(|one| one.is_visible).map(|one| one.is_weak);
    let found = libraries.iter().enumerate().filter_map(|(i, library)| Some((visible(library)?, i)));
    found.min().map(|(_, library)| library)
}

/// Writes a part with the definitions that it uses.
struct Linker<'a> {
    libraries: &'a [Library],
    /// The names in the part of the definitions that have been copied, by library and name there.
    names: BTreeMap<(usize, String), String>,
    /// The names of all items of the part.
    taken: BTreeSet<String>,
    text: String,
}

impl Linker<'_> {
    /// Copies a definition after those that it uses, unless it is already in the part. Returns its name there.
    fn define(&mut self, library: usize, name: &str) -> String {
        if let Some(name) = self.names.get(&(library, name.to_owned())) {
            return name.clone();
        }
        // In each crate the compiler numbers constants from the same number on.
        let mut own = name.to_owned();
        while !self.taken.insert(own.clone()) {
            own = format!("{own}_linked_{library}");
        }
        self.names.insert((library, name.to_owned()), own.clone());
        let definitions = &self.libraries[library].definitions;
        let mut text = with_symbol_renamed(&definitions[name].text, name, &own);
        // Before the functions that it calls, because one of them may call it.
        self.text.extend(prototype(&text));
        let used: Vec<String> = symbols(&text).into_iter().filter(|symbol| *symbol != own).map(str::to_owned).collect();
        for symbol in used {
            let of = if definitions.contains_key(&symbol) { Some(library) } else { find(self.libraries, &symbol) };
            if let Some(of) = of {
                let renamed = self.define(of, &symbol);
                text = with_symbol_renamed(&text, &symbol, &renamed);
            }
        }
        self.text.push_str(&text);
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = ".version 7.0\n.target sm_75\n.address_size 64\n";

    fn file(dir: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
        let file = dir.path().join(name);
        fs::write(&file, format!("// a comment\n{HEADER}\n{text}")).unwrap();
        file
    }

    #[test]
    fn a_declared_static_is_defined_from_its_crate() {
        let dir = tempfile::tempdir().unwrap();
        let tables = file(
            &dir,
            "tables.s",
            ".visible .global .align 2 .b8 TABLE[4] = {1, 2,\n3, 4};\n.visible .global .align 4 .b32 OTHER;\n\
             .global .align 4 .b8 HIDDEN[4];\n",
        );
        let declared = format!(
            "{HEADER}.extern .global .align 2 .b8 TABLE[4];\n.extern .global .align 4 .b32 MISSING;\n\
             .extern .global .align 4 .b8 HIDDEN[4];\n.visible .entry k()\n{{\nTABLE MISSING HIDDEN\n}}\n"
        );
        let other = ".visible .entry l()\n{\n}\n".to_owned();
        let mut parts = [declared.clone(), other.clone()];
        link(&mut parts, &[tables]).unwrap();
        let defined = declared
            .replace(".extern .global .align 2 .b8 TABLE[4];", ".global .align 2 .b8 TABLE[4] = {1, 2,\n3, 4};");
        assert_eq!(parts, [defined, other]);
    }

    /// A function, and what it uses in its crate and in others, come before the kernel; nothing else does.
    #[test]
    fn a_called_function_is_copied_with_what_it_uses() {
        let dir = tempfile::tempdir().unwrap();
        let core = file(
            &dir,
            "core.s",
            ".extern .func (.param .b32 r) memcmp(\n\t.param .b64 p\n)\n;\n.func helper()\n;\n\
             .global .align 1 .b8 anon_1[2] = {7, 8};\n\
             .visible .func search()\n{\n\tcall.uni helper;\n\tcall.uni (r), memcmp, (p);\n}\n\
             .func helper()\n{\n\tmov.b64 %rd1, anon_1;\n}\n.visible .func unused()\n{\n\tret;\n}\n",
        );
        let builtins =
            file(&dir, "builtins.s", ".weak .func (.param .b32 r) memcmp(\n\t.param .b64 p\n)\n{\n\tret;\n}\n");
        let part = format!(
            "{HEADER}.extern .func search\n()\n;\n.extern .func elsewhere()\n;\n\
             .global .align 1 .b8 anon_1[1] = {{9}};\n\
             .visible .entry k()\n{{\n\tmov.b64 %rd1, anon_1;\n\tcall.uni search;\n}}\n"
        );
        let mut parts = [part];
        link(&mut parts, &[core, builtins]).unwrap();
        let [linked] = &parts;
        let at = |text: &str| linked.find(text).unwrap_or_else(|| panic!("`{text}` is not in {linked}"));
        assert!(at(".func search()\n;") < at(".func search()\n{"), "{linked}");
        assert!(at(".func helper()\n{") < at(".func search()\n{"), "{linked}");
        assert!(at(".func (.param .b32 r) memcmp(\n\t.param .b64 p\n)\n{") < at(".func search()\n{"), "{linked}");
        assert!(at("call.uni search") > at(".func search()\n{"), "{linked}");
        // The crates' constants of the same name stay apart.
        assert!(linked.contains("anon_1[1] = {9}") && linked.contains("mov.b64 %rd1, anon_1;"), "{linked}");
        assert!(
            linked.contains("anon_1_linked_0[2] = {7, 8}") && linked.contains("mov.b64 %rd1, anon_1_linked_0;"),
            "{linked}"
        );
        assert!(!linked.contains("unused") && !linked.contains(".weak"), "{linked}");
        assert_eq!(linked.matches(".visible").count(), 1, "{linked}");
        assert_eq!(linked.matches(".extern").count(), 1, "only the unused declaration stays: {linked}");
        // What is linked stays the same.
        let before = parts.clone();
        link(&mut parts, &[]).unwrap();
        assert_eq!(parts, before);
    }

    #[test]
    fn functions_that_call_each_other_are_declared_first() {
        let dir = tempfile::tempdir().unwrap();
        let library = file(
            &dir,
            "even.s",
            ".func odd()\n;\n.visible .func even()\n{\n\tcall.uni odd;\n}\n.func odd()\n{\n\tcall.uni even;\n}\n",
        );
        let mut parts = [format!("{HEADER}.extern .func even()\n;\n.visible .entry k()\n{{\n\tcall.uni even;\n}}\n")];
        link(&mut parts, &[library]).unwrap();
        let [linked] = &parts;
        let order = [".func even()\n;", ".func odd()\n;", ".func odd()\n{", ".func even()\n{", ".visible .entry k"];
        let positions = order.map(|text| linked.find(text).unwrap_or_else(|| panic!("`{text}` is not in {linked}")));
        assert!(positions.is_sorted(), "{linked}");
    }

    /// A crate's own definition replaces the weak one of the compiler's.
    #[test]
    fn a_weak_definition_is_the_last_resort() {
        let dir = tempfile::tempdir().unwrap();
        let weak = file(&dir, "weak.s", ".weak .func f()\n{\n\tmov.b32 %r1, 1;\n}\n");
        let strong = file(&dir, "strong.s", ".visible .func f()\n{\n\tmov.b32 %r1, 2;\n}\n");
        let mut parts = [format!("{HEADER}.extern .func f()\n;\n.visible .entry k()\n{{\n\tcall.uni f;\n}}\n")];
        link(&mut parts, &[weak, strong]).unwrap();
        assert!(parts[0].contains("%r1, 2;") && !parts[0].contains("%r1, 1;"), "{}", parts[0]);
    }

    #[test]
    fn unused_declarations_stay() {
        let part =
            format!("{HEADER}.extern .func f()\n;\n.func g()\n{{\n\tcall.uni f;\n}}\n.visible .entry k()\n{{\n}}\n");
        assert!(used_declarations(&top_level_items(&part)).is_empty());
        let shared =
            format!("{HEADER}.extern .shared .align 16 .b8 s[];\n.visible .entry k()\n{{\n\tmov.u32 %r1, s;\n}}\n");
        assert!(used_declarations(&top_level_items(&shared)).is_empty());
    }
}
