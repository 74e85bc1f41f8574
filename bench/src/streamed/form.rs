//! The form of a reduction of an array that is read from its beginning to its end.

use anyhow::bail;

/// The form of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The first axis is kept: results of `rows` rows of `len` elements each, which have some of their axes reduced.
    Rows { rows: usize, len: usize },
    /// The axes are `[rows, kept, inner]` when neighbours are merged, and the first and the last are reduced.
    Columns { rows: usize, kept: usize, inner: usize },
}

/// The form of a reduction of an array in C order along the axes that are marked.
pub fn form(extents: &[usize], is_reduced: &[bool]) -> anyhow::Result<Form> {
    if let [false, ..] = is_reduced {
        return Ok(Form::Rows { rows: extents[0], len: extents[1..].iter().product() });
    }
    let mut sides = [1; 3];
    let mut side = 0;
    for (&extent, &is_reduced) in extents.iter().zip(is_reduced) {
        if is_reduced != (side != 1) {
            side += 1;
        }
        let Some(of_side) = sides.get_mut(side) else {
            bail!(
                "--memory: of an array that is reduced along its first axis, the other reduced axes are next to the \
                 first, or the last ones: choose another --axis, or leave out --memory"
            );
        };
        *of_side *= extent;
    }
    let [rows, kept, inner] = sides;
    Ok(Form::Columns { rows, kept, inner })
}

/// The elements that are read together where the first axis is reduced: 0 if any number of them will do.
pub fn row(extents: &[usize], is_reduced: &[bool]) -> anyhow::Result<usize> {
    Ok(match form(extents, is_reduced)? {
        Form::Rows { .. } => row(&extents[1..], &is_reduced[1..])?,
        Form::Columns { kept: 1, .. } => 0,
        Form::Columns { kept, inner, .. } => kept * inner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_merged() {
        let of = |axes: &[usize]| {
            let is_reduced: Vec<bool> = (0..4).map(|axis| axes.contains(&axis)).collect();
            form(&[2, 3, 5, 7], &is_reduced).map_err(|error| error.to_string())
        };
        let columns = |rows, kept, inner| Ok(Form::Columns { rows, kept, inner });
        assert_eq!(of(&[0, 1, 2, 3]), columns(210, 1, 1));
        assert_eq!(of(&[0]), columns(2, 105, 1));
        assert_eq!(of(&[0, 1]), columns(6, 35, 1));
        assert_eq!(of(&[0, 3]), columns(2, 15, 7));
        assert_eq!(of(&[0, 2, 3]), columns(2, 3, 35));
        assert_eq!(of(&[3]), Ok(Form::Rows { rows: 2, len: 105 }));
        assert!(of(&[0, 2]).unwrap_err().contains("choose another --axis"));
        assert_eq!(form(&[], &[]).unwrap(), Form::Columns { rows: 1, kept: 1, inner: 1 });
        assert_eq!(row(&[2, 3, 5, 7], &[false, true, false, false]).unwrap(), 35);
        assert_eq!(row(&[2, 3, 5, 7], &[false, true, true, true]).unwrap(), 0);
    }
}
