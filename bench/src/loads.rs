//! The bytes that one thread of a kernel has in flight from global memory, computed from its PTX.
//!
//! A thread of a GPU does not stop at a load. It continues past other loads, branches and barriers, until an
//! instruction names a register that a load has not filled yet. So a load is outstanding at a point of the program if
//!
//! - it reaches that point: on some path from the load to it, no instruction names the load's registers; and
//! - its registers are live there: on some path from the point, an instruction reads them. (`ptxas` moves a load to
//!   the paths that read its registers.)
//!
//! Both are data-flow problems (reaching definitions, live registers), iterated to a fixed point. Bytes are counted per
//! register, so that two branches that load the same register count once.
//!
//! The result is the maximum that the PTX allows, not a measurement: `ptxas` may move loads together, or apart to save
//! registers, and a branch or predicate may skip some. Loads from generic addresses are not counted, nor are copies to
//! shared memory, which fill no register; the kernels here have neither.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The maximum number of bytes that a thread running this entry has in flight.
pub fn bytes_in_flight(ptx: &str) -> u32 {
    let program = Program::parse(ptx);
    let live = program.live_registers();
    // The loads that are outstanding before each reachable instruction, as indices of instructions.
    let mut before: Vec<Option<BTreeSet<usize>>> = vec![None; program.instructions.len()];
    let mut work = vec![(0, BTreeSet::new())];
    while let Some((at, outstanding)) = work.pop() {
        let Some(known) = before.get_mut(at) else { continue };
        if known.as_ref().is_some_and(|known| known.is_superset(&outstanding)) {
            continue;
        }
        let known = known.get_or_insert_default();
        known.extend(outstanding);
        let after = program.after(at, known);
        for next in program.next(at) {
            let is_live = |&load: &usize| program.instructions[load].loaded().any(|r| live[next].contains(r));
            work.push((next, after.iter().copied().filter(is_live).collect()));
        }
    }
    before.iter().flatten().map(|outstanding| program.bytes(outstanding)).max().unwrap_or(0)
}

/// The instructions of an entry, in order.
struct Program<'a> {
    instructions: Vec<Instruction<'a>>,
    labels: HashMap<&'a str, usize>,
}

struct Instruction<'a> {
    is_predicated: bool,
    /// The opcode with its modifiers: `ld.global.v4.b32`.
    opcode: &'a str,
    operands: &'a str,
}

impl<'a> Program<'a> {
    fn parse(ptx: &'a str) -> Self {
        let mut program = Self { instructions: Vec::new(), labels: HashMap::new() };
        // The head of the entry, before the body, names no registers.
        let body = ptx.find("\n{").map_or(ptx, |head| &ptx[head..]);
        let lines = body.lines().map(|line| line.split("//").next().unwrap_or_default());
        for statement in lines.flat_map(|line| line.split(';')) {
            // Braces are scopes opened by inline assembly.
            let statement = statement.trim_start_matches(|c: char| c.is_whitespace() || c == '{' || c == '}');
            // Before a colon, an instruction has dots or blanks, and a label has neither.
            let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'));
            let (label, text) = statement.split_once(':').filter(|(label, _)| is_name(label)).unzip();
            program.labels.extend(label.map(|label| (label, program.instructions.len())));
            program.instructions.extend(Instruction::parse(text.unwrap_or(statement).trim()));
        }
        program
    }

    /// The live registers before each instruction: those that an instruction on some path reads before a load fills
    /// them again.
    fn live_registers(&self) -> Vec<BTreeSet<&'a str>> {
        let mut live = vec![BTreeSet::new(); self.instructions.len()];
        let mut is_changing = true;
        while is_changing {
            is_changing = false;
            for at in (0..self.instructions.len()).rev() {
                let own = &self.instructions[at];
                let mut here: BTreeSet<&str> = self.next(at).into_iter().flat_map(|next| live[next].clone()).collect();
                own.loaded().for_each(|register| {
                    here.remove(register);
                });
                here.extend(registers_in(&own.operands[own.destination().len()..]));
                is_changing |= here != live[at];
                live[at] = here;
            }
        }
        live
    }

    /// The outstanding loads after an instruction.
    fn after(&self, at: usize, before: &BTreeSet<usize>) -> BTreeSet<usize> {
        let own = &self.instructions[at];
        let named: Vec<&str> = registers_in(own.operands).collect();
        let waits_for = |&load: &usize| self.instructions[load].loaded().any(|register| named.contains(&register));
        let mut after: BTreeSet<usize> = before.iter().copied().filter(|load| !waits_for(load)).collect();
        if own.bytes_of_register().is_some() {
            after.insert(at);
        }
        after
    }

    fn bytes(&self, outstanding: &BTreeSet<usize>) -> u32 {
        let mut registers = BTreeMap::new();
        for &at in outstanding {
            let load = &self.instructions[at];
            registers.extend(load.loaded().map(|register| (register, load.bytes_of_register().unwrap_or(0))));
        }
        registers.values().sum()
    }

    /// The successors of an instruction.
    fn next(&self, at: usize) -> Vec<usize> {
        let Instruction { is_predicated, opcode, operands } = self.instructions[at];
        let name = opcode.split('.').next().unwrap_or_default();
        let target = if name == "bra" { self.labels.get(operands.trim()).copied() } else { None };
        let is_end = matches!(name, "bra" | "ret" | "exit" | "trap") && !is_predicated;
        let following = if is_end { None } else { Some(at + 1) };
        target.into_iter().chain(following).filter(|&next| next < self.instructions.len()).collect()
    }
}

impl<'a> Instruction<'a> {
    /// `None` for a directive (`.reg`, `.shared`).
    fn parse(text: &'a str) -> Option<Self> {
        let (is_predicated, text) = match text.strip_prefix('@') {
            Some(rest) => (true, rest.split_once(char::is_whitespace)?.1.trim_start()),
            None => (false, text),
        };
        let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        (!opcode.is_empty() && !opcode.starts_with('.')).then_some(Self { is_predicated, opcode, operands })
    }

    /// The bytes of each destination register, if this is a load from global memory.
    fn bytes_of_register(&self) -> Option<u32> {
        let mut modifiers = self.opcode.split('.');
        let is_load = matches!(modifiers.next(), Some("ld" | "ldu"));
        let (mut is_global, mut bits) = (false, None);
        for modifier in modifiers {
            is_global |= modifier == "global";
            // The type is the last modifier, and the only one that consists of letters and a number of bits.
            bits = modifier.trim_start_matches(['b', 'u', 's', 'f']).parse::<u32>().ok().or(bits);
        }
        bits.filter(|_| is_load && is_global).map(|bits| bits / 8)
    }

    /// The destination operands, if this is a load from global memory.
    fn destination(&self) -> &'a str {
        match self.bytes_of_register() {
            Some(_) => self.operands.split('[').next().unwrap_or_default(),
            None => "",
        }
    }

    /// The destination registers, if this is a load from global memory.
    fn loaded(&self) -> impl Iterator<Item = &'a str> {
        registers_in(self.destination())
    }
}

/// The registers that operands name, to read or to write.
fn registers_in(operands: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '%' | '_' | '$' | '.');
    operands.split(move |c| !is_part(c)).filter(|word| word.starts_with(|c: char| c == '%' || c.is_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes in flight of a body, after which these registers are used.
    fn of(body: &str, used: &str) -> u32 {
        let body = format!("{body}\n\tst.global.v4.b32 [%rd99], {{{used}}};\n\tret;");
        bytes_in_flight(&format!(".visible .entry k(\n\t.param .u64 k_param_0\n)\n{{\n{body}\n}}\n"))
    }

    #[test]
    fn a_use_between_two_loads() {
        assert_eq!(of("ld.global.b32 %r1, [%rd1];\nadd.s32 %r3, %r1, 1;\nld.global.b32 %r2, [%rd1];", "%r2, %r3"), 4);
        assert_eq!(of("mov.u32 %r1, %tid.x;", "%r1"), 0);
    }

    #[test]
    fn several_before_the_first_use() {
        assert_eq!(of("ld.global.b32 %r1, [%rd1];\nld.global.f64 %fd1, [%rd2];", "%r1, %fd1"), 12);
        // The address of the second load is the result of the first.
        assert_eq!(of("ld.global.b64 %rd1, [%rd3];\nld.global.b64 %rd2, [%rd1];", "%rd1, %rd2"), 8);
    }

    #[test]
    fn vectors() {
        let four = "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd2];\n";
        assert_eq!(of(&format!("ld.global.v2.b64 {{%rd5, %rd6}}, [%rd1];\n{four}"), "%rd5, %r1"), 32);
        // An instruction that uses one register of the load waits for the whole load.
        let used = format!("{four}st.global.b32 [%rd9], %r3;\n");
        assert_eq!(of(&format!("{used}ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%rd2];"), "%r1, %r5"), 16);
    }

    #[test]
    fn names_that_begin_alike() {
        let body = "ld.global.b32 %r1, [%rd1];\nadd.s32 %r2, %r11, %r10;\nld.global.b32 %r5, [%rd1];";
        assert_eq!(of(body, "%r1, %r5"), 8);
    }

    #[test]
    fn loops() {
        // The load's result is used in the next iteration, so only one load is in flight at a time.
        let pipelined = "$L1:\nadd.s32 %r9, %r9, %r1;\nld.global.b32 %r1, [%rd1];\n@%p1 bra $L1;";
        assert_eq!(of(pipelined, "%r1"), 4);
        // Two loads in each iteration. The second load's result is used after the loop, the first load's before or
        // after the second load.
        let carried =
            "$L1:\nld.global.b32 %r1, [%rd1];\nadd.s32 %r9, %r9, %r1;\nld.global.b32 %r2, [%rd2];\n@%p1 bra $L1;";
        assert_eq!(of(carried, "%r2"), 4);
        let early =
            "$L1:\nld.global.b32 %r2, [%rd2];\nld.global.b32 %r1, [%rd1];\nadd.s32 %r9, %r9, %r1;\n@%p1 bra $L1;";
        assert_eq!(of(early, "%r2"), 8);
    }

    #[test]
    fn branches_do_not_wait() {
        // What rustc generates for "the element, or the identity": a branch around each load.
        let body = "@%p1 bra $L1;\nld.global.b32 %r1, [%rd1];\n$L1:\n@%p2 bra $L2;\nld.global.b32 %r2, [%rd2];\n$L2:";
        assert_eq!(of(body, "%r1, %r2"), 8);
        // Two branches that load the same register, one of which is taken.
        let either = "@%p1 bra $L1;\nld.global.b32 %r1, [%rd1];\nbra.uni $L2;\n$L1:\nld.global.b32 %r1, [%rd2];\n$L2:";
        assert_eq!(of(either, "%r1"), 4);
    }

    #[test]
    fn paths_that_are_not_taken() {
        // Code after an unconditional jump is unreachable.
        let jumped = "ld.global.b32 %r1, [%rd1];\nbra.uni $L1;\nld.global.v2.b32 {%r2, %r3}, [%rd1];\n$L1:";
        assert_eq!(of(jumped, "%r1, %r2"), 4);
        // After the use of the first load only the second counts: the first load's register is dead on the other path.
        let skipped =
            "ld.global.b32 %r1, [%rd1];\n@%p1 bra $L1;\nadd.s32 %r2, %r1, 1;\n$L1:\nld.global.b32 %r3, [%rd1];";
        assert_eq!(of(skipped, "%r3"), 4);
    }

    #[test]
    fn predicated_loads() {
        assert_eq!(of("@%p1 ld.global.b32 %r1, [%rd1];\n@!%p2 ld.global.b32 %r2, [%rd2];", "%r1, %r2"), 8);
    }

    #[test]
    fn loads_by_inline_assembly() {
        let body = "// begin inline asm\n{ .reg .b32 t; ld.volatile.global.b32 t, [%rd1]; mov.b32 %r1, t; }\n\
                    // end inline asm\nld.global.nc.L1::no_allocate.v4.b32 {%r2, %r3, %r4, %r5}, [%rd2];\n\
                    ld.acquire.gpu.global.u16 %rs1, [%rd3];";
        assert_eq!(of(body, "%r1, %r5, %rs1"), 18);
    }

    #[test]
    fn other_memory_is_not_counted() {
        let body = "ld.shared.b32 %r1, [%r9];\nld.param.b64 %rd1, [k_param_0];\natom.global.add.u32 %r2, [%rd1], 1;";
        assert_eq!(of(body, "%r1, %r2"), 0);
    }
}
