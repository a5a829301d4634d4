//! From a file.

use super::flat::{Flat, Table, damaged};
use super::{Aval, Dim, DisabledCheck, Exported, Kind, MOST_ORDERS, Sharding, Tree};
use crate::error::Result;

/// Pytrees nested deeper are taken for damage.
const MOST_NESTED: usize = 100;

impl Exported {
    /// Reads a file of `jax.export`, in the form of any release so far.
    ///
    /// **Errors** when it is damaged or no such file. Does not look into the module.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let flat = Flat::new(bytes);
        let exported = function(flat.root()?, MOST_ORDERS)?;
        exported.check()?;
        Ok(exported)
    }
}

fn function(table: Table<'_>, orders: usize) -> Result<Exported> {
    let indices = |slot: usize| -> Result<Vec<usize>> {
        Ok(table.numbers(slot)?.into_iter().map(|n| u32::from_le_bytes(n) as usize).collect())
    };
    // Since release 0.10 each shape and sharding is there once, and those of arguments and results are indices.
    let unique = all(table.tables(19)?, aval)?;
    let avals = |old: usize, new: usize| -> Result<Vec<Aval>> {
        match &indices(new)?[..] {
            [] => all(table.tables(old)?, aval),
            chosen => {
                let get = |i: &usize| unique.get(*i).cloned().ok_or_else(|| damaged("a shape is not in its list"));
                chosen.iter().map(get).collect()
            }
        }
    };
    let meshes = all(table.tables(20)?, mesh)?;
    let named = all(table.tables(21)?, |s| named_sharding(s, &meshes))?;
    let shardings = |old: usize, new: usize| -> Result<Vec<Sharding>> {
        match &indices(new)?[..] {
            [] => all(table.tables(old)?, |s| sharding(s, &meshes)),
            chosen => {
                let get = |i: &usize| match i.checked_sub(1) {
                    None => Ok(Sharding::Unspecified),
                    Some(i) => named.get(i).copied().ok_or_else(|| damaged("a sharding is not in its list")),
                };
                chosen.iter().map(get).collect()
            }
        }
    };
    let tree = |slot: usize| pytree(table.table(slot)?.ok_or_else(|| damaged("a pytree is missing"))?, MOST_NESTED);
    let effects = |slot: usize| all(table.tables(slot)?, |e| Ok(e.text(0)?.unwrap_or_default()));
    let vjp = match table.table(17)? {
        Some(_) if orders == 0 => return Err(damaged("derivatives within derivatives")),
        Some(vjp) => Some(Box::new(function(vjp, orders - 1)?)),
        None => None,
    };
    let kept = table.numbers(15)?.into_iter().map(|n| usize::from(u16::from_le_bytes(n)));
    Ok(Exported {
        name: table.text(1)?.ok_or_else(|| damaged("the function's name is missing"))?,
        in_tree: tree(2)?,
        in_avals: avals(3, 22)?,
        in_shardings: shardings(7, 24)?,
        out_tree: tree(4)?,
        out_avals: avals(5, 23)?,
        out_shardings: shardings(8, 25)?,
        platforms: table.texts(9)?,
        devices: match table.u32(18)? {
            0 => u32::from(table.u16(6)?),
            devices => devices,
        },
        ordered_effects: effects(10)?,
        unordered_effects: effects(11)?,
        disabled_checks: all(table.tables(12)?, disabled_check)?,
        module: table.bytes(13)?.to_vec(),
        calling_convention: table.u16(14)?,
        kept: kept.collect(),
        uses_global_constants: table.u8(16)? != 0,
        vjp,
        serialization_version: table.u16(0)?,
        jax_version: table.text(26)?,
    })
}

fn all<'a, T>(tables: Vec<Table<'a>>, f: impl Fn(Table<'a>) -> Result<T>) -> Result<Vec<T>> {
    tables.into_iter().map(f).collect()
}

fn aval(table: Table<'_>) -> Result<Aval> {
    let dim = |text: String| match text.parse() {
        Ok(size) => Dim::Fixed(size),
        Err(_) => Dim::Symbolic(text),
    };
    if table.u8(0)? != 0 {
        return Err(damaged("an argument or result is no array"));
    }
    let dims = table.texts(1)?.into_iter().map(dim).collect();
    Ok(Aval { kind: Kind(table.u8(2)?), dims, memory: table.u8(3)? })
}

fn pytree(table: Table<'_>, depth: usize) -> Result<Tree> {
    if depth == 0 {
        return Err(damaged("a pytree is nested too deep"));
    }
    let children = all(table.tables(1)?, |child| pytree(child, depth - 1))?;
    Ok(match table.u8(0)? {
        0 => Tree::Leaf(()),
        1 => Tree::None,
        2 => Tree::Tuple(children),
        3 => Tree::List(children),
        4 => {
            let names = table.texts(2)?;
            if names.len() != children.len() {
                return Err(damaged("a dict has more or fewer keys than values"));
            }
            Tree::Dict(names.into_iter().zip(children).collect())
        }
        5 => Tree::Custom(table.text(3)?.unwrap_or_default(), table.bytes(4)?.to_vec(), children),
        kind => return Err(damaged(&format!("a pytree is of kind {kind}"))),
    })
}

fn disabled_check(table: Table<'_>) -> Result<DisabledCheck> {
    Ok(match table.u8(0)? {
        0 => DisabledCheck::Platform,
        1 => DisabledCheck::CustomCall(table.text(1)?.unwrap_or_default()),
        other => DisabledCheck::Other(other),
    })
}

/// Names and sizes of a mesh's axes.
fn mesh(table: Table<'_>) -> Result<Vec<(String, u32)>> {
    let sizes = table.numbers(0)?.into_iter().map(u32::from_le_bytes);
    Ok(table.texts(1)?.into_iter().zip(sizes).collect())
}

/// A sharding by the names of axes: split where an axis with several devices is among those of a dimension.
fn named_sharding(table: Table<'_>, meshes: &[Vec<(String, u32)>]) -> Result<Sharding> {
    let own = table.table(0)?.map(mesh).transpose()?;
    let index = table.u32(3)? as usize;
    let mesh = meshes.get(index).or(own.as_ref()).ok_or_else(|| damaged("a mesh is not in its list"))?;
    let Some(spec) = table.table(1)? else { return Ok(Sharding::Replicated) };
    let axes: Vec<Vec<String>> = all(spec.tables(0)?, |dimension| dimension.texts(0))?;
    let one = |axis: &String| mesh.iter().any(|(name, size)| name == axis && *size == 1);
    Ok(if axes.iter().flatten().all(one) { Sharding::Replicated } else { Sharding::Split })
}

/// A sharding as written before release 0.10.
fn sharding(table: Table<'_>, meshes: &[Vec<(String, u32)>]) -> Result<Sharding> {
    if let Some(named) = table.table(2)? {
        return named_sharding(named, meshes);
    }
    match table.bytes(1)? {
        [] => Ok(Sharding::Unspecified),
        // XLA's OpSharding: its field 1, the type, is 0 or left out for replicated and 1 for one device.
        proto => Ok(match proto {
            [8, kind, ..] if *kind > 1 => Sharding::Split,
            _ => Sharding::Replicated,
        }),
    }
}
