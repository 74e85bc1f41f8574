//! The places of a source where errors can be planted, and their changes.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use proc_macro2::Span;
use serde_json::{Value, json};

/// The kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `+`, `<<`, `&=`
    Operator,
    /// `<`, `==`
    Comparison,
    /// `&&`, `!`, a condition as a whole
    Logic,
    /// A literal
    Constant,
    /// A barrier or a fence, as a statement
    Barrier,
    /// Another call, as a statement
    Call,
    /// The end of a range, `min`, `div_ceil`
    Bound,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Operator => "operator",
            Self::Comparison => "comparison",
            Self::Logic => "logic",
            Self::Constant => "constant",
            Self::Barrier => "barrier",
            Self::Call => "call",
            Self::Bound => "bound",
        })
    }
}

/// Why no error can be selected at run time at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// A constant, a static, an array's length, a constant argument
    Constants,
    /// A pattern
    Patterns,
    /// Code for a GPU only
    DeviceOnly,
    /// A call that only constrains the compiler's order of loads: it can change no result and no counter
    Hints,
    /// A macro's definition or call that is not Rust by itself
    Macros,
    /// A constant function that only the compiler runs
    ConstantFunctions,
    /// The mutant does not compile
    DoesNotCompile,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Constants => "in constants, array lengths and constant arguments",
            Self::Patterns => "in patterns",
            Self::DeviceOnly => "in code for a GPU only",
            Self::Hints => "that tell the compiler in which order to load",
            Self::Macros => "in macros that cannot be parsed (their operators and literals)",
            Self::ConstantFunctions => "in constant functions that only the compiler runs (of those drawn)",
            Self::DoesNotCompile => "whose change does not compile (of those drawn)",
        })
    }
}

/// The number of places left out, by reason.
pub type Counts = BTreeMap<LeftOut, usize>;

/// The counts as JSON.
pub fn counts_as_json(counts: &Counts) -> Value {
    counts.iter().map(|(reason, count)| json!({ "reason": reason.to_string(), "count": count })).collect()
}

/// Whether a place is an expression, which can be replaced, or a statement, which can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Expression,
    Statement,
}

/// A text that replaces some bytes of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// A place where an error can be planted.
#[derive(Clone, Debug)]
pub struct Place {
    /// The bytes of the expression or the statement.
    pub range: Range<usize>,
    /// The first byte of the change.
    pub focus: usize,
    pub kind: Kind,
    pub form: Form,
    /// The possible changes; one of them is planted.
    pub changes: Vec<Vec<Edit>>,
    /// The compiler may also run this code, and then never with an error.
    pub in_const_fn: bool,
}

/// A source's places, and the places left out.
#[derive(Debug, Default)]
pub struct Found {
    pub places: Vec<Place>,
    pub left_out: Counts,
    /// The byte ranges of tests.
    pub tests: Vec<Range<usize>>,
    /// Modules in other files that are compiled only for a GPU.
    pub device_modules: Vec<String>,
}

/// The byte range of tokens in the source. A macro variable begins at its `$`.
pub fn bytes(source: &str, span: Span) -> Range<usize> {
    let range = span.byte_range();
    let dollar = range.start > 0 && source.as_bytes()[range.start - 1] == b'$';
    range.start - usize::from(dollar)..range.end
}
