//! Rust code in macros: the arguments of `assert!` and similar macros, and the bodies of `macro_rules!`.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Token};

/// The arguments of a macro call, if the macro is known to take expressions.
pub fn expressions(call: &syn::Macro) -> Option<Punctuated<Expr, Token![,]>> {
    const TAKE_EXPRESSIONS: [&str; 7] =
        ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne", "vec"];
    let name = call.path.segments.last()?.ident.to_string();
    let takes_expressions = TAKE_EXPRESSIONS.contains(&name.as_str());
    takes_expressions.then(|| Punctuated::parse_terminated.parse2(call.tokens.clone()).ok()).flatten()
}

/// The body of each rule of a `macro_rules!`.
pub fn bodies(rules: TokenStream) -> Vec<TokenStream> {
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

/// The tokens with `$name` replaced by `name`, and `$(...),*` by its contents.
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

/// The body of a macro's rule, parsed.
pub enum Expansion {
    File(syn::File),
    ImplItems(Vec<syn::ImplItem>),
    Statements(Vec<syn::Stmt>),
}

impl Expansion {
    /// Parses the body of a rule, with variables as names and each repetition once. Returns `None` if the body is not
    /// Rust by itself. A site in it may still not compile; the build then excludes the mutant.
    pub fn parse(body: TokenStream) -> Option<Self> {
        let tokens = flattened(body);
        if let Ok(file) = syn::parse2(tokens.clone()) {
            return Some(Self::File(file));
        }
        let items = |input: ParseStream<'_>| {
            let mut items = Vec::new();
            while !input.is_empty() {
                items.push(input.parse::<syn::ImplItem>()?);
            }
            Ok(items)
        };
        if let Ok(items) = items.parse2(tokens.clone()) {
            return Some(Self::ImplItems(items));
        }
        syn::Block::parse_within.parse2(tokens).ok().map(Self::Statements)
    }
}

/// How many numbers and operators the tokens contain.
pub fn count_mutable_tokens(tokens: TokenStream) -> usize {
    let one = |token| match token {
        TokenTree::Group(group) => count_mutable_tokens(group.stream()),
        TokenTree::Literal(literal) => usize::from(!literal.to_string().starts_with(['"', '\'', 'b', 'c', 'r'])),
        TokenTree::Punct(punct) => usize::from("+-*/%<>&|^!".contains(punct.as_char())),
        TokenTree::Ident(_) => 0,
    };
    tokens.into_iter().map(one).sum()
}
