//! Places in macros: in the arguments of `assert!` and similar macros, and in the definitions of macros that expand to
//! Rust.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Expr, Token};

use super::finder::Finder;
use super::places::LeftOut;

/// Processes a macro call, if the macro takes expressions.
pub fn call(finder: &mut Finder<'_>, call: &syn::Macro) {
    const OF_EXPRESSIONS: [&str; 7] =
        ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "vec"];
    let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    let expressions = OF_EXPRESSIONS
        .contains(&name.as_str())
        .then(|| Punctuated::<Expr, Token![,]>::parse_terminated.parse2(call.tokens.clone()).ok())
        .flatten();
    match expressions {
        Some(expressions) => expressions.iter().for_each(|expression| finder.visit_expr(expression)),
        None => finder.count_left_out(LeftOut::Macros, changeable(call.tokens.clone())),
    }
}

/// Processes a macro definition. Its expansion is parsed with the variables as names and each repetition once; a place
/// that then does not compile is left out later.
pub fn definition(finder: &mut Finder<'_>, item: &syn::ItemMacro) {
    let is_exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
    for body in bodies(item.mac.tokens.clone()) {
        // Other crates do not have the switch.
        if is_exported || !parsed(finder, flattened(body.clone())) {
            finder.count_left_out(LeftOut::Macros, changeable(body));
        }
    }
}

/// The expansion of each rule.
fn bodies(rules: TokenStream) -> Vec<TokenStream> {
    let mut bodies = Vec::new();
    let mut is_body = false;
    let mut tokens = rules.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '=' => {
                is_body = matches!(tokens.peek(), Some(TokenTree::Punct(next)) if next.as_char() == '>');
            }
            TokenTree::Punct(punct) if punct.as_char() == '>' => {}
            TokenTree::Group(group) if is_body => {
                bodies.push(group.stream());
                is_body = false;
            }
            _ => is_body = false,
        }
    }
    bodies
}

/// `$name` as `name`, and `$(...),*` as its contents.
fn flattened(tokens: TokenStream) -> TokenStream {
    let mut flat = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Group(group)) => {
                    flat.extend(flattened(group.stream()));
                    // The separator, if any, and the repetition operator.
                    while let Some(TokenTree::Punct(sign)) = tokens.next() {
                        if matches!(sign.as_char(), '*' | '+' | '?') {
                            break;
                        }
                    }
                }
                Some(TokenTree::Ident(name)) if name == "crate" => {
                    let name = Ident::new("crate", name.span());
                    flat.extend(quote!(#name));
                }
                other => flat.extend(other),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), flattened(group.stream()));
                inner.set_span(group.span());
                flat.extend([TokenTree::Group(inner)]);
            }
            other => flat.extend([other]),
        }
    }
    flat
}

/// Visits tokens as items, as items of a trait's implementation, or as statements. Returns false if they are none of
/// these.
fn parsed(finder: &mut Finder<'_>, tokens: TokenStream) -> bool {
    if let Ok(file) = syn::parse2::<syn::File>(tokens.clone()) {
        finder.visit_file(&file);
        return true;
    }
    let items = |input: ParseStream<'_>| {
        let mut items = Vec::new();
        while !input.is_empty() {
            items.push(input.parse::<syn::ImplItem>()?);
        }
        Ok(items)
    };
    if let Ok(items) = items.parse2(tokens.clone()) {
        items.iter().for_each(|item| finder.visit_impl_item(item));
        return true;
    }
    if let Ok(statements) = syn::Block::parse_within.parse2(tokens) {
        statements.iter().for_each(|statement| finder.visit_stmt(statement));
        return true;
    }
    false
}

/// The number of literals and operators in the tokens.
fn changeable(tokens: TokenStream) -> usize {
    let one = |token| match token {
        TokenTree::Group(group) => changeable(group.stream()),
        TokenTree::Literal(literal) => usize::from(!literal.to_string().starts_with(['"', '\'', 'b', 'c', 'r'])),
        TokenTree::Punct(punct) => usize::from("+-*/%<>&|^!".contains(punct.as_char())),
        TokenTree::Ident(_) => 0,
    };
    tokens.into_iter().map(one).sum()
}
