//! How the fields of an operator or a term reach its kernels.

use cuda_std::prelude::*;

/// How the fields of an operator, or of the terms of an exact sum, reach its kernels: in one argument of 64 bits, by
/// [`Operator::FIELDS`](super::Operator::FIELDS) or
/// [`ExactTerm::FIELDS`](crate::reduce::exact::custom::ExactTerm::FIELDS).
#[derive(Clone, Copy)]
pub struct Fields<O> {
    to_word: fn(O) -> u64,
    from_word: fn(u64) -> O,
}

impl<O: Default> Fields<O> {
    /// There are no fields. An operator or a term with fields is refused when it is compiled.
    pub const fn none() -> Self {
        assert!(
            size_of::<O>() == 0,
            "an operator or a term with fields needs `const FIELDS: Fields<Self> = Fields::plain();` and, on its \
             struct, `#[derive(cuda_std::Plain)]` and `#[repr(C)]`: otherwise kernels would not get the fields"
        );
        Self { to_word: |_| 0, from_word: |_| O::default() }
    }
}

impl<O: Plain> Fields<O> {
    /// The fields are [plain](Plain), and have at most 8 bytes together. More are refused at compile time.
    pub const fn plain() -> Self {
        assert!(
            size_of::<O>() <= 8,
            "the fields of an operator or a term have at most 8 bytes together: kernels get one word"
        );
        Self { to_word: |operator| operator.to_pair()[0], from_word: O::from_word }
    }
}

impl<O> Fields<O> {
    /// The fields as a word.
    #[inline(always)]
    #[doc(hidden)]
    pub fn word_of(self, operator: O) -> u64 {
        (self.to_word)(operator)
    }

    /// The operator with these fields.
    #[inline(always)]
    #[doc(hidden)]
    pub fn of_word(self, word: u64) -> O {
        (self.from_word)(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_fields_are_words_and_back() {
        fn back<O: Plain>(operator: O) -> O {
            let fields = Fields::<O>::plain();
            fields.of_word(fields.word_of(operator))
        }
        for value in [0.0_f32, -0.0, 2.5, f32::NAN, f32::from_bits(1)] {
            assert_eq!(back(value).to_bits(), value.to_bits());
        }
        assert_eq!(back([1_u16, 0xffff, 3]), [1, 0xffff, 3]);
        assert_eq!(back(-7_i64), -7);
        assert_eq!(back([0xa5_u8; 5]), [0xa5; 5]);
        assert_eq!(back([0_u8; 0]), [0; 0]);
    }
}
