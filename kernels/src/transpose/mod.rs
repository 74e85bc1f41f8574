//! Transposes.
//!
//! | module | what is in it |
//! |---|---|
//! | [`tiles`](mod@tiles) | transposes by 16-byte accesses, plain and scaled |
//! | [`words`](mod@words) | transposes word by word, plain and scaled: rows that begin anywhere |
//! | [`direct`] | small matrices of whole vectors, in registers alone |
//! | [`dealt`] | transposes by tiles whose rows are dealt out: three axes reversed, of which one is short |
//! | [`strips`], [`few_columns`](mod@few_columns), [`few_rows`](mod@few_rows) | matrices with a side of a few elements |
//! | [`in_place`] | squares, where they are |
//! | [`run_tiles`](mod@run_tiles), [`run_strips`](mod@run_strips), [`whole_runs`](mod@whole_runs), [`runs`](mod@runs) | the exchange of two axes before a third that stays |
//! | [`in_words`] | elements as the words that lanes move |
//! | [`tile`], [`turn`] | what a block turns, and how a thread turns its squares of it |
//! | `vectors_of_rows`, `kept_runs` | parts of rows, and tiles of runs, on their way in: by aligned vectors, kept as they are |
//! | `wide`, [`slanted`], `ragged` | a tile on its way in and out: at multiples of 16 bytes, and anywhere |
//! | [`tuning`] | the constants that came from a measurement |
//! | [`change`] | a factor and the conjugate on the way |

pub mod change;
pub mod dealt;
pub mod direct;
pub mod few_columns;
pub mod few_rows;
pub mod in_place;
pub mod in_words;
mod kept_runs;
mod ragged;
pub mod run_strips;
pub mod run_tiles;
pub mod runs;
pub mod slanted;
pub mod strips;
pub mod tile;
pub mod tiles;
pub mod tuning;
pub mod turn;
mod vectors_of_rows;
pub mod whole_runs;
mod wide;
pub mod words;
