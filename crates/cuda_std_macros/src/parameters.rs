//! The parameters of a kernel, and their types in the PTX entry.

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Error, FnArg, GenericArgument, GenericParam, Generics, Ident, Lifetime, Pat, PathArguments, Result,
    Type, TypePath, TypeReference,
};

/// A parameter of the kernel.
pub struct Parameter {
    pub name: Ident,
    pub ty: Type,
    /// Whether it is a view or a slice, which the entry takes as an address and a length.
    pub is_view: bool,
    /// The parameter's docs.
    pub docs: Vec<Attribute>,
}

/// The inputs of a kernel.
pub enum Inputs {
    Listed(Vec<Parameter>),
    /// A single parameter of an unknown type: a struct with `#[arguments]`, or a value.
    Sole(SoleParameter),
}

/// A single parameter of an unknown type.
pub struct SoleParameter {
    pub ty: TypePath,
    /// The parameter's name and docs, if it is a name, and not the pattern of an argument struct.
    pub name: Option<(Ident, Vec<Attribute>)>,
}

/// The inputs of a kernel's signature: a list of parameters, or a single one of an unknown type.
pub fn inputs(signature: &syn::Signature) -> Result<Inputs> {
    let mut inputs = signature.inputs.iter();
    if let (Some(FnArg::Typed(argument)), None) = (inputs.next(), inputs.next())
        && let Type::Path(path) = without_parentheses(&argument.ty)
        && is_unknown(path, &signature.generics)
    {
        if let Some(lifetime) = named_lifetime(&argument.ty) {
            return Err(Error::new_spanned(lifetime, NAMED_LIFETIME_ERROR));
        }
        let name = match &*argument.pat {
            Pat::Ident(pattern) => Some((pattern.ident.clone(), docs(&argument.attrs))),
            Pat::Struct(_) => None,
            other => return Err(Error::new_spanned(other, NO_NAME_ERROR)),
        };
        return Ok(Inputs::Sole(SoleParameter { ty: path.clone(), name }));
    }
    parameters(signature).map(Inputs::Listed)
}

/// Whether a type may be an argument struct: it is not a view, a primitive type or a generic parameter.
fn is_unknown(path: &TypePath, generics: &Generics) -> bool {
    let name = &path.path.segments.last().expect("a path has a segment").ident;
    path.qself.is_none()
        && !is_primitive(path)
        && name != "Global"
        && name != "GlobalMut"
        && !generics.type_params().any(|parameter| path.path.is_ident(&parameter.ident))
}

/// Whether a path is the name of a primitive type.
pub fn is_primitive(path: &TypePath) -> bool {
    const NAMES: [&str; 16] = [
        "bool", "char", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "i128", "u128", "isize", "usize", "f32",
        "f64",
    ];
    path.qself.is_none() && NAMES.iter().any(|name| path.path.is_ident(name))
}

fn docs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect()
}

const NO_NAME_ERROR: &str = "a kernel's parameter must be a name";

pub const NAMED_LIFETIME_ERROR: &str = "a kernel's parameters live only for its launch: leave the lifetime out";

/// The parameters of a kernel's signature.
fn parameters(signature: &syn::Signature) -> Result<Vec<Parameter>> {
    signature
        .inputs
        .iter()
        .map(|input| {
            let FnArg::Typed(argument) = input else {
                return Err(Error::new_spanned(input, "a kernel must be a free function"));
            };
            let Pat::Ident(pattern) = &*argument.pat else {
                return Err(Error::new_spanned(&argument.pat, NO_NAME_ERROR));
            };
            let ty = without_parentheses(&argument.ty).clone();
            if matches!(ty, Type::Reference(_) | Type::Ptr(_)) && signature.unsafety.is_none() {
                return Err(Error::new_spanned(
                    &ty,
                    "accesses through this type are not checked: make the kernel an `unsafe fn`, or take a `Global` or \
                     `GlobalMut`",
                ));
            }
            if let Some(lifetime) = named_lifetime(&ty) {
                return Err(Error::new_spanned(lifetime, NAMED_LIFETIME_ERROR));
            }
            let is_view = is_view(&ty)?;
            Ok(Parameter { name: pattern.ident.clone(), ty, is_view, docs: docs(&argument.attrs) })
        })
        .collect()
}

/// The type without the groups or parentheses around it, which macros and sources may add.
pub fn without_parentheses(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => without_parentheses(&group.elem),
        Type::Paren(paren) => without_parentheses(&paren.elem),
        _ => ty,
    }
}

/// The first named lifetime in the type, if any.
pub fn named_lifetime(ty: &Type) -> Option<Lifetime> {
    struct Find(Option<Lifetime>);
    impl Visit<'_> for Find {
        fn visit_lifetime(&mut self, lifetime: &Lifetime) {
            if lifetime.ident != "_" {
                self.0.get_or_insert(lifetime.clone());
            }
        }
    }
    let mut find = Find(None);
    find.visit_type(ty);
    find.0
}

fn is_view(ty: &Type) -> Result<bool> {
    match ty {
        Type::Reference(TypeReference { mutability: Some(_), .. }) => {
            Err(Error::new_spanned(ty, "every thread would have the same `&mut`: take a `GlobalMut` or a `*mut`"))
        }
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(_) => Ok(true),
            _ => Err(Error::new_spanned(ty, "a reference in a kernel's parameters must be to a slice")),
        },
        Type::Path(path) => {
            let name = &path.path.segments.last().expect("a path has a segment").ident;
            Ok(name == "Global" || name == "GlobalMut")
        }
        _ => Ok(false),
    }
}

/// The type with all lifetimes `'static`, as in the type of a handle.
pub fn with_static_lifetimes(ty: &Type) -> Type {
    let mut ty = ty.clone();
    MakeStatic.visit_type_mut(&mut ty);
    ty
}

struct MakeStatic;

impl VisitMut for MakeStatic {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        lifetime.ident = Ident::new("static", lifetime.ident.span());
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        reference.lifetime = Some(syn::parse_quote!('static));
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_path_segment_mut(&mut self, segment: &mut syn::PathSegment) {
        if (segment.ident == "Global" || segment.ident == "GlobalMut")
            && let PathArguments::AngleBracketed(arguments) = &mut segment.arguments
            && !arguments.args.iter().any(|argument| matches!(argument, GenericArgument::Lifetime(_)))
        {
            arguments.args.insert(0, syn::parse_quote!('static));
        }
        visit_mut::visit_path_segment_mut(self, segment);
    }
}

/// The name of a generic parameter, as a generic argument.
pub fn argument_of(parameter: &GenericParam) -> TokenStream {
    match parameter {
        GenericParam::Type(ty) => {
            let name = &ty.ident;
            quote!(#name)
        }
        GenericParam::Const(constant) => {
            let name = &constant.ident;
            quote!(#name)
        }
        GenericParam::Lifetime(lifetime) => quote!(#lifetime),
    }
}
