//! To a file.

use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Push, TableFinishedWIPOffset, Vector, WIPOffset};

use super::{Aval, DisabledCheck, Exported, MOST_ORDERS, Sharding, Tree};
use crate::error::{Error, Result};

/// Distances in a flat buffer have 31 bits.
const MOST_BYTES: usize = (1 << 31) - (1 << 24);

type Builder = FlatBufferBuilder<'static>;
/// A finished table; the type only tells the builder what a list holds.
type Finished = WIPOffset<TableFinishedWIPOffset>;
type List = WIPOffset<Vector<'static, ForwardsUOffset<TableFinishedWIPOffset>>>;

impl Exported {
    /// The file's bytes, which [`Exported::read`] reads back. Shapes, shardings and number of devices are in it both as
    /// before and as since release 0.10.
    ///
    /// **Errors** when parts do not agree, when the file would be over 2 GiB, and when it is laid over several devices.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check()?;
        let mut size = 0usize;
        let mut orders = 0;
        let mut next = Some(self);
        while let Some(function) = next {
            size += function.module.len();
            orders += 1;
            next = function.vjp.as_deref();
        }
        if size > MOST_BYTES || orders > MOST_ORDERS {
            return Err(Error::numeric(
                format!("function `{}`", self.name),
                format!(
                    "has {size} bytes in {orders} programs; a jax.export file holds {MOST_BYTES} bytes, {MOST_ORDERS} programs: pass large constants as arguments"
                ),
            ));
        }
        let mut builder = Builder::with_capacity(size + 4096);
        let root = function(&mut builder, self)?;
        builder.finish_minimal(root);
        Ok(builder.finished_data().to_vec())
    }
}

fn slot(number: u16) -> u16 {
    4 + 2 * number
}

/// A table of these fields.
fn table(builder: &mut Builder, fields: impl FnOnce(&mut Builder)) -> Finished {
    let start = builder.start_table();
    fields(builder);
    builder.end_table(start)
}

fn list<T>(
    builder: &mut Builder,
    items: &[T],
    mut one: impl FnMut(&mut Builder, &T) -> Result<Finished>,
) -> Result<List> {
    let items: Vec<Finished> = items.iter().map(|item| one(builder, item)).collect::<Result<_>>()?;
    Ok(builder.create_vector(&items))
}

fn strings(
    builder: &mut Builder,
    items: impl Iterator<Item = String>,
) -> WIPOffset<Vector<'static, ForwardsUOffset<&'static str>>> {
    let items: Vec<WIPOffset<&'static str>> = items.map(|item| builder.create_string(&item)).collect();
    builder.create_vector(&items)
}

fn function(builder: &mut Builder, exported: &Exported) -> Result<Finished> {
    let Exported { in_avals, out_avals, .. } = exported;
    let whole = |shardings: &[Sharding]| !shardings.contains(&Sharding::Split);
    if exported.devices != 1 || !whole(&exported.in_shardings) || !whole(&exported.out_shardings) {
        return Err(Error::numeric(format!("function `{}`", exported.name), "only files for one device are written"));
    }
    let name = builder.create_string(&exported.name);
    let in_tree = pytree(builder, &exported.in_tree)?;
    let out_tree = pytree(builder, &exported.out_tree)?;
    let in_old = list(builder, in_avals, aval)?;
    let out_old = list(builder, out_avals, aval)?;
    let unspecified = |builder: &mut Builder, _: &Aval| Ok(table(builder, |_| {}));
    let in_shardings = list(builder, in_avals, unspecified)?;
    let out_shardings = list(builder, out_avals, unspecified)?;
    let platforms = strings(builder, exported.platforms.iter().cloned());
    let effect = |builder: &mut Builder, name: &String| {
        let name = builder.create_string(name);
        Ok(table(builder, |b| b.push_slot_always(slot(0), name)))
    };
    let ordered = list(builder, &exported.ordered_effects, effect)?;
    let unordered = list(builder, &exported.unordered_effects, effect)?;
    let checks = list(builder, &exported.disabled_checks, disabled_check)?;
    let module = builder.create_vector(&exported.module);
    let kept: Option<Vec<u16>> = exported.kept.iter().map(|i| u16::try_from(*i).ok()).collect();
    let too_many = || Error::numeric(format!("function `{}`", exported.name), "has more than 65,536 arguments");
    let kept = numbers(builder, &kept.ok_or_else(too_many)?);
    let vjp = exported.vjp.as_ref().map(|vjp| function(builder, vjp)).transpose()?;
    let mut unique: Vec<Aval> = Vec::new();
    let mut index = |a: &Aval| match unique.iter().position(|u| u == a) {
        Some(i) => i as u32,
        None => {
            unique.push(a.clone());
            unique.len() as u32 - 1
        }
    };
    let in_indices: Vec<u32> = in_avals.iter().map(&mut index).collect();
    let out_indices: Vec<u32> = out_avals.iter().map(&mut index).collect();
    let unique = list(builder, &unique, aval)?;
    let nothing = list(builder, &[], aval)?;
    let in_indices = numbers(builder, &in_indices);
    let out_indices = numbers(builder, &out_indices);
    let in_sharding_indices = numbers(builder, &vec![0u32; in_avals.len()]);
    let out_sharding_indices = numbers(builder, &vec![0u32; out_avals.len()]);
    let jax_version = exported.jax_version.as_ref().map(|version| builder.create_string(version));
    Ok(table(builder, |b| {
        b.push_slot(slot(0), exported.serialization_version, 0);
        b.push_slot_always(slot(1), name);
        b.push_slot_always(slot(2), in_tree);
        b.push_slot_always(slot(3), in_old);
        b.push_slot_always(slot(4), out_tree);
        b.push_slot_always(slot(5), out_old);
        b.push_slot(slot(6), 1i16, 0);
        b.push_slot_always(slot(7), in_shardings);
        b.push_slot_always(slot(8), out_shardings);
        b.push_slot_always(slot(9), platforms);
        b.push_slot_always(slot(10), ordered);
        b.push_slot_always(slot(11), unordered);
        b.push_slot_always(slot(12), checks);
        b.push_slot_always(slot(13), module);
        b.push_slot(slot(14), exported.calling_convention, 0);
        b.push_slot_always(slot(15), kept);
        b.push_slot(slot(16), exported.uses_global_constants, false);
        if let Some(vjp) = vjp {
            b.push_slot_always(slot(17), vjp);
        }
        b.push_slot(slot(18), 1u32, 0);
        b.push_slot_always(slot(19), unique);
        b.push_slot_always(slot(20), nothing);
        b.push_slot_always(slot(21), nothing);
        b.push_slot_always(slot(22), in_indices);
        b.push_slot_always(slot(23), out_indices);
        b.push_slot_always(slot(24), in_sharding_indices);
        b.push_slot_always(slot(25), out_sharding_indices);
        if let Some(version) = jax_version {
            b.push_slot_always(slot(26), version);
        }
    }))
}

fn numbers<T: Push>(builder: &mut Builder, items: &[T]) -> WIPOffset<Vector<'static, T::Output>> {
    builder.create_vector(items)
}

fn aval(builder: &mut Builder, aval: &Aval) -> Result<Finished> {
    let dims = strings(builder, aval.dims.iter().map(ToString::to_string));
    Ok(table(builder, |b| {
        b.push_slot_always(slot(1), dims);
        b.push_slot(slot(2), aval.kind.0 as i8, 0);
        b.push_slot(slot(3), aval.memory as i8, 0);
    }))
}

fn pytree(builder: &mut Builder, tree: &Tree) -> Result<Finished> {
    let (kind, children): (i8, Vec<&Tree>) = match tree {
        Tree::Leaf(()) => (0, Vec::new()),
        Tree::None => (1, Vec::new()),
        Tree::Tuple(children) => (2, children.iter().collect()),
        Tree::List(children) => (3, children.iter().collect()),
        Tree::Dict(entries) => (4, entries.iter().map(|(_, child)| child).collect()),
        Tree::Custom(_, _, children) => (5, children.iter().collect()),
    };
    let children = match &children[..] {
        [] => None,
        children => Some(list(builder, children, |builder, child| pytree(builder, child))?),
    };
    let names = match tree {
        Tree::Dict(entries) if !entries.is_empty() => {
            Some(strings(builder, entries.iter().map(|(key, _)| key.clone())))
        }
        _ => None,
    };
    let custom = match tree {
        Tree::Custom(name, data, _) => Some((builder.create_string(name), builder.create_vector(data))),
        _ => None,
    };
    Ok(table(builder, |b| {
        b.push_slot(slot(0), kind, 0);
        if let Some(children) = children {
            b.push_slot_always(slot(1), children);
        }
        if let Some(names) = names {
            b.push_slot_always(slot(2), names);
        }
        if let Some((name, data)) = custom {
            b.push_slot_always(slot(3), name);
            b.push_slot_always(slot(4), data);
        }
    }))
}

fn disabled_check(builder: &mut Builder, check: &DisabledCheck) -> Result<Finished> {
    let (kind, target) = match check {
        DisabledCheck::Platform => (0, None),
        DisabledCheck::CustomCall(target) => (1, Some(builder.create_string(target))),
        DisabledCheck::Other(kind) => (*kind as i8, None),
    };
    Ok(table(builder, |b| {
        b.push_slot(slot(0), kind, 0);
        if let Some(target) = target {
            b.push_slot_always(slot(1), target);
        }
    }))
}
