//! The element types of files: NumPy's names and the names here.

use anyhow::{bail, ensure};
use npyz::{DType, Endianness, TypeChar, TypeStr};

use crate::element::ElementType;

/// The names of the types in a file. NumPy has no bf16: `ml_dtypes` writes bf16 as two bytes without a type.
pub const NAMES: [(ElementType, &str); 12] = [
    (ElementType::F16, "f2"),
    (ElementType::Bf16, "V2"),
    (ElementType::F32, "f4"),
    (ElementType::F64, "f8"),
    (ElementType::I8, "i1"),
    (ElementType::I16, "i2"),
    (ElementType::I32, "i4"),
    (ElementType::I64, "i8"),
    (ElementType::U8, "u1"),
    (ElementType::U16, "u2"),
    (ElementType::U32, "u4"),
    (ElementType::U64, "u8"),
];

/// NumPy's bool, one byte that is 0 or 1, which is read as u8.
const BOOL: &str = "b1";

/// The element type that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any type that has a name. Two bytes without a type are an error, because they may be bf16 or not.
    Named,
    /// The type of `--dtype`. Two bytes without a type are this type if it is bf16.
    Only(ElementType),
    /// Any type, because the elements are only moved.
    Any,
}

impl From<Option<ElementType>> for Wanted {
    fn from(dtype: Option<ElementType>) -> Self {
        dtype.map_or(Self::Named, Self::Only)
    }
}

/// How a file stores its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub dtype: ElementType,
    /// Whether the highest byte of an element is the first.
    pub is_big: bool,
    /// Whether the elements, read as u8, are NumPy's bool.
    pub is_bool: bool,
}

/// The type that a header names, if it is one of the twelve or bool, and the wanted one.
pub fn stored(dtype: &DType, wanted: Wanted, shown: &str) -> anyhow::Result<Stored> {
    let descr = match dtype {
        DType::Plain(descr) => descr,
        DType::Record(fields) => bail!(
            "{shown} holds records (a structured dtype with the fields {}), not numbers: save one field of them, as \
             by numpy.save(file, array[name])",
            names_of(fields)
        ),
        DType::Array(..) => bail!("{shown} holds arrays as elements, not numbers: save it with their axes"),
    };
    let name = format!("{}{}", descr.type_char(), descr.size_field());
    ensure!(
        name != "V2" || wanted != Wanted::Named,
        "the elements of {shown} are V2, two bytes without a type. ml_dtypes writes bf16 like this: if it is bf16, \
         give --dtype bf16"
    );
    let is_bool = name == BOOL;
    let own = NAMES.iter().find(|(_, own)| *own == name || is_bool && *own == "u1").map(|&(dtype, _)| dtype);
    let Some(own) = own else {
        bail!(
            "{shown} holds {} (NumPy's `{descr}`), and supported types are {} and NumPy's bool: convert it with \
             numpy.astype",
            kind_of(descr),
            ElementType::all()
        )
    };
    if let Wanted::Only(dtype) = wanted
        && dtype != own
    {
        let kind = if is_bool { "bool, which is read as u8".to_owned() } else { own.to_string() };
        bail!(
            "{shown} holds {kind} (NumPy's `{descr}`), and --dtype is {dtype}: leave it out, or convert the file with \
             numpy.astype"
        );
    }
    Ok(Stored { dtype: own, is_big: descr.endianness() == Endianness::Big, is_bool })
}

/// The names of fields, of which the first few are enough.
fn names_of(fields: &[npyz::Field]) -> String {
    const MOST: usize = 3;
    let shown = |field: &npyz::Field| format!("`{}`", field.name.chars().take(20).collect::<String>().escape_debug());
    let names: Vec<_> = fields.iter().take(MOST).map(shown).collect();
    names.join(", ") + if fields.len() > MOST { " and others" } else { "" }
}

/// What elements of a type that is not supported are.
fn kind_of(descr: &TypeStr) -> String {
    let size = descr.size_field();
    match descr.type_char() {
        TypeChar::Complex => format!("complex numbers of {size} bytes"),
        TypeChar::Float => format!("floats of {size} bytes"),
        TypeChar::TimeDelta | TypeChar::DateTime => "times".to_owned(),
        TypeChar::ByteStr | TypeChar::UnicodeStr => "text".to_owned(),
        TypeChar::Object => "Python objects".to_owned(),
        TypeChar::RawData => format!("{size} bytes without a type"),
        // npyz may learn other types.
        other => format!("elements of the kind `{other}`"),
    }
}

/// The type in the header of a file that is written.
pub fn in_file(dtype: ElementType, is_bool: bool) -> DType {
    let own = NAMES.iter().find(|(own, _)| *own == dtype).expect("each type has a name").1;
    let name = if is_bool { BOOL } else { own };
    let order = if name.ends_with('1') { '|' } else { '<' };
    DType::Plain(format!("{order}{name}").parse().expect("npyz knows these types"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_by_their_names_in_files() {
        let stored = |descr: &str, wanted| {
            stored(&DType::Plain(descr.parse().unwrap()), wanted, "`a.npy`").map_err(|error| error.to_string())
        };
        let type_of = |descr: &str, wanted| stored(descr, wanted).map(|stored| stored.dtype);
        let (f32, bf16) = (Wanted::Only(ElementType::F32), Wanted::Only(ElementType::Bf16));
        for (dtype, _) in NAMES {
            let DType::Plain(descr) = in_file(dtype, false) else { panic!("{dtype}") };
            let descr = descr.to_string();
            for wanted in [Wanted::Only(dtype), Wanted::Any] {
                assert_eq!(type_of(&descr, wanted), Ok(dtype));
            }
        }
        assert_eq!(type_of("|u1", Wanted::Named), Ok(ElementType::U8));
        assert_eq!(type_of("|V2", bf16), Ok(ElementType::Bf16));
        let bool = Stored { dtype: ElementType::U8, is_big: false, is_bool: true };
        for wanted in [Wanted::Named, Wanted::Any, Wanted::Only(ElementType::U8)] {
            assert_eq!(stored("|b1", wanted), Ok(bool));
        }
        assert!(stored(">i4", Wanted::Named).is_ok_and(|stored| stored.is_big));
        for (descr, wanted, part) in [
            ("<V2", Wanted::Named, "give --dtype bf16"),
            ("<V2", f32, "holds bf16 (NumPy's `<V2`), and --dtype is f32"),
            ("<f2", bf16, "holds f16 (NumPy's `<f2`), and --dtype is bf16"),
            ("<i8", Wanted::Only(ElementType::I8), "holds i64 (NumPy's `<i8`), and --dtype is i8"),
            ("|b1", f32, "holds bool, which is read as u8 (NumPy's `|b1`), and --dtype is f32"),
            ("<f16", Wanted::Named, "floats of 16 bytes (NumPy's `<f16`), and supported types are f32, f64, f16, bf16"),
            ("<c8", f32, "complex numbers of 8 bytes"),
            ("<c16", Wanted::Any, "NumPy's bool: convert it with numpy.astype"),
            ("|V4", bf16, "4 bytes without a type"),
            ("<M8[s]", Wanted::Any, "times (NumPy's `<M8[s]`)"),
            ("<U4", Wanted::Any, "text (NumPy's `<U4`)"),
            ("|O", Wanted::Any, "Python objects"),
        ] {
            let error = stored(descr, wanted).unwrap_err();
            assert!(error.contains(part) && error.contains("a.npy"), "{descr}: {error}");
        }
    }

    #[test]
    fn records_are_named() {
        let field = |name: &str| npyz::Field { name: name.to_owned(), dtype: in_file(ElementType::F32, false) };
        let record = |names: &[&str]| DType::Record(names.iter().map(|name| field(name)).collect());
        for (names, part) in [(&["a", "b"][..], "fields `a`, `b`)"), (&["a", "b", "c", "d"], "`c` and others)")] {
            let error = stored(&record(names), Wanted::Any, "`a.npy`").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("structured dtype"), "{error}");
        }
    }
}
