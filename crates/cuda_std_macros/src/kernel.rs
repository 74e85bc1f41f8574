//! A kernel, as parsed from its attribute and its function.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Expr, GenericParam, Ident, ItemFn, Path};

use crate::instances::Instance;
use crate::parameters::Inputs;

/// A kernel, as parsed from its attribute and its function.
pub struct Kernel<'a> {
    pub function: &'a ItemFn,
    pub name: &'a Ident,
    pub generics: Vec<&'a GenericParam>,
    pub inputs: Inputs,
    pub instances: Vec<Instance>,
    pub block: &'a [Expr],
    pub max_threads: Option<&'a Expr>,
    pub min_blocks: Option<&'a Expr>,
    pub dependent_launch: bool,
    pub prefetch_blocks: Option<&'a Expr>,
    pub erase: Option<&'a Path>,
    /// Whether the items of the kernel's module are imported into the file's module.
    pub uses_module_of_file: bool,
}

impl Kernel<'_> {
    /// The entry's name in PTX.
    pub fn entry_name(&self, instance: &Instance) -> Ident {
        match instance.suffix.as_str() {
            "" => self.name.clone(),
            suffix => format_ident!("{}_{}", self.name, suffix),
        }
    }

    /// Items that give the kernel's generic parameters the values of the instance. With them, the parameters' types and
    /// the expressions for the block can be used as written.
    pub fn aliases(&self, instance: &Instance) -> TokenStream {
        self.generics
            .iter()
            .zip(&instance.arguments)
            .map(|(parameter, argument)| match parameter {
                GenericParam::Type(ty) => {
                    let name = &ty.ident;
                    quote!(#[allow(dead_code)] type #name = #argument;)
                }
                GenericParam::Const(constant) => {
                    let (name, ty) = (&constant.ident, &constant.ty);
                    quote!(#[allow(dead_code)] const #name: #ty = #argument;)
                }
                GenericParam::Lifetime(_) => unreachable!("refused with the instances"),
            })
            .collect()
    }
}
