//! Which entries the PTX of a library user has, according to the instances in the sources of `kernels`.
//!
//! A build of the PTX without the feature `ladder` would take as long as the build of `ptx`. So the tests read the
//! sources instead: the modules with their `cfg`s, and the instances of every kernel. To verify that, the names with
//! the feature are compared with those of the built PTX.

use std::fs;
use std::path::{Path, PathBuf};

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Item, Lit, Token, Type};

/// The instances' part of the entries' names: `["f32_256", ...]`.
struct Suffixes(Vec<String>);

impl Parse for Suffixes {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut all = Vec::new();
        let mut is_listed = false;
        while !input.is_empty() {
            let key: syn::Ident = input.parse()?;
            if key == "instances" {
                is_listed = true;
                input.parse::<Token![=]>()?;
                if input.peek(syn::Ident) {
                    let name: syn::Path = input.parse()?;
                    input.parse::<Token![!]>()?;
                    assert!(name.is_ident("builtin_operators"), "the one macro that lists instances");
                    all.extend(builtin_operators());
                } else {
                    all.extend(input.call(Products::parse)?.0);
                }
            } else if input.parse::<Option<Token![=]>>()?.is_some() {
                input.parse::<Expr>()?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(Self(if is_listed { all } else { vec![String::new()] }))
    }
}

/// Lists joined by `+`.
struct Products(Vec<String>);

impl Parse for Products {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut all = product(input)?;
        while input.parse::<Option<Token![+]>>()?.is_some() {
            all.extend(product(input)?);
        }
        Ok(Self(all))
    }
}

/// The instances in the table of built-in operators of `kernels`, each once.
fn builtin_operators() -> Vec<String> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/src/ops/builtin.rs");
    let text = fs::read_to_string(file).expect("the table's file");
    let (_, table) = text.split_once("$argument\n").expect("the table");
    let (table, _) = table.split_once("}};").expect("the end of the table");
    let Table(mut all) = syn::parse_str(table).expect("operators with lines");
    all.sort_unstable();
    all.dedup();
    all
}

/// Operators, each with its name, exact sums, and lines:
/// `Sum, "the sum" [...] { Sum(Sum) in_any_order of i64 for u64 -> u64; }`.
struct Table(Vec<String>);

impl Parse for Table {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut all = Vec::new();
        while !input.is_empty() {
            input.parse::<syn::Ident>()?;
            input.parse::<Token![,]>()?;
            input.parse::<syn::LitStr>()?;
            let (_exact, lines);
            syn::bracketed!(_exact in input);
            _exact.parse::<proc_macro2::TokenStream>()?;
            syn::braced!(lines in input);
            while !lines.is_empty() {
                all.extend(line(&lines)?);
            }
        }
        Ok(Self(all))
    }
}

/// The instances of `Sum(Sum) in_any_order of i32, i64 for u64 -> u64;`: `_Sum_i32`, `_Sum_i64`.
fn line(input: ParseStream) -> syn::Result<Vec<String>> {
    let operator: syn::Ident = input.parse()?;
    let _value;
    syn::parenthesized!(_value in input);
    _value.parse::<Expr>()?;
    for _ in ["in_any_order", "of"] {
        input.parse::<syn::Ident>()?;
    }
    let mut names = Vec::new();
    while !input.peek(Token![->]) {
        names.push(format!("_{operator}_{}", input.parse::<syn::Ident>()?));
        if input.parse::<Option<Token![for]>>()?.is_some() {
            input.parse::<syn::Ident>()?;
        }
        input.parse::<Option<Token![,]>>()?;
    }
    input.parse::<syn::ReturnType>()?;
    input.parse::<Token![;]>()?;
    Ok(names)
}

/// Of `[f32, f64] x [64, 128]`: `f32_64`, `f32_128`, `f64_64`, `f64_128`.
fn product(input: ParseStream) -> syn::Result<Vec<String>> {
    let mut names = vec![String::new()];
    loop {
        let inside;
        syn::bracketed!(inside in input);
        let list = Punctuated::<Name, Token![,]>::parse_terminated(&inside)?;
        names = names
            .iter()
            .flat_map(|head| {
                list.iter().map(move |Name(name)| format!("{head}{}", name.as_deref().unwrap_or_default()))
            })
            .collect();
        if !input.peek(syn::Ident) || !input.peek2(syn::token::Bracket) {
            return Ok(names);
        }
        input.parse::<syn::Ident>()?;
    }
}

/// The part of an entry's name that an argument of its instance adds.
struct Name(Option<String>);

impl Parse for Name {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.peek(syn::token::Brace) {
            input.parse::<syn::ExprBlock>()?;
            return Ok(Self(None));
        }
        if !input.peek(Lit) {
            let Type::Path(path) = input.parse()? else { return Err(input.error("a type is a path")) };
            let last = path.path.segments.last().expect("a path has a segment");
            return Ok(Self(Some(format!("_{}", last.ident))));
        }
        let name = match input.parse::<ExprLit>()?.lit {
            Lit::Int(number) => format!("_{}", number.base10_digits()),
            Lit::Bool(truth) => format!("_{}", truth.value),
            _ => return Err(input.error("a constant is an integer or a bool")),
        };
        if input.parse::<Option<Token![==]>>()?.is_some() {
            input.parse::<Expr>()?;
        }
        Ok(Self(Some(name)))
    }
}

/// Adds the entries of a source file and of its modules. `children` is the folder of its modules' files.
fn collect(file: &Path, children: &Path, has_ladder: bool, names: &mut Vec<String>) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let source = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for item in &source.items {
        match item {
            Item::Fn(function) => {
                let kernel = function.attrs.iter().find(|attribute| attribute.path().is_ident("kernel"));
                let Some(kernel) = kernel else { continue };
                let Suffixes(suffixes) = match &kernel.meta {
                    syn::Meta::Path(_) => Suffixes(vec![String::new()]),
                    _ => kernel.parse_args().unwrap_or_else(|error| panic!("{}: {error}", function.sig.ident)),
                };
                names.extend(suffixes.iter().map(|suffix| format!("{}{suffix}", function.sig.ident)));
            }
            Item::Mod(module) if module.content.is_none() && is_compiled(&module.attrs, has_ladder) => {
                let name = module.ident.to_string();
                let (flat, folder) = (children.join(format!("{name}.rs")), children.join(&name));
                let file: PathBuf = if flat.exists() { flat } else { folder.join("mod.rs") };
                collect(&file, &folder, has_ladder, names);
            }
            _ => {}
        }
    }
}

/// Whether the item with these attributes is in a build for a GPU.
fn is_compiled(attributes: &[Attribute], has_ladder: bool) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).all(|attribute| {
        let condition: syn::Meta = attribute.parse_args().expect("a condition");
        match condition {
            syn::Meta::Path(path) if path.is_ident("test") => false,
            syn::Meta::NameValue(pair) if pair.path.is_ident("feature") => {
                let Expr::Lit(ExprLit { lit: Lit::Str(feature), .. }) = pair.value else { panic!("a feature's name") };
                assert_eq!(feature.value(), "ladder", "the one feature of `kernels`");
                has_ladder
            }
            _ => panic!("a `cfg` that this test cannot read: a kernel crate has none for its target"),
        }
    })
}

fn entries(has_ladder: bool) -> Vec<String> {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/src"));
    let mut names = Vec::new();
    collect(&sources.join("lib.rs"), sources, has_ladder, &mut names);
    names.sort_unstable();
    names
}

/// The names of the built PTX, which `ptx::the_list_of_entries_is_current` compares with this file.
fn built_entries() -> Vec<&'static str> {
    let snapshot = include_str!("snapshots/cpu__ptx__entries.snap");
    let (_, names) = snapshot.split_once("---\n").and_then(|(_, rest)| rest.split_once("---\n")).expect("a snapshot");
    names.lines().collect()
}

#[test]
fn the_sources_list_the_entries_of_the_ptx() {
    let how =
        "`INSTA_UPDATE=always cargo test -p warpfold-tests --test cpu the_list_of_entries_is_current` updates the list";
    assert_eq!(entries(true), built_entries(), "{how}");
}

/// A program that uses the library has every kernel but the ladder's.
#[test]
fn the_library_has_no_entry_of_the_ladder() {
    let sources = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/src/ladder"));
    let mut ladder = Vec::new();
    collect(&sources.join("mod.rs"), sources, true, &mut ladder);
    assert!(ladder.len() > 200, "{} entries", ladder.len());
    let mut expected = built_entries();
    expected.retain(|name| !ladder.iter().any(|entry| entry == name));
    assert_eq!(expected.len() + ladder.len(), built_entries().len(), "no kernel of the library has a rung's name");
    assert_eq!(entries(false), expected);
}
