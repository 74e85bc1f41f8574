//! Static variables of the crates that a kernel crate uses.
//!
//! The PTX of a kernel crate contains the functions of other crates that its kernels call, but only declares the
//! statics of those crates (mostly tables of numbers). Nothing is linked, so the definitions are copied from the PTX of
//! those crates.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::ptx;

/// Replaces declarations of static variables in `parts` by their definitions from the crates' PTX in `folder`.
pub(crate) fn define(parts: &mut [String], folder: &Path) -> io::Result<()> {
    if !parts.iter().any(|part| part.lines().any(is_declaration)) {
        return Ok(());
    }
    let definitions = definitions(folder)?;
    for part in parts {
        *part = with_definitions(part, &definitions);
    }
    Ok(())
}

fn is_declaration(line: &str) -> bool {
    line.trim_start().starts_with(".extern .global")
}

/// The definitions of static variables in a folder's PTX, by name.
fn definitions(folder: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut definitions = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "s") {
            for item in ptx::top_level_items(&fs::read_to_string(&file)?) {
                if let Some(definition) = item.find(".visible .global").map(|at| &item[at..])
                    && let Some(name) = ptx::variable_name(definition)
                {
                    // Not visible outside the module, like the kernel crate's own statics.
                    definitions.insert(name, definition.trim_end().replacen(".visible ", "", 1));
                }
            }
        }
    }
    Ok(definitions)
}

/// The PTX with definitions in place of declarations.
fn with_definitions(part: &str, definitions: &BTreeMap<String, String>) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in part.lines() {
        let definition = is_declaration(line).then(|| ptx::variable_name(line)).flatten();
        lines.push(definition.and_then(|name| definitions.get(&name)).map_or(line, String::as_str));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_static_is_defined_from_its_crate() {
        let dir = tempfile::tempdir().unwrap();
        let of_crate = "// a comment\n.version 7.0\n.target sm_75\n.address_size 64\n\n\
                        .visible .global .align 2 .b8 TABLE[4] = {1, 2,\n3, 4};\n\
                        .visible .global .align 4 .b32 OTHER;\n";
        fs::write(dir.path().join("tables-1234.s"), of_crate).unwrap();
        fs::write(dir.path().join("tables-1234.d"), "not PTX").unwrap();
        let declared =
            ".extern .global .align 2 .b8 TABLE[4];\n.extern .global .align 4 .b32 MISSING;\n.visible .entry k";
        let mut parts = [declared.to_owned(), ".visible .entry l\n".to_owned()];
        define(&mut parts, dir.path()).unwrap();
        let defined = ".global .align 2 .b8 TABLE[4] = {1, 2,\n3, 4};\n\
                       .extern .global .align 4 .b32 MISSING;\n.visible .entry k\n";
        assert_eq!(parts, [defined, ".visible .entry l\n"]);
    }
}
