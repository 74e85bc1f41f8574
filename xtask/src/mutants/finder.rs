//! Walks through a source and collects its places.

use anyhow::Context;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Stmt};

use super::changes;
use super::macros::{self, Expansion};
use super::places::{Edit, Form, Found, Kind, LeftOut, Place, bytes};

/// Finds all places of a source, outer ones before inner ones.
pub fn find(source: &str) -> anyhow::Result<Found> {
    let file = syn::parse_file(source).context("cannot parse")?;
    let mut finder = Finder { source, found: Found::default(), left_out: None, in_const_fn: false };
    finder.visit_file(&file);
    let mut found = finder.found;
    found.places.sort_by_key(|place| (place.range.start, usize::MAX - place.range.end, place.focus));
    Ok(found)
}

/// The places found so far, and the state of the walk.
struct Finder<'s> {
    source: &'s str,
    found: Found,
    /// Why places in the current scope are left out.
    left_out: Option<LeftOut>,
    in_const_fn: bool,
}

impl Finder<'_> {
    fn leaving_out(&mut self, reason: LeftOut, visit: impl FnOnce(&mut Self)) {
        let before = self.left_out;
        self.left_out = before.or(Some(reason));
        visit(self);
        self.left_out = before;
    }

    fn count_left_out(&mut self, reason: LeftOut, count: usize) {
        *self.found.left_out.entry(self.left_out.unwrap_or(reason)).or_default() += count;
    }

    fn push(&mut self, at: changes::At, span: Span, kind: Kind, form: Form, changes: Vec<Vec<Edit>>) {
        if changes.is_empty() {
            return;
        }
        if let Some(reason) = self.left_out {
            return self.count_left_out(reason, 1);
        }
        let range = bytes(self.source, span);
        self.found.places.push(Place {
            focus: at.0.max(range.start),
            range,
            kind,
            form,
            changes,
            in_const_fn: self.in_const_fn,
        });
    }

    /// Visits the item with these attributes, or leaves it out.
    fn under(&mut self, attributes: &[Attribute], span: Span, visit: impl FnOnce(&mut Self)) {
        match Configured::of(attributes) {
            Configured::Always => visit(self),
            Configured::Test => self.found.tests.push(span.byte_range()),
            Configured::DeviceOnly => self.leaving_out(LeftOut::DeviceOnly, visit),
        }
    }

    fn under_const(&mut self, constness: bool, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.in_const_fn, constness);
        visit(self);
        self.in_const_fn = before;
    }

    /// Visits what the rules of a macro expand to.
    fn macro_definition(&mut self, item: &syn::ItemMacro) {
        let is_exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
        for body in macros::bodies(item.mac.tokens.clone()) {
            // Other crates do not have the switch.
            match (!is_exported).then(|| Expansion::parse(body.clone())).flatten() {
                Some(Expansion::File(file)) => self.visit_file(&file),
                Some(Expansion::ImplItems(items)) => items.iter().for_each(|item| self.visit_impl_item(item)),
                Some(Expansion::Statements(statements)) => {
                    statements.iter().for_each(|statement| self.visit_stmt(statement));
                }
                None => self.count_left_out(LeftOut::Macros, macros::changeable(body)),
            }
        }
    }

    fn condition(&mut self, condition: &Expr) {
        if let Some(change) = changes::of_condition(self.source, condition) {
            let start = bytes(self.source, condition.span()).start;
            self.push(changes::At(start), condition.span(), Kind::Logic, Form::Expression, vec![change]);
        }
    }
}

/// The target of conditional compilation.
enum Configured {
    Always,
    Test,
    DeviceOnly,
}

impl Configured {
    fn of(attributes: &[Attribute]) -> Self {
        for attribute in attributes {
            let text = changes::one_line_of(attribute).replace(' ', "");
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
        self.under(attributes, item.span(), |finder| visit::visit_item(finder, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_none() && self.left_out == Some(LeftOut::DeviceOnly) {
            self.found.device_modules.push(item.ident.to_string());
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.under_const(item.sig.constness.is_some(), |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let constness = item.sig.constness.is_some();
        self.under(&item.attrs, item.span(), |finder| {
            finder.under_const(constness, |finder| visit::visit_impl_item_fn(finder, item));
        });
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_item_static(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_trait_item_const(finder, item));
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_variant(finder, variant));
    }

    fn visit_type(&mut self, ty: &'ast syn::Type) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_type(finder, ty));
    }

    fn visit_generics(&mut self, generics: &'ast syn::Generics) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_generics(finder, generics));
    }

    fn visit_generic_argument(&mut self, argument: &'ast syn::GenericArgument) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_generic_argument(finder, argument));
    }

    fn visit_expr_const(&mut self, block: &'ast syn::ExprConst) {
        self.leaving_out(LeftOut::Constants, |finder| visit::visit_expr_const(finder, block));
    }

    fn visit_expr_repeat(&mut self, array: &'ast syn::ExprRepeat) {
        self.visit_expr(&array.expr);
        self.leaving_out(LeftOut::Constants, |finder| finder.visit_expr(&array.len));
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        if matches!(pattern, syn::Pat::Lit(_)) {
            self.count_left_out(LeftOut::Patterns, 1);
        }
        self.leaving_out(LeftOut::Patterns, |finder| visit::visit_pat(finder, pattern));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match macros::expressions(call) {
            Some(expressions) => expressions.iter().for_each(|expression| self.visit_expr(expression)),
            None => self.count_left_out(LeftOut::Macros, macros::changeable(call.tokens.clone())),
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        match item.ident {
            Some(_) => self.macro_definition(item),
            None => visit::visit_item_macro(self, item),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.under(&local.attrs, local.span(), |finder| visit::visit_local(finder, local));
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let Stmt::Expr(expression, semicolon) = statement else {
            return visit::visit_stmt(self, statement);
        };
        let attributes = attributes(expression);
        self.under(attributes, statement.span(), |finder| {
            if semicolon.is_some()
                && attributes.is_empty()
                && let Some(kind) = changes::of_statement(expression)
            {
                let range = bytes(finder.source, statement.span());
                let removed = vec![Edit { range: range.clone(), text: String::new() }];
                let at = changes::At(range.start);
                let push = |finder: &mut Self| finder.push(at, statement.span(), kind, Form::Statement, vec![removed]);
                match changes::is_hint(expression) {
                    true => finder.leaving_out(LeftOut::Hints, push),
                    false => push(finder),
                }
            }
            visit::visit_stmt(finder, statement);
        });
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::If(e) => self.condition(&e.cond),
            Expr::While(e) => self.condition(&e.cond),
            _ => {}
        }
        if let Some((at, kind, changes)) = changes::of_expression(self.source, expression) {
            self.push(at, expression.span(), kind, Form::Expression, changes);
        }
        if let Expr::Range(range) = expression
            && let Some(end) = &range.end
            && let Some((at, changes)) = changes::of_range_end(self.source, end)
        {
            self.push(at, end.span(), Kind::Bound, Form::Expression, changes);
        }
        visit::visit_expr(self, expression);
    }
}
