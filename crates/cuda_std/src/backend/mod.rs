//! The primitives that differ between a GPU and the executor, under one list of names.
//!
//! `gpu` and `cpu` define the same functions with the same signatures; everything else in this crate is written once,
//! on top of them.

#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use cpu::*;

#[cfg(target_arch = "nvptx64")]
mod gpu;
#[cfg(target_arch = "nvptx64")]
pub(crate) use gpu::*;
