//! Rewrites a source so that each of its mutants can be activated at run time.

use std::ops::Range;

use super::mutations::{apply, one_line};
use super::sample::Mutant;
use super::sites::Form;

/// A rewritten source.
pub struct Rewritten {
    pub text: String,
    /// The position of each mutant, by its number.
    pub mutants: Vec<(u32, Range<usize>)>,
}

/// The source with these mutants compiled in. Line numbers do not change.
pub fn rewrite(source: &str, mutants: &[&Mutant]) -> Rewritten {
    let mut mutants = mutants.to_vec();
    mutants.sort_by_key(|mutant| (mutant.site.range.start, usize::MAX - mutant.site.range.end, mutant.number));
    let mut rewritten = Rewritten { text: String::new(), mutants: Vec::new() };
    write_range(source, 0..source.len(), &mutants, &mut rewritten);
    rewritten
}

/// Writes a range of the source, with the mutants in it. Each mutant comes before those inside it.
fn write_range(source: &str, part: Range<usize>, mutants: &[&Mutant], to: &mut Rewritten) {
    let mut at = part.start;
    let mut rest = mutants;
    while let [mutant, others @ ..] = rest {
        let range = mutant.site.range.clone();
        let inner = others.iter().take_while(|other| other.site.range.start < range.end).count();
        let (inner, others) = others.split_at(inner);
        to.text += &source[at..range.start];
        let start = to.text.len();
        let number = mutant.number;
        match mutant.site.form {
            Form::Expression => {
                let mutated = mutated(source, mutant).unwrap_or_default();
                to.text += &format!("(if ::mutant_switch::is_active({number}) {{ {mutated} }} else {{ ");
                write_range(source, range.clone(), inner, to);
                to.text += " })";
            }
            Form::Statement => {
                to.text += &format!("if !::mutant_switch::is_active({number}) {{ ");
                write_range(source, range.clone(), inner, to);
                to.text += " }";
            }
        }
        to.mutants.push((number, start..to.text.len()));
        at = range.end;
        rest = others;
    }
    to.text += &source[at..part.end];
}

/// The mutated site as one line; `None` if it is not Rust, as in a macro that repeats half of an expression.
pub fn mutated(source: &str, mutant: &Mutant) -> Option<String> {
    one_line(&apply(source, &mutant.site.range, mutant.edits()))
}
