//! The reductions of `tests/cases/cases.txt`, whose results were computed with Python's fractions and with NumPy, bit
//! for bit. `tests/cases/make.py` writes the file, and says what a line means.

use std::fmt::Write;

use half::{bf16, f16};
use kernels::ops::{Dot, InElementType, Mean, Norm, Sum, SumOfSquares};
use warpfold::{ArrayView, Axes, Element, Error, Gpu, Layout, Plain, Reduces, Reduction, ops};

use crate::reductions::value::Values;

/// The file.
pub const CASES: &str = include_str!("../../cases/cases.txt");

/// Fewer cases than this are an error.
const LEAST_CASES: usize = 5000;

/// Failures that a message has, at most.
const SHOWN: usize = 20;

/// Where the cases run. A crate that implements this compiles the reductions of all operators there.
pub trait Place {
    /// The extents of a reduction's result, and its elements.
    ///
    /// # Errors
    /// As the library's.
    fn reduce<O: Reduction<T> + Default, T: CaseElement>(&self, x: Elements<'_, T>, axes: Axes) -> Reduced<O::Output>;

    /// The same for a dot product.
    ///
    /// # Errors
    /// As the library's.
    fn dot<T: CaseElement>(
        &self,
        x: Elements<'_, T>,
        y: Elements<'_, T>,
        axes: Axes,
    ) -> Reduced<<Dot as Reduces<T, 2>>::Output>
    where
        Dot: Reduces<T, 2>;
}

/// The elements of an array's memory, and their layout.
#[derive(Clone, Copy)]
pub struct Elements<'a, T> {
    /// The elements.
    pub elements: &'a [T],
    /// Where they are.
    pub layout: &'a Layout,
}

/// The extents and the elements of a result.
pub type Reduced<R> = Result<(Vec<usize>, Vec<R>), Error>;

impl Place for Gpu {
    fn reduce<O: Reduction<T> + Default, T: CaseElement>(&self, x: Elements<'_, T>, axes: Axes) -> Reduced<O::Output> {
        let memory = self.upload(x.elements)?;
        let result = self.reduce(O::default(), ArrayView::new(memory.view(), x.layout)?, axes)?;
        Ok((result.extents().to_vec(), self.download(&result)?))
    }

    fn dot<T: CaseElement>(
        &self,
        x: Elements<'_, T>,
        y: Elements<'_, T>,
        axes: Axes,
    ) -> Reduced<<Dot as Reduces<T, 2>>::Output>
    where
        Dot: Reduces<T, 2>,
    {
        let memory = [self.upload(x.elements)?, self.upload(y.elements)?];
        let (x, y) = (ArrayView::new(memory[0].view(), x.layout)?, ArrayView::new(memory[1].view(), y.layout)?);
        let result = self.reduce(Dot, (x, y), axes)?;
        Ok((result.extents().to_vec(), self.download(&result)?))
    }
}

/// Runs every case of the file, and compares the extents and bits of its output, or the error, with the file.
///
/// # Errors
/// If a result differs; if there are fewer cases than 5000, or none of an operator and a type that it has kernels for.
/// The message has the lines of the file, and what was found and expected.
pub fn check_cases(gpu: &Gpu) -> Result<(), String> {
    check_text(gpu, CASES)
}

/// [`check_cases`] of a text in place of the file, at any place.
///
/// # Errors
/// As there.
pub fn check_text<P: Place>(place: &P, text: &str) -> Result<(), String> {
    let runs = runs_at::<P>();
    let (mut cases, mut wrong, mut message) = (0, 0, String::new());
    let mut has_cases = vec![false; runs.len()];
    for (number, line) in text.lines().enumerate() {
        let refused = |why: String| format!("line {} of cases.txt: {why}\n  {line}", number + 1);
        let case = Case::parse(line).map_err(refused)?;
        let of_pair = |(operator, dtype, _): &(&str, &str, Run<P>)| (*operator, *dtype) == (case.operator, case.dtype);
        let run = runs.iter().position(of_pair).ok_or_else(|| refused("no such operator of this type".into()))?;
        (cases, has_cases[run]) = (cases + 1, true);
        let found = runs[run].2(place, &case).map_err(refused)?;
        if let Some(difference) = case.difference(&found) {
            wrong += 1;
            if wrong <= SHOWN {
                let _ = write!(message, "{}\n\n", refused(difference));
            }
        }
    }
    if wrong > 0 {
        return Err(format!("{wrong} of {cases} cases are wrong:\n\n{message}"));
    }
    if cases < LEAST_CASES {
        return Err(format!("only {cases} cases, expected {LEAST_CASES} or more"));
    }
    match has_cases.iter().position(|has_cases| !has_cases) {
        Some(without) => Err(format!("no case of {} of {}", runs[without].0, runs[without].1)),
        None => Ok(()),
    }
}

/// A line of the file.
struct Case<'a> {
    operator: &'a str,
    dtype: &'a str,
    inputs: Vec<Input<'a>>,
    axes: Named,
    expected: Outcome,
}

/// An array: its elements are a function of their kind, the seed and their position in memory.
struct Input<'a> {
    kind: &'a str,
    seed: u64,
    layout: Layout,
}

/// The axes that a call names.
struct Named {
    /// `None` for all of them.
    names: Option<Vec<isize>>,
    keep_dims: bool,
}

/// What a call returns.
#[derive(PartialEq)]
enum Outcome {
    /// The extents of an array, and the bits of each element as the file has them.
    Array(Vec<usize>, Vec<String>),
    /// The name of the error's variant.
    Error(String),
}

impl<'a> Case<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        let mut fields = line.split(' ');
        let mut next = |what: &str| fields.next().ok_or_else(|| format!("no {what}"));
        let (operator, dtype) = (next("operator")?, next("type")?);
        let inputs = if operator == "Dot" { 2 } else { 1 };
        let inputs = (0..inputs).map(|_| Input::parse(next("input")?)).collect::<Result<_, String>>()?;
        let axes = Named::parse(next("axes")?)?;
        let (way, first) = (next("result")?, next("result")?);
        let expected = match way {
            "=" => Outcome::Array(extents(first, 'x')?, outputs(fields)?),
            "!" => Outcome::Error(first.to_owned()),
            other => return Err(format!("`{other}` in place of `=` or `!`")),
        };
        Ok(Self { operator, dtype, inputs, axes, expected })
    }

    /// How the outcome differs from the expected one.
    fn difference(&self, found: &Outcome) -> Option<String> {
        if *found == self.expected {
            return None;
        }
        Some(match (found, &self.expected) {
            (Outcome::Array(found, _), Outcome::Array(expected, _)) if found != expected => {
                format!("extents {found:?}, expected {expected:?}")
            }
            (Outcome::Array(_, found), Outcome::Array(_, expected)) => {
                let differ = |&i: &usize| found.get(i) != expected.get(i);
                let wrong: Vec<usize> = (0..found.len().max(expected.len())).filter(differ).collect();
                let (at, of) = (wrong[0], wrong.len());
                let text = |all: &[String]| all.get(at).map_or("nothing".to_owned(), |bits| format!("0x{bits}"));
                format!("{of} outputs are wrong; output {at} is {}, expected {}", text(found), text(expected))
            }
            (Outcome::Array(..), Outcome::Error(expected)) => format!("a result, expected the error {expected}"),
            (Outcome::Error(found), Outcome::Error(expected)) => format!("the error {found}, expected {expected}"),
            (Outcome::Error(found), Outcome::Array(..)) => format!("the error {found}, expected a result"),
        })
    }
}

impl<'a> Input<'a> {
    fn parse(field: &'a str) -> Result<Self, String> {
        let parts: Vec<&str> = field.split('/').collect();
        let (kind, seed, layout) = match parts[..] {
            [kind, seed, of] => (kind, seed, Layout::contiguous(&extents(of, ',')?)),
            [kind, seed, of, strides, offset] => {
                let (of, strides) = (extents(of, ',')?, numbers(strides, ',')?);
                (kind, seed, Layout::strided(&of, &strides, number(offset)?))
            }
            _ => return Err(format!("`{field}` is no input")),
        };
        Ok(Self { kind, seed: number(seed)?, layout: layout.map_err(|error| error.to_string())? })
    }

    /// The elements of the memory, and nothing after the last one of the layout.
    fn memory<T: CaseElement>(&self) -> Result<Vec<T>, String> {
        let of = |at| bits(T::FORMAT, self.kind, self.seed, at).map(T::of_bits);
        let all: Option<Vec<T>> = (0..self.layout.required_len() as u64).map(of).collect();
        all.ok_or_else(|| format!("`{}` is no kind of element of this type", self.kind))
    }
}

impl Named {
    fn parse(field: &str) -> Result<Self, String> {
        let (names, keep_dims) = field.strip_suffix('k').map_or((field, false), |names| (names, true));
        Ok(Self { names: if names == "all" { None } else { Some(numbers(names, ',')?) }, keep_dims })
    }

    fn axes(&self) -> Axes {
        let axes = self.names.as_deref().map_or(Axes::ALL, Axes::from);
        if self.keep_dims { axes.keep_dims() } else { axes }
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("`{text}` is no number here"))
}

fn numbers<N: std::str::FromStr>(text: &str, separator: char) -> Result<Vec<N>, String> {
    if text == "-" { Ok(Vec::new()) } else { text.split(separator).map(number).collect() }
}

fn extents(text: &str, separator: char) -> Result<Vec<usize>, String> {
    numbers(text, separator)
}

/// The bits of each output: `3f800000*4` are four.
fn outputs<'a>(fields: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for field in fields {
        let (bits, count) = field.split_once('*').unwrap_or((field, "1"));
        all.extend(vec![bits.to_owned(); number(count)?]);
    }
    Ok(all)
}

/// Runs a case. Only a case that cannot be run is an error.
type Run<P> = fn(&P, &Case<'_>) -> Result<Outcome, String>;

macro_rules! runs {
    ($($operator:ident, $name:literal of $([$type:ident])*;)*) => {
        /// Every operator with every type that it has kernels for, by the names that the file has.
        fn runs_at<P: Place>() -> Vec<(&'static str, &'static str, Run<P>)> {
            vec![
            $($((stringify!($operator), stringify!($type), run::<P, ops::$operator, $type>),)*)*
            ("InElementType<Sum>", "f16", run::<P, InElementType<Sum>, f16>),
            ("InElementType<Sum>", "bf16", run::<P, InElementType<Sum>, bf16>),
            ("InElementType<Mean>", "f16", run::<P, InElementType<Mean>, f16>),
            ("InElementType<Mean>", "bf16", run::<P, InElementType<Mean>, bf16>),
            ("InElementType<SumOfSquares>", "f16", run::<P, InElementType<SumOfSquares>, f16>),
            ("InElementType<SumOfSquares>", "bf16", run::<P, InElementType<SumOfSquares>, bf16>),
            ("InElementType<Norm>", "f16", run::<P, InElementType<Norm>, f16>),
            ("InElementType<Norm>", "bf16", run::<P, InElementType<Norm>, bf16>),
            ("Dot", "f32", run_dot::<P, f32>),
            ("Dot", "f64", run_dot::<P, f64>),
            ("Dot", "f16", run_dot::<P, f16>),
            ("Dot", "bf16", run_dot::<P, bf16>),
            ("Dot", "i8", run_dot::<P, i8>),
            ("Dot", "i16", run_dot::<P, i16>),
            ("Dot", "i32", run_dot::<P, i32>),
            ("Dot", "i64", run_dot::<P, i64>),
            ("Dot", "u8", run_dot::<P, u8>),
            ("Dot", "u16", run_dot::<P, u16>),
            ("Dot", "u32", run_dot::<P, u32>),
            ("Dot", "u64", run_dot::<P, u64>),
            ]
        }
    };
}

kernels::for_each_builtin! { runs }

fn run<P: Place, O: Reduction<T, Output: Values> + Default, T: CaseElement>(
    place: &P,
    case: &Case<'_>,
) -> Result<Outcome, String> {
    let [x] = &case.inputs[..] else { return Err("one input".to_owned()) };
    let elements = x.memory::<T>()?;
    Ok(outcome(place.reduce::<O, T>(Elements { elements: &elements, layout: &x.layout }, case.axes.axes())))
}

fn outcome<R: Values>(result: Result<(Vec<usize>, Vec<R>), Error>) -> Outcome {
    match result {
        Ok((extents, outputs)) => Outcome::Array(extents, outputs.iter().map(bits_of_output).collect()),
        Err(error) => Outcome::Error(name_of(&error)),
    }
}

/// The name of an error's variant, or its message if no case expects it.
fn name_of(error: &Error) -> String {
    match error {
        Error::Axis { .. } => "Axis".to_owned(),
        Error::Empty { .. } => "Empty".to_owned(),
        Error::IndexOverAxes { .. } => "IndexOverAxes".to_owned(),
        Error::RepeatedAxis { .. } => "RepeatedAxis".to_owned(),
        Error::TooManyAxes { .. } => "TooManyAxes".to_owned(),
        other => format!("\"{other}\""),
    }
}

/// An output as the file has it: the bits of a number, or of two with a colon between them.
fn bits_of_output<R: Values>(output: &R) -> String {
    let bytes = output.bytes();
    let of_number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |bits, &byte| bits << 8 | u64::from(byte));
    let numbers = bytes.chunks(bytes.len() / output.values().len());
    numbers.map(|bytes| format!("{:x}", of_number(bytes))).collect::<Vec<_>>().join(":")
}

fn run_dot<P: Place, T: CaseElement>(place: &P, case: &Case<'_>) -> Result<Outcome, String>
where
    Dot: Reduces<T, 2, Output: Values>,
{
    let [x, y] = &case.inputs[..] else { return Err("a dot product has two inputs".to_owned()) };
    let (of_x, of_y) = (x.memory::<T>()?, y.memory::<T>()?);
    let of_x = Elements { elements: &of_x[..], layout: &x.layout };
    Ok(outcome(place.dot(of_x, Elements { elements: &of_y, layout: &y.layout }, case.axes.axes())))
}

/// A type of elements.
pub trait CaseElement: Element + Plain {
    /// How its bits are numbers.
    const FORMAT: Format;
    /// The element with these bits.
    fn of_bits(bits: u64) -> Self;
}

/// How the bits of a type are numbers.
#[derive(Clone, Copy)]
pub enum Format {
    /// A float.
    Float {
        /// Bits of the exponent.
        exponent: u32,
        /// Bits of the mantissa that are stored.
        mantissa: u32,
    },
    /// An integer.
    Integer {
        /// Its bits.
        bits: u32,
        /// Whether it has a sign.
        is_signed: bool,
    },
}

macro_rules! elements {
    ($($type:ident: $format:expr, |$bits:ident| $of_bits:expr;)*) => {$(
        impl CaseElement for $type {
            const FORMAT: Format = $format;
            fn of_bits($bits: u64) -> Self {
                $of_bits
            }
        }
    )*};
}

elements! {
    f32: Format::Float { exponent: 8, mantissa: 23 }, |bits| f32::from_bits(bits as u32);
    f64: Format::Float { exponent: 11, mantissa: 52 }, |bits| f64::from_bits(bits);
    f16: Format::Float { exponent: 5, mantissa: 10 }, |bits| f16::from_bits(bits as u16);
    bf16: Format::Float { exponent: 8, mantissa: 7 }, |bits| bf16::from_bits(bits as u16);
    i8: Format::Integer { bits: 8, is_signed: true }, |bits| bits as i8;
    i16: Format::Integer { bits: 16, is_signed: true }, |bits| bits as i16;
    i32: Format::Integer { bits: 32, is_signed: true }, |bits| bits as i32;
    i64: Format::Integer { bits: 64, is_signed: true }, |bits| bits as i64;
    u8: Format::Integer { bits: 8, is_signed: false }, |bits| bits as u8;
    u16: Format::Integer { bits: 16, is_signed: false }, |bits| bits as u16;
    u32: Format::Integer { bits: 32, is_signed: false }, |bits| bits as u32;
    u64: Format::Integer { bits: 64, is_signed: false }, |bits| bits;
}

/// Word `i` of SplitMix64.
fn word(seed: u64, i: u64) -> u64 {
    let bits = seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// The bits of element `i`, as `element_bits` of `make.py` has them; `None` if there is no such kind.
fn bits(format: Format, kind: &str, seed: u64, i: u64) -> Option<u64> {
    match format {
        Format::Float { exponent, mantissa } => float_bits(exponent, mantissa, kind, seed, i),
        Format::Integer { bits, is_signed } => integer_bits(bits, is_signed, kind, seed, i),
    }
}

fn float_bits(exponent_bits: u32, mantissa_bits: u32, kind: &str, seed: u64, i: u64) -> Option<u64> {
    let (bias, top) = ((1_u64 << (exponent_bits - 1)) - 1, (1_u64 << exponent_bits) - 1);
    let mantissa_of = |word: u64| word & ((1 << mantissa_bits) - 1);
    let pick_of = |word: u64| word >> 52 & 0x7ff;
    let of = |sign: u64, field: u64, mantissa: u64| {
        sign << (exponent_bits + mantissa_bits) | field << mantissa_bits | mantissa
    };
    let random = word(seed, i);
    let (sign, pick, mantissa) = (random >> 63, pick_of(random), mantissa_of(random));
    // A field below a limit.
    let below = |limit: u64| (pick * limit) >> 11;
    let near = of(sign, bias - 4 + below(8), mantissa);
    let (nan, infinity) = (of(sign, top, mantissa | 1), of(sign, top, 0));
    let is_sixteenth = pick & 15 == 0;
    Some(match kind {
        "near" => near,
        "positive" => of(0, bias - 4 + below(8), mantissa),
        "unit" => of(sign, bias - 1 + below(2), mantissa),
        "wide" => of(sign, below(top), mantissa),
        "rising" => of(sign, 1 + i % (top - 1), mantissa),
        "subnormal" => of(sign, below(2), mantissa),
        "tiny" => of(sign, 0, pick >> 9),
        "huge" => of(sign, top - 2 + below(2), mantissa),
        "cancel" if i % 2 == 1 => near,
        "cancel" => {
            let first = word(seed, i - i % 4);
            let lowest = bias + u64::from(mantissa_bits);
            let field = lowest + ((pick_of(first) * (top - 1 - lowest)) >> 11);
            of(first >> 63 ^ (i % 4 / 2), field, mantissa_of(first))
        }
        "halves" => {
            let one = of(0, bias, 0);
            let power = |exponent: i64| match exponent + bias as i64 {
                field @ 1.. => (field as u64) << mantissa_bits,
                below => 1 << (i64::from(mantissa_bits) + below - 1),
            };
            // Half a unit in the last place of 1.0 as a sum, and as an element.
            let of_sum = power(if mantissa_bits == 52 { -53 } else { -24 });
            let of_element = power(-i64::from(mantissa_bits) - 1);
            let smallest = power(1 - bias as i64);
            let choices = [one, one, of_sum, of_sum, of_element, smallest, power(1), one | 1];
            of(sign, 0, choices[(pick >> 8) as usize])
        }
        "ties" => match pick >> 9 {
            0 => of(sign, 0, 0),
            1 => of(sign, bias, 0),
            2 => of(sign, bias, 1 << (mantissa_bits - 1)),
            _ => of(sign, bias + 1, 0),
        },
        "zeros" => of(sign, 0, 0),
        "nan" if is_sixteenth => nan,
        "infinity" if is_sixteenth => of(seed & 1, top, 0),
        "infinities" if is_sixteenth => infinity,
        "nan" | "infinity" | "infinities" => near,
        "rare" => match pick & 127 {
            0 => nan,
            1 => infinity,
            _ => near,
        },
        "special" => match pick & 7 {
            0 => nan,
            1 => infinity,
            2 => of(sign, 0, 0),
            3 => of(sign, 0, mantissa),
            _ => near,
        },
        _ => return None,
    })
}

fn integer_bits(bits: u32, is_signed: bool, kind: &str, seed: u64, i: u64) -> Option<u64> {
    let (random, half) = (word(seed, i), 1_u64 << (bits - 1));
    let largest = u64::MAX >> (64 - bits);
    let number = match kind {
        "small" => ((random >> 32) % 100).wrapping_sub(if is_signed { 50 } else { 0 }),
        "bits" => random,
        "limits" => [0, 1, largest, largest - 1, half, half - 1, half + 1, half >> 1][(random >> 61) as usize],
        "top" => (if is_signed { half - 1 } else { largest }) - (random >> 62),
        "ties" => random >> 62,
        "sparse" => u64::from(random >> 60 == 0),
        "zeros" => 0,
        "odd" => random | 1,
        _ => return None,
    };
    Some(number & largest)
}
