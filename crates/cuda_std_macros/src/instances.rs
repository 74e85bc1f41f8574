//! The arguments of `#[kernel]`, and the instances that they list.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprBlock, ExprLit, ExprUnary, GenericArgument, GenericParam, Ident, Lit, Path, PathArguments, Result,
    Stmt, Token, Type, UnOp, bracketed, token,
};

/// The arguments of `#[kernel]`: `instances = [...] x [...], block = ...`.
#[derive(Default)]
pub struct KernelAttribute {
    products: Vec<Vec<Vec<Argument>>>,
    pub block: Vec<Expr>,
    pub max_threads: Option<Expr>,
    pub min_blocks: Option<Expr>,
    /// Whether the kernel waits for its prerequisites itself, so that it can be launched before they have completed.
    pub dependent_launch: bool,
    /// The maximum number of blocks along x of grids whose blocks read their parameters before they wait.
    pub prefetch_blocks: Option<Expr>,
    /// The type that erases the kernel's operator on the CPU.
    pub erase: Option<Path>,
}

/// `instances = path!, ...`: a macro that expands to the attribute with a list of instances.
pub struct InstancesFromMacro {
    pub path: Path,
    /// The rest of the attribute.
    pub rest: TokenStream,
}

impl Parse for InstancesFromMacro {
    fn parse(input: ParseStream) -> Result<Self> {
        let key: Ident = input.parse()?;
        if key != "instances" {
            return Err(Error::new(key.span(), "expected `instances`"));
        }
        input.parse::<Token![=]>()?;
        let path = input.parse()?;
        input.parse::<Token![!]>()?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok(Self { path, rest: input.parse()? })
    }
}

/// A generic argument of an instance: a type, or a constant.
#[derive(Clone)]
pub enum Argument {
    Type(Type),
    /// A number, and the expression that it must equal.
    Constant(ExprLit, Option<Box<Expr>>),
    /// A block `{ ... }`, which is not part of the entry's name.
    Expression(ExprBlock),
}

impl Parse for KernelAttribute {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attribute = Self::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if key == "dependent_launch" {
                attribute.dependent_launch = true;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                continue;
            }
            input.parse::<Token![=]>()?;
            if key == "instances" {
                attribute.products.push(product(input)?);
                while input.peek(Token![+]) {
                    input.parse::<Token![+]>()?;
                    // A trailing `+` is allowed, like a trailing comma, because macros write one.
                    if input.peek(token::Bracket) {
                        attribute.products.push(product(input)?);
                    }
                }
            } else if key == "max_threads" {
                attribute.max_threads = Some(input.parse()?);
            } else if key == "min_blocks" {
                attribute.min_blocks = Some(input.parse()?);
            } else if key == "erase" {
                attribute.erase = Some(input.parse()?);
            } else if key == "prefetch_blocks" {
                attribute.prefetch_blocks = Some(input.parse()?);
            } else if key == "block" {
                attribute.block = match input.parse()? {
                    Expr::Array(sides) => sides.elems.into_iter().collect(),
                    side => vec![side],
                };
                if attribute.block.is_empty() || attribute.block.len() > 3 {
                    return Err(Error::new(key.span(), "a block has one to three dimensions"));
                }
            } else {
                return Err(Error::new(
                    key.span(),
                    "expected `instances`, `block`, `max_threads`, `min_blocks`, `erase`, `dependent_launch` or \
                     `prefetch_blocks`",
                ));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attribute)
    }
}

/// Parses a product of lists, `[...] x [...]`.
fn product(input: ParseStream) -> Result<Vec<Vec<Argument>>> {
    let mut lists = vec![list(input)?];
    while input.peek(Ident) && input.peek2(token::Bracket) {
        let times: Ident = input.parse()?;
        if times != "x" {
            return Err(Error::new(times.span(), "expected `x` between two lists of instances"));
        }
        lists.push(list(input)?);
    }
    Ok(lists)
}

fn list(input: ParseStream) -> Result<Vec<Argument>> {
    let inside;
    let bracket = bracketed!(inside in input);
    let arguments = Punctuated::<Argument, Token![,]>::parse_terminated(&inside)?;
    if arguments.is_empty() {
        return Err(Error::new(bracket.span.join(), "a list of instances must not be empty"));
    }
    Ok(arguments.into_iter().collect())
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> Result<Self> {
        if input.peek(token::Brace) {
            return input.parse().map(Self::Expression);
        }
        if !input.peek(Lit) {
            return input.parse().map(Self::Type);
        }
        let number = input.parse()?;
        let equal = input.parse::<Option<Token![==]>>()?.map(|_| input.parse()).transpose()?;
        Ok(Self::Constant(number, equal.map(Box::new)))
    }
}

impl ToTokens for Argument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Type(ty) => ty.to_tokens(tokens),
            Self::Constant(number, _) => number.to_tokens(tokens),
            Self::Expression(block) => block.to_tokens(tokens),
        }
    }
}

impl Argument {
    /// The part of the entry's name for this argument, such as `f32` or `256`.
    fn name(&self) -> Result<Option<String>> {
        let name = match self {
            Self::Type(ty) => name_of_type(ty)?,
            Self::Constant(ExprLit { lit, .. }, _) => name_of_constant(lit)?,
            Self::Expression(_) => return Ok(None),
        };
        Ok(Some(name))
    }

    /// Code that fails to compile if the constant does not equal its expression.
    fn assertion(&self) -> TokenStream {
        let Self::Constant(number, Some(equal)) = self else { return TokenStream::new() };
        let message = format!("the instance's {} is not equal to {}", quote!(#number), quote!(#equal));
        quote!(assert!(#number == #equal, #message);)
    }
}

/// A type in an entry's name: the last part of its path and its arguments, such as `Power_3` for `terms::Power<3>`.
fn name_of_type(ty: &Type) -> Result<String> {
    let Type::Path(path) = ungrouped(ty) else {
        return Err(Error::new_spanned(ty, "the type of an instance must be a path"));
    };
    let segment = path.path.segments.last().expect("a path has a segment");
    let mut name = segment.ident.unraw().to_string();
    match &segment.arguments {
        PathArguments::None => {}
        PathArguments::AngleBracketed(arguments) => {
            for argument in &arguments.args {
                name += "_";
                name += &match argument {
                    GenericArgument::Type(ty) => name_of_type(ty)?,
                    GenericArgument::Const(constant) => name_of_expression(constant)?,
                    other => return Err(no_name(other)),
                };
            }
        }
        PathArguments::Parenthesized(other) => return Err(no_name(other)),
    }
    Ok(name)
}

/// The type without the parentheses and the invisible groups that macros put around it.
fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        other => other,
    }
}

/// A literal, a negative one, or one in braces.
fn name_of_expression(constant: &Expr) -> Result<String> {
    match constant {
        Expr::Lit(ExprLit { lit, .. }) => name_of_constant(lit),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => Ok(format!("minus_{}", name_of_expression(expr)?)),
        Expr::Block(ExprBlock { block, .. }) => match &block.stmts[..] {
            [Stmt::Expr(inner, None)] => name_of_expression(inner),
            _ => Err(no_name(constant)),
        },
        other => Err(no_name(other)),
    }
}

fn name_of_constant(constant: &Lit) -> Result<String> {
    match constant {
        Lit::Int(number) => Ok(number.base10_digits().to_owned()),
        Lit::Bool(truth) => Ok(truth.value.to_string()),
        other => Err(Error::new_spanned(other, "the constant of an instance must be an integer, a bool or a block")),
    }
}

fn no_name(argument: &impl ToTokens) -> Error {
    let refused = "it has no name for the kernel's entry: the arguments of an instance's type are types, integers and \
                   bools";
    Error::new_spanned(argument, refused)
}

/// One entry of a kernel.
pub struct Instance {
    /// The generic arguments, in the order of the kernel's parameters.
    pub arguments: Vec<Argument>,
    /// The entry's name without the kernel's name, such as `f32_256`.
    pub suffix: String,
}

impl Instance {
    /// Whether these are its generic arguments, token by token.
    fn has_arguments(&self, arguments: &[Argument]) -> bool {
        let tokens = |arguments: &[Argument]| quote!(#(#arguments),*).to_string();
        tokens(&self.arguments) == tokens(arguments)
    }

    /// Code that fails to compile if a constant does not equal its expression.
    pub fn assertions(&self) -> TokenStream {
        self.arguments.iter().map(Argument::assertion).collect()
    }
}

/// The instances of every combination of the lists, each once; for a kernel that is not generic, one instance without
/// arguments.
pub fn instances(attribute: &KernelAttribute, generics: &syn::Generics) -> Result<Vec<Instance>> {
    if let Some(lifetime) = generics.lifetimes().next() {
        return Err(Error::new_spanned(lifetime, "a kernel cannot have lifetime parameters: leave them out"));
    }
    let mut combinations = Vec::new();
    if attribute.products.is_empty() {
        combinations.extend(combinations_of(&[], generics)?);
    }
    for lists in &attribute.products {
        combinations.extend(combinations_of(lists, generics)?);
    }
    let mut instances: Vec<Instance> = Vec::new();
    for arguments in combinations {
        let names = arguments.iter().filter_map(|argument| argument.name().transpose()).collect::<Result<Vec<_>>>()?;
        let suffix = names.join("_");
        let is_block = |argument: &&Argument| matches!(argument, Argument::Expression(_));
        if let Some(earlier) = instances.iter().find(|instance| instance.suffix == suffix) {
            if let Some(block) = arguments.iter().find(is_block) {
                let refused = "two instances have the same entry name, because `{ ... }` is not part of it: write \
                               `16 == { ... }`, with the value";
                return Err(Error::new_spanned(block, refused));
            }
            if earlier.has_arguments(&arguments) {
                continue;
            }
        }
        instances.push(Instance { arguments, suffix });
    }
    Ok(instances)
}

/// All combinations of one argument from each list.
fn combinations_of(lists: &[Vec<Argument>], generics: &syn::Generics) -> Result<Vec<Vec<Argument>>> {
    if lists.len() != generics.params.len() {
        return Err(Error::new_spanned(
            generics,
            format!(
                "the kernel has {} generic parameters, but `instances` has {} lists: write one for each, joined by `x`",
                generics.params.len(),
                lists.len()
            ),
        ));
    }
    for (list, parameter) in lists.iter().zip(&generics.params) {
        for argument in list {
            match (argument, parameter) {
                (Argument::Type(_), GenericParam::Type(_))
                | (Argument::Constant(..) | Argument::Expression(_), GenericParam::Const(_)) => {}
                _ => return Err(Error::new_spanned(argument, format!("does not fit `{}`", quote!(#parameter)))),
            }
        }
    }
    let mut combinations = vec![Vec::new()];
    for list in lists {
        combinations = combinations
            .iter()
            .flat_map(|head| {
                list.iter().map(move |next| {
                    let mut longer: Vec<Argument> = head.clone();
                    longer.push(next.clone());
                    longer
                })
            })
            .collect();
    }
    Ok(combinations)
}
