//! An adapter between cudarc and warpfold, to copy: see [`adapter`].

pub mod adapter;
