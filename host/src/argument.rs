//! The host's side of a kernel's arguments.

use cuda_std::arguments::Side;
use cuda_std::element::Stored;
use cuda_std::launch::{ScalarParameter, Visitor};

use crate::backend::Memory;
use crate::buffer::{View, ViewMut};

/// The host's side of a launch. In a struct of arguments, a [`View`] stands for the kernel's `Global`, slice or
/// pointer, and a [`ViewMut`] for its `GlobalMut` or mutable pointer. Scalars have the same type on both sides.
pub enum Host {}

impl Side for Host {
    type Global<'launch, T: Stored> = View<'launch, T>;
    type GlobalMut<'launch, T: Stored> = ViewMut<'launch, T>;
    type Slice<'launch, T: Stored> = View<'launch, T>;
    type Pointer<'launch, T: Stored> = View<'launch, T>;
    type PointerMut<'launch, T: Stored> = ViewMut<'launch, T>;
}

/// The arguments of a launch as 64-bit words (slots), and the memory that they refer to.
pub(crate) struct Slots<'launch> {
    pub slots: Vec<u64>,
    pub memories: Vec<&'launch Memory>,
}

impl<'launch> Slots<'launch> {
    pub fn new() -> Self {
        Self { slots: Vec::with_capacity(24), memories: Vec::with_capacity(8) }
    }

    fn memory(&mut self, slots: &[u64], memory: &'launch Memory) {
        self.slots.extend_from_slice(slots);
        self.memories.push(memory);
    }
}

impl<'launch> Visitor<'launch, Host> for Slots<'launch> {
    fn scalar<T: ScalarParameter>(&mut self, number: T) {
        number.to_slots(|slot| self.slots.push(slot));
    }

    fn global<T: Stored>(&mut self, view: View<'launch, T>) {
        self.memory(&view.slots(), view.into_memory());
    }

    fn global_mut<T: Stored>(&mut self, view: ViewMut<'launch, T>) {
        self.memory(&view.slots(), view.into_memory());
    }

    fn slice<T: Stored>(&mut self, view: View<'launch, T>) {
        self.memory(&view.slots(), view.into_memory());
    }

    fn pointer<T: Stored>(&mut self, view: View<'launch, T>) {
        self.memory(&view.slots()[..1], view.into_memory());
    }

    fn pointer_mut<T: Stored>(&mut self, view: ViewMut<'launch, T>) {
        self.memory(&view.slots()[..1], view.into_memory());
    }
}
