//! Mutation sites: the expressions and statements that can be mutated.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use proc_macro2::Span;
use serde_json::{Value, json};

/// The kind of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `+`, `<<`, `&=`
    Operator,
    /// `<`, `==`
    Comparison,
    /// `&&`, `!`, a condition as a whole
    Logic,
    /// A literal number or boolean
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

/// Why a site is excluded: its mutation could not be activated at run time, or could not be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exclusion {
    /// In a constant, a static, an array's length or a const generic argument
    Constants,
    /// In a pattern
    Patterns,
    /// In code that is compiled only for a GPU
    DeviceOnly,
    /// A call that only constrains how the compiler schedules loads: it affects no result and no counter
    Hints,
    /// In a macro that cannot be parsed as Rust
    Macros,
    /// In a `const fn` that only the compiler runs
    ConstantFunctions,
    /// The mutant does not compile
    Unviable,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Constants => "in constants, array lengths and const generic arguments",
            Self::Patterns => "in patterns",
            Self::DeviceOnly => "in code that is compiled only for a GPU",
            Self::Hints => "calls that only constrain how the compiler schedules loads",
            Self::Macros => "in macros that cannot be parsed (operators and numbers)",
            Self::ConstantFunctions => "in const functions that only the compiler runs (of the sample)",
            Self::Unviable => "whose mutation does not compile (of the sample)",
        })
    }
}

/// The number of excluded sites, by reason.
pub type Counts = BTreeMap<Exclusion, usize>;

/// The counts as JSON.
pub fn counts_as_json(counts: &Counts) -> Value {
    counts.iter().map(|(reason, count)| json!({ "reason": reason.to_string(), "count": count })).collect()
}

/// Whether a site is an expression, which is replaced, or a statement, which is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Expression,
    Statement,
}

/// The replacement of a byte range of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub range: Range<usize>,
    pub text: String,
}

/// An expression or a statement that can be mutated.
#[derive(Clone, Debug)]
pub struct Site {
    /// The bytes of the expression or the statement.
    pub range: Range<usize>,
    /// The position of the mutated operator, name or literal.
    pub focus: usize,
    pub kind: Kind,
    pub form: Form,
    /// The mutations, each as edits. A mutant has one of them.
    pub mutations: Vec<Vec<Edit>>,
    /// Whether the compiler may also run this code. It always runs the original.
    pub in_const_fn: bool,
}

/// The sites of a source, and the numbers of excluded sites.
#[derive(Debug, Default)]
pub struct SourceSites {
    pub sites: Vec<Site>,
    pub excluded: Counts,
    /// The byte ranges of unit tests.
    pub tests: Vec<Range<usize>>,
    /// Modules in other files that are compiled only for a GPU.
    pub device_modules: Vec<String>,
}

/// The byte range of tokens in the source. A macro variable begins at its `$`.
pub fn byte_range(source: &str, span: Span) -> Range<usize> {
    let range = span.byte_range();
    let dollar = range.start > 0 && source.as_bytes()[range.start - 1] == b'$';
    range.start - usize::from(dollar)..range.end
}
