//! Operators with a fixed order: the same bits for the same elements, for any number of other rows or columns.

use half::f16;
use test_support::{by_length, depth, executor};

#[test]
fn products_of_rows() {
    by_length::products_of_rows(&executor()).unwrap();
}

/// The trial on a GPU has a million rows.
#[test]
fn products_among_many_rows() {
    by_length::products_among(&executor(), 20_000).unwrap();
}

#[test]
fn products_of_columns() {
    by_length::products_of_columns(&executor()).unwrap();
}

#[test]
fn rows_of_a_custom_operator() {
    by_length::traces_of_rows(&executor()).unwrap();
}

#[test]
fn columns_of_a_custom_operator() {
    by_length::traces_of_columns(&executor()).unwrap();
}

#[test]
fn pairwise_sums_are_those_of_plain_loops() {
    by_length::long_pairwise_sums(&executor()).unwrap();
}

#[test]
fn no_order_is_deeper_than_documented() {
    let gpu = executor();
    depth::depths::<f32>(&gpu).unwrap();
    depth::depths::<f64>(&gpu).unwrap();
    depth::depths::<f16>(&gpu).unwrap();
}
