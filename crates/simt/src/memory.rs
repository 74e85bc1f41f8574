//! Names for memory: a kernel's arguments, and elements of arrays.

/// A kernel's parameter that points to memory.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// The parameter's name.
    pub name: &'a str,
    /// The address of the first byte.
    pub address: usize,
    /// The size in bytes.
    pub bytes: usize,
    /// The size of an element in bytes.
    pub element: usize,
    /// Whether the kernel may write to it. Reads of other arguments cannot race, so they are not recorded.
    pub is_written: bool,
}

/// An element of an array, by name and index.
pub(crate) struct Element {
    pub array: String,
    pub index: u64,
}

/// The named memory of a launch: an owned copy of its [`Argument`]s.
pub(crate) struct NamedMemory(Vec<Named>);

struct Named {
    name: String,
    address: usize,
    bytes: usize,
    element: usize,
}

impl NamedMemory {
    pub fn new(arguments: &[Argument<'_>]) -> Self {
        let named = |argument: &Argument<'_>| Named {
            name: argument.name.to_owned(),
            address: argument.address,
            bytes: argument.bytes,
            element: argument.element,
        };
        Self(arguments.iter().map(named).collect())
    }

    /// The element at an address.
    pub fn element_at(&self, address: usize) -> Option<Element> {
        let memory =
            self.0.iter().find(|memory| memory.address <= address && address - memory.address < memory.bytes)?;
        let index = ((address - memory.address) / memory.element.max(1)) as u64;
        Some(Element { array: format!("`{}`", memory.name), index })
    }
}
