//! Finds the mutation sites of a source.

use anyhow::Context;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Stmt};

use super::macros::{self, Expansion};
use super::mutations;
use super::sites::{Edit, Exclusion, Form, Kind, Site, SourceSites, byte_range};

/// Finds all sites of a source, each before those inside it.
pub fn find(source: &str) -> anyhow::Result<SourceSites> {
    let file = syn::parse_file(source).context("cannot parse the source")?;
    let mut finder = Finder { source, found: SourceSites::default(), excluded: None, in_const_fn: false };
    finder.visit_file(&file);
    let mut found = finder.found;
    found.sites.sort_by_key(|site| (site.range.start, usize::MAX - site.range.end, site.focus));
    Ok(found)
}

/// The sites found so far, and the state of the walk.
struct Finder<'s> {
    source: &'s str,
    found: SourceSites,
    /// Why sites in the current scope are excluded.
    excluded: Option<Exclusion>,
    in_const_fn: bool,
}

impl Finder<'_> {
    fn visit_excluded(&mut self, reason: Exclusion, visit: impl FnOnce(&mut Self)) {
        let before = self.excluded;
        self.excluded = before.or(Some(reason));
        visit(self);
        self.excluded = before;
    }

    fn count_excluded(&mut self, reason: Exclusion, count: usize) {
        *self.found.excluded.entry(self.excluded.unwrap_or(reason)).or_default() += count;
    }

    fn add(&mut self, at: mutations::Focus, span: Span, kind: Kind, form: Form, mutations: Vec<Vec<Edit>>) {
        if mutations.is_empty() {
            return;
        }
        if let Some(reason) = self.excluded {
            return self.count_excluded(reason, 1);
        }
        let range = byte_range(self.source, span);
        self.found.sites.push(Site {
            focus: at.0.max(range.start),
            range,
            kind,
            form,
            mutations,
            in_const_fn: self.in_const_fn,
        });
    }

    /// Visits the item with these attributes, unless they exclude it.
    fn visit_unless_excluded(&mut self, attributes: &[Attribute], span: Span, visit: impl FnOnce(&mut Self)) {
        match Cfg::of(attributes) {
            Cfg::Always => visit(self),
            Cfg::Test => self.found.tests.push(span.byte_range()),
            Cfg::DeviceOnly => self.visit_excluded(Exclusion::DeviceOnly, visit),
        }
    }

    fn visit_fn_body(&mut self, is_const: bool, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.in_const_fn, is_const);
        visit(self);
        self.in_const_fn = before;
    }

    /// Visits the expansions of a macro's rules.
    fn visit_macro_rules(&mut self, item: &syn::ItemMacro) {
        let is_exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
        for body in macros::bodies(item.mac.tokens.clone()) {
            // An exported macro may be expanded in a crate that does not depend on the switch.
            match (!is_exported).then(|| Expansion::parse(body.clone())).flatten() {
                Some(Expansion::File(file)) => self.visit_file(&file),
                Some(Expansion::ImplItems(items)) => items.iter().for_each(|item| self.visit_impl_item(item)),
                Some(Expansion::Statements(statements)) => {
                    statements.iter().for_each(|statement| self.visit_stmt(statement));
                }
                None => self.count_excluded(Exclusion::Macros, macros::count_mutable_tokens(body)),
            }
        }
    }

    fn add_negation(&mut self, condition: &Expr) {
        if let Some(mutation) = mutations::of_condition(self.source, condition) {
            let start = byte_range(self.source, condition.span()).start;
            self.add(mutations::Focus(start), condition.span(), Kind::Logic, Form::Expression, vec![mutation]);
        }
    }
}

/// The condition under which an item is compiled.
enum Cfg {
    Always,
    Test,
    DeviceOnly,
}

impl Cfg {
    fn of(attributes: &[Attribute]) -> Self {
        for attribute in attributes {
            let text = mutations::one_line_of(attribute).replace(' ', "");
            if text == "#[cfg(test)]" || text == "#[test]" {
                return Self::Test;
            }
            if text == "#[cfg(target_arch=\"nvptx64\")]" {
                return Self::DeviceOnly;
            }
        }
        Self::Always
    }
}

fn attributes(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Block(e) => &e.attrs,
        Expr::Unsafe(e) => &e.attrs,
        Expr::If(e) => &e.attrs,
        Expr::Return(e) => &e.attrs,
        Expr::Call(e) => &e.attrs,
        Expr::MethodCall(e) => &e.attrs,
        Expr::Macro(e) => &e.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[Attribute] = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => &[],
        };
        self.visit_unless_excluded(attributes, item.span(), |finder| visit::visit_item(finder, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() && self.excluded == Some(Exclusion::DeviceOnly) {
            self.found.device_modules.push(item.ident.to_string());
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.visit_fn_body(item.sig.constness.is_some(), |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let is_const = item.sig.constness.is_some();
        self.visit_unless_excluded(&item.attrs, item.span(), |finder| {
            finder.visit_fn_body(is_const, |finder| visit::visit_impl_item_fn(finder, item));
        });
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_item_static(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_trait_item_const(finder, item));
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_variant(finder, variant));
    }

    fn visit_type(&mut self, ty: &'ast syn::Type) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_type(finder, ty));
    }

    fn visit_generics(&mut self, generics: &'ast syn::Generics) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_generics(finder, generics));
    }

    fn visit_generic_argument(&mut self, argument: &'ast syn::GenericArgument) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_generic_argument(finder, argument));
    }

    fn visit_expr_const(&mut self, block: &'ast syn::ExprConst) {
        self.visit_excluded(Exclusion::Constants, |finder| visit::visit_expr_const(finder, block));
    }

    fn visit_expr_repeat(&mut self, array: &'ast syn::ExprRepeat) {
        self.visit_expr(&array.expr);
        self.visit_excluded(Exclusion::Constants, |finder| finder.visit_expr(&array.len));
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        if matches!(pattern, syn::Pat::Lit(_)) {
            self.count_excluded(Exclusion::Patterns, 1);
        }
        self.visit_excluded(Exclusion::Patterns, |finder| visit::visit_pat(finder, pattern));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match macros::expressions(call) {
            Some(expressions) => expressions.iter().for_each(|expression| self.visit_expr(expression)),
            None => self.count_excluded(Exclusion::Macros, macros::count_mutable_tokens(call.tokens.clone())),
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        match item.ident {
            Some(_) => self.visit_macro_rules(item),
            None => visit::visit_item_macro(self, item),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.visit_unless_excluded(&local.attrs, local.span(), |finder| visit::visit_local(finder, local));
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let Stmt::Expr(expression, semicolon) = statement else {
            return visit::visit_stmt(self, statement);
        };
        let attributes = attributes(expression);
        self.visit_unless_excluded(attributes, statement.span(), |finder| {
            if semicolon.is_some()
                && attributes.is_empty()
                && let Some(kind) = mutations::of_statement(expression)
            {
                let range = byte_range(finder.source, statement.span());
                let removed = vec![Edit { range: range.clone(), text: String::new() }];
                let at = mutations::Focus(range.start);
                let add = |finder: &mut Self| finder.add(at, statement.span(), kind, Form::Statement, vec![removed]);
                match mutations::is_hint(expression) {
                    true => finder.visit_excluded(Exclusion::Hints, add),
                    false => add(finder),
                }
            }
            visit::visit_stmt(finder, statement);
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.add_negation(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::If(e) => self.add_negation(&e.cond),
            Expr::While(e) => self.add_negation(&e.cond),
            _ => {}
        }
        if let Some((at, kind, mutations)) = mutations::of_expression(self.source, expression) {
            self.add(at, expression.span(), kind, Form::Expression, mutations);
        }
        if let Expr::Range(range) = expression
            && let Some(end) = &range.end
            && let Some((at, mutations)) = mutations::of_range_end(self.source, end)
        {
            self.add(at, end.span(), Kind::Bound, Form::Expression, mutations);
        }
        visit::visit_expr(self, expression);
    }
}
