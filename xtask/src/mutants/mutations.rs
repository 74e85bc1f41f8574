//! The mutations of a site.

use std::ops::Range;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, Lit, UnOp};

use super::sites::{Edit, Kind, byte_range};

/// The position of the operator, name or literal that a mutation replaces, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Focus(pub usize);

fn edit(range: Range<usize>, text: impl Into<String>) -> Edit {
    Edit { range, text: text.into() }
}

/// The tokens of a text as one line, without comments; `None` if its brackets do not match.
pub fn one_line(text: &str) -> Option<String> {
    text.parse::<TokenStream>().ok().map(|tokens| tokens.to_string())
}

/// Tokens as one line.
pub fn one_line_of(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

/// The range of the source with the edits applied.
pub fn apply(source: &str, range: &Range<usize>, edits: &[Edit]) -> String {
    let mut edits: Vec<_> = edits.iter().collect();
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut text = String::new();
    let mut at = range.start;
    for Edit { range, text: new } in edits {
        text += &source[at..range.start];
        text += new;
        at = range.end;
    }
    text + &source[at..range.end]
}

/// The mutations of an expression's operator, method or literal.
pub fn of_expression(source: &str, expression: &Expr) -> Option<(Focus, Kind, Vec<Vec<Edit>>)> {
    match expression {
        Expr::Binary(binary) => {
            let (kind, replacements) = replacements(&binary.op)?;
            let operator = byte_range(source, binary.op.span());
            // The operands get parentheses, because the other operator may have another precedence.
            let sides = if is_assignment(&binary.op) {
                parenthesized(source, binary.right.span())
            } else {
                [parenthesized(source, binary.left.span()), parenthesized(source, binary.right.span())].concat()
            };
            let mutation = |other: &&str| [vec![edit(operator.clone(), *other)], sides.clone()].concat();
            Some((Focus(operator.start), kind, replacements.iter().map(mutation).collect()))
        }
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) => {
            let operator = byte_range(source, unary.op.span());
            let kind = if matches!(unary.op, UnOp::Not(_)) { Kind::Logic } else { Kind::Operator };
            Some((Focus(operator.start), kind, vec![vec![edit(operator, "")]]))
        }
        Expr::Lit(literal) => {
            let range = byte_range(source, literal.lit.span());
            let (kind, replacements) = literal_replacements(&literal.lit)?;
            let mutation = |other: String| vec![edit(range.clone(), other)];
            Some((Focus(range.start), kind, replacements.into_iter().map(mutation).collect()))
        }
        Expr::MethodCall(call) => of_method(source, call),
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return None };
            let name = &path.path.segments.last()?.ident;
            let other = counterpart(&name.to_string())?;
            let range = byte_range(source, name.span());
            Some((Focus(range.start), Kind::Bound, vec![vec![edit(range, other)]]))
        }
        _ => None,
    }
}

fn parenthesized(source: &str, span: Span) -> Vec<Edit> {
    let Range { start, end } = byte_range(source, span);
    vec![edit(start..start, "("), edit(end..end, ")")]
}

fn is_assignment(operator: &BinOp) -> bool {
    replacements(operator).is_some_and(|(_, replacements)| replacements[0].ends_with('=') && replacements[0].len() > 1)
        && !matches!(operator, BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_))
}

fn replacements(operator: &BinOp) -> Option<(Kind, &'static [&'static str])> {
    use Kind::{Comparison, Logic, Operator};
    Some(match operator {
        BinOp::Add(_) => (Operator, &["-"]),
        BinOp::Sub(_) => (Operator, &["+"]),
        BinOp::Mul(_) => (Operator, &["+"]),
        BinOp::Div(_) => (Operator, &["*"]),
        BinOp::Rem(_) => (Operator, &["/"]),
        BinOp::Shl(_) => (Operator, &[">>"]),
        BinOp::Shr(_) => (Operator, &["<<"]),
        BinOp::BitAnd(_) => (Operator, &["|"]),
        BinOp::BitOr(_) => (Operator, &["&"]),
        BinOp::BitXor(_) => (Operator, &["|"]),
        BinOp::AddAssign(_) => (Operator, &["-="]),
        BinOp::SubAssign(_) => (Operator, &["+="]),
        BinOp::MulAssign(_) => (Operator, &["+="]),
        BinOp::DivAssign(_) => (Operator, &["*="]),
        BinOp::RemAssign(_) => (Operator, &["/="]),
        BinOp::ShlAssign(_) => (Operator, &[">>="]),
        BinOp::ShrAssign(_) => (Operator, &["<<="]),
        BinOp::BitAndAssign(_) => (Operator, &["|="]),
        BinOp::BitOrAssign(_) => (Operator, &["&="]),
        BinOp::BitXorAssign(_) => (Operator, &["|="]),
        BinOp::And(_) => (Logic, &["||"]),
        BinOp::Or(_) => (Logic, &["&&"]),
        BinOp::Lt(_) => (Comparison, &["<=", ">="]),
        BinOp::Le(_) => (Comparison, &["<", ">"]),
        BinOp::Gt(_) => (Comparison, &[">=", "<="]),
        BinOp::Ge(_) => (Comparison, &[">", "<"]),
        BinOp::Eq(_) => (Comparison, &["!="]),
        BinOp::Ne(_) => (Comparison, &["=="]),
        _ => return None,
    })
}

/// The literal plus and minus one, or the other boolean.
fn literal_replacements(literal: &Lit) -> Option<(Kind, Vec<String>)> {
    match literal {
        Lit::Int(number) => {
            let value: u128 = number.base10_parse().ok()?;
            let suffix = number.suffix();
            let more = value.checked_add(1).map(|value| format!("{value}{suffix}"));
            let less = value.checked_sub(1).map(|value| format!("{value}{suffix}"));
            Some((Kind::Constant, [more, less].into_iter().flatten().collect()))
        }
        // With a decimal point, so that it stays a float.
        Lit::Float(number) => {
            let value: f64 = number.base10_parse().ok()?;
            Some((Kind::Constant, vec![format!("{:?}{}", value + 1.0, number.suffix())]))
        }
        Lit::Bool(truth) => Some((Kind::Constant, vec![(!truth.value).to_string()])),
        _ => None,
    }
}

/// The function or method that replaces this one. Both have the same parameters.
fn counterpart(name: &str) -> Option<&'static str> {
    Some(match name {
        "min" => "max",
        "max" => "min",
        "minimum" => "maximum",
        "maximum" => "minimum",
        "all" => "any",
        "any" => "all",
        "wrapping_add" => "wrapping_sub",
        "wrapping_sub" => "wrapping_add",
        "saturating_sub" => "wrapping_sub",
        "wrapping_shl" => "wrapping_shr",
        "wrapping_shr" => "wrapping_shl",
        "leading_zeros" => "trailing_zeros",
        "trailing_zeros" => "leading_zeros",
        _ => return None,
    })
}

fn of_method(source: &str, call: &syn::ExprMethodCall) -> Option<(Focus, Kind, Vec<Vec<Edit>>)> {
    let name = byte_range(source, call.method.span());
    let of_name = |text: &str| Some((Focus(name.start), Kind::Bound, vec![vec![edit(name.clone(), text)]]));
    match (call.method.to_string().as_str(), call.args.len()) {
        // `/` rounds down instead of up.
        ("div_ceil", 1) => {
            let dot = byte_range(source, call.dot_token.span());
            let mutation = [parenthesized(source, call.receiver.span()), vec![edit(dot.start..name.end, " / ")]];
            Some((Focus(name.start), Kind::Bound, vec![mutation.concat()]))
        }
        ("is_multiple_of", 1) => {
            let start = byte_range(source, call.span()).start;
            Some((Focus(name.start), Kind::Logic, vec![vec![edit(start..start, "!")]]))
        }
        // `all` and `any` of iterators.
        (method @ ("all" | "any"), 1) => of_name(counterpart(method)?),
        ("all" | "any", _) => None,
        (method, _) => of_name(counterpart(method)?),
    }
}

/// The negation of a condition, unless its operator has mutations itself.
pub fn of_condition(source: &str, condition: &Expr) -> Option<Vec<Edit>> {
    match condition {
        Expr::Binary(_) | Expr::Let(_) | Expr::Lit(_) | Expr::Unary(_) => None,
        _ => {
            let Range { start, end } = byte_range(source, condition.span());
            Some(vec![edit(start..start, "!("), edit(end..end, ")")])
        }
    }
}

/// The end of a range plus and minus one. A literal has these mutations itself.
pub fn of_range_end(source: &str, end: &Expr) -> Option<(Focus, Vec<Vec<Edit>>)> {
    if matches!(end, Expr::Lit(_)) {
        return None;
    }
    let range = byte_range(source, end.span());
    let mutation = |text: &str| [parenthesized(source, end.span()), vec![edit(range.end..range.end, text)]].concat();
    Some((Focus(range.start), vec![mutation(" + 1"), mutation(" - 1")]))
}

/// Functions of `cuda_std` that emit no instruction, and only constrain how the compiler schedules loads.
const HINTS: [&str; 2] = ["compute_now", "issue_loads"];

/// Whether the expression calls one of the [`HINTS`].
pub fn is_hint(expression: &Expr) -> bool {
    called(expression).is_some_and(|name| HINTS.contains(&&*name))
}

/// The name of the function or method that an expression calls; empty if the function has no name.
fn called(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
            _ => Some(String::new()),
        },
        Expr::MethodCall(call) => Some(call.method.to_string()),
        _ => None,
    }
}

/// The kind of a statement that can be removed: a call whose value is unused.
pub fn of_statement(expression: &Expr) -> Option<Kind> {
    let name = called(expression)?;
    let is_barrier = ["sync_", "barrier", "fence"].iter().any(|word| name.contains(word));
    Some(if is_barrier { Kind::Barrier } else { Kind::Call })
}
