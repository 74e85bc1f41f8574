//! Rewrites a source so that each of some errors can be selected at run time.

use std::ops::Range;

use super::changes::{edited, one_line};
use super::draw::Mutant;
use super::places::Form;

/// A rewritten source.
pub struct Rewritten {
    pub text: String,
    /// The position of each mutant, by its number.
    pub mutants: Vec<(u32, Range<usize>)>,
}

/// Writes a source with these of its mutants compiled in. Line numbers do not change.
pub fn rewrite(source: &str, mutants: &[&Mutant]) -> Rewritten {
    let mut mutants = mutants.to_vec();
    mutants.sort_by_key(|mutant| (mutant.place.range.start, usize::MAX - mutant.place.range.end, mutant.number));
    let mut rewritten = Rewritten { text: String::new(), mutants: Vec::new() };
    write_part(source, 0..source.len(), &mutants, &mut rewritten);
    rewritten
}

/// Writes a part of the source; `mutants` are those in it, outer ones before inner ones.
fn write_part(source: &str, part: Range<usize>, mutants: &[&Mutant], to: &mut Rewritten) {
    let mut at = part.start;
    let mut rest = mutants;
    while let [mutant, others @ ..] = rest {
        let range = mutant.place.range.clone();
        let inner = others.iter().take_while(|other| other.place.range.start < range.end).count();
        let (inner, others) = others.split_at(inner);
        to.text += &source[at..range.start];
        let start = to.text.len();
        let number = mutant.number;
        match mutant.place.form {
            Form::Expression => {
                let changed = changed(source, mutant).unwrap_or_default();
                to.text += &format!("(if ::mutant_switch::is({number}) {{ {changed} }} else {{ ");
                write_part(source, range.clone(), inner, to);
                to.text += " })";
            }
            Form::Statement => {
                to.text += &format!("if !::mutant_switch::is({number}) {{ ");
                write_part(source, range.clone(), inner, to);
                to.text += " }";
            }
        }
        to.mutants.push((number, start..to.text.len()));
        at = range.end;
        rest = others;
    }
    to.text += &source[at..part.end];
}

/// The place with its error, as one line; `None` if it is not Rust, as in a macro that repeats half of an expression.
pub fn changed(source: &str, mutant: &Mutant) -> Option<String> {
    one_line(&edited(source, &mutant.place.range, mutant.edits()))
}
