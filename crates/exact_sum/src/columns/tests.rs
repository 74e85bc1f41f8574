//! Sums of columns compared with those of single elements.

use half::{bf16, f16};

use super::*;
use crate::ElementsError;
use crate::simd::Baseline;

/// A number of one of several kinds: ordinary, wide, or any bits.
fn number(kind: u32, state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let ordinary = (*state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    match kind {
        0 => ordinary,
        1 => ordinary * f64::from_bits((1023 - 60 + (*state % 120)) << 52),
        2 if (*state).is_multiple_of(97) => [f64::NAN, f64::INFINITY, 1e300, 1e-300, -0.0][(*state % 5) as usize],
        2 => ordinary,
        _ => f64::from_bits(*state ^ (*state << 31)),
    }
}

fn check_columns<T: Summand + core::fmt::Debug>(of: impl Fn(f64) -> T) {
    let mut state = 1;
    let shapes = [
        (0, 3),
        (1, 1),
        (3, 0),
        (7, 1),
        (1500, 1),
        (130, 4),
        (9, 31),
        (70, 33),
        (12, 64),
        (11, 65),
        (5, 1000),
        (2, 2500),
    ];
    let shapes = if cfg!(miri) { &[(9, 31), (6, 65)][..] } else { &shapes[..] };
    for &(rows, columns) in shapes {
        for kind in 0..4 {
            let all: Vec<T> = (0..rows * columns).map(|_| of(number(kind, &mut state))).collect();
            let mut expected: Vec<ExactSum<T>> = vec![ExactSum::new(); columns];
            for row in 0..rows {
                for (column, sum) in expected.iter_mut().enumerate() {
                    sum.add(all[row * columns + column]);
                }
            }
            let strides = [columns as isize, 1];
            let whole = Matrix::strided(&all, 0, [rows, columns], strides).unwrap();
            let mut sums = ColumnSums::new(columns);
            sums.add_rows(whole).unwrap();
            compare(&sums, &expected, rows);
            let mut sums = ColumnSums::new(columns);
            sums.count = rows as u64;
            RowsTask { sums: &mut sums, matrix: whole }.run::<Baseline>();
            compare(&sums, &expected, rows);
            if rows == 0 {
                continue;
            }
            // The rows from the last to the first, in two parts.
            let part = rows / 3;
            let start = (rows - 1) * columns;
            let backwards = [-(columns as isize), 1];
            let mut sums = ColumnSums::new(columns);
            sums.add_rows(Matrix::strided(&all, start, [part, columns], backwards).unwrap()).unwrap();
            let start = (rows - 1 - part) * columns;
            sums.add_rows(Matrix::strided(&all, start, [rows - part, columns], backwards).unwrap()).unwrap();
            compare(&sums, &expected, rows);
            let mut found = vec![0.0_f64; columns];
            whole.transposed().sum_rows(&mut found).unwrap();
            assert!(found.iter().zip(&expected).all(|(x, sum)| x.to_bits() == sum.rounded::<f64>().to_bits()));
            whole.transposed().mean_rows(&mut found).unwrap();
            assert!(found.iter().zip(&expected).all(|(x, sum)| x.to_bits() == sum.mean::<f64>().to_bits()));
            let (mut found, mut means) = (vec![0.0_f32; rows], vec![0.0_f32; rows]);
            whole.sum_rows(&mut found).unwrap();
            whole.mean_rows(&mut means).unwrap();
            for row in 0..rows {
                let sum: ExactSum<T> = all[row * columns..][..columns].iter().copied().collect();
                assert_eq!(found[row].to_bits(), sum.rounded::<f32>().to_bits(), "row {row} of {columns}");
                assert_eq!(means[row].to_bits(), sum.mean::<f32>().to_bits(), "mean of row {row} of {columns}");
            }
            // The transpose.
            if columns > 0 {
                let mut sums = ColumnSums::new(rows);
                sums.add_rows(Matrix::strided(&all, 0, [columns, rows], [1, columns as isize]).unwrap()).unwrap();
                let of_row = |row: usize| all[row * columns..][..columns].iter().copied().collect();
                compare(&sums, &(0..rows).map(of_row).collect::<Vec<_>>(), columns);
            }
        }
    }
}

fn compare<T: Summand + core::fmt::Debug>(sums: &ColumnSums<T>, expected: &[ExactSum<T>], rows: usize) {
    assert_eq!((sums.columns(), sums.count()), (expected.len(), rows as u64));
    for (column, expected) in expected.iter().enumerate() {
        let sum = sums.sum(column);
        assert_eq!(&sum, expected, "column {column} of {}", expected.count());
        assert_eq!(sum.specials(), expected.specials());
        assert_eq!(sums.rounded::<f64>(column).to_bits(), expected.rounded::<f64>().to_bits());
        assert_eq!(sums.rounded::<f16>(column).to_bits(), expected.rounded::<f16>().to_bits());
        assert_eq!(sums.mean::<f64>(column).to_bits(), expected.mean::<f64>().to_bits());
    }
}

#[test]
fn columns_of_f16() {
    check_columns(f16::from_f64);
}

#[test]
fn columns_of_bf16() {
    check_columns(bf16::from_f64);
}

#[test]
fn columns_of_f32() {
    check_columns(|x| x as f32);
}

#[test]
fn columns_of_f64() {
    check_columns(|x| x);
}

/// More rows than bins have the capacity for, more drains than a value has, and a window that moves.
#[test]
fn many_rows() {
    let all: Vec<f32> = (0..130).map(|k| if k % 2 == 0 { 7.9 } else { -7.9 + k as f32 }).collect();
    let rows = if cfg!(miri) { 520 } else { 700_000 };
    let mut sums = ColumnSums::new(130);
    sums.add_rows(Matrix::strided(&all, 0, [rows, 130], [0, 1]).unwrap()).unwrap();
    let tiny = all.iter().map(|x| x * 1e-20).collect::<Vec<f32>>();
    sums.add_rows(Matrix::strided(&tiny, 0, [rows, 130], [0, 1]).unwrap()).unwrap();
    for column in [0, 1, 129] {
        let mut expected = ExactSum::new();
        expected.add_elements(Elements::strided(&all, column, 0, rows).unwrap());
        expected.add_elements(Elements::strided(&tiny, column, 0, rows).unwrap());
        assert_eq!(sums.sum(column), expected, "column {column}");
    }
}

#[test]
fn matrices_of_another_shape_are_refused() {
    let mut sums = ColumnSums::<f32>::new(3);
    let error = sums.add_rows(Matrix::from_slice(&[1.0; 8], 4).unwrap()).unwrap_err();
    assert_eq!((error, sums.count()), (DifferentLengths { first: 4, second: 3 }, 0));
    let error = Matrix::from_slice(&[1.0_f32; 8], 3).unwrap_err();
    assert_eq!(error, ElementsError::OutOfBounds { len: 8 });
    assert!(Matrix::from_slice(&[1.0_f32; 8], 0).is_err() && Matrix::<f32>::from_slice(&[], 0).is_ok());
    let all = [0.0_f32; 12];
    for (start, shape, strides) in
        [(0, [3, 4], [5, 1]), (1, [3, 4], [4, 1]), (0, [2, 2], [-1, 1]), (0, [1, 13], [0, 1])]
    {
        assert!(Matrix::strided(&all, start, shape, strides).is_err());
    }
    // Without elements no row is out of bounds.
    for matrix in [
        Matrix::strided(&all, 100, [3, 0], [50, 1]).unwrap(),
        Matrix::strided(&all, 100, [0, 3], [1, 50]).unwrap().transposed(),
    ] {
        let mut sums = [1.0_f32; 3];
        matrix.sum_rows(&mut sums).unwrap();
        assert_eq!(sums.map(f32::to_bits), [0; 3]);
        assert!(ColumnSums::new(0).add_rows(matrix).is_ok());
        assert_eq!(matrix.row(2).sum::<f64>().to_bits(), 0);
    }
    let error = Matrix::from_slice(&all, 4).unwrap().sum_rows(&mut [0.0_f32; 4]).unwrap_err();
    assert_eq!(error, DifferentLengths { first: 4, second: 3 });
    assert!(Matrix::strided(&all, 11, [3, 4], [-4, -1]).is_ok());
    assert!(Matrix::<f32>::strided_bytes(&[0; 48], 45, [1, 1], [0, 0]).is_err());
}
