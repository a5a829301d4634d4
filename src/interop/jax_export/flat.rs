//! Reading a flat buffer of unknown origin: every step is checked against its bounds.
//!
//! A flat buffer is tables, vectors and strings that refer to each other by distances. All distances but those to tables of
//! slots lead forward, so there are no loops; a budget for the elements of vectors ends files that use one part many times.

use std::cell::Cell;

use crate::error::{Error, Result};

/// Elements of vectors of tables or strings read before a file counts as damaged.
const BUDGET: usize = 4_000_000;

/// A flat buffer.
pub(super) struct Flat<'a> {
    bytes: &'a [u8],
    left: Cell<usize>,
}

/// A table in it.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    flat: &'a Flat<'a>,
    /// Its own place, and that of its slots.
    at: usize,
    slots: usize,
    slots_size: usize,
}

pub(super) fn damaged(what: &str) -> Error {
    Error::numeric("jax.export file", format!("is damaged or cut short: {what}"))
}

impl<'a> Flat<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Flat { bytes, left: Cell::new(BUDGET) }
    }

    /// The table that the file begins with the place of.
    pub(super) fn root(&'a self) -> Result<Table<'a>> {
        self.table(self.follow(0)?)
    }

    fn read<const N: usize>(&self, at: usize) -> Result<[u8; N]> {
        let found = at.checked_add(N).and_then(|end| self.bytes.get(at..end));
        found.and_then(|b| b.try_into().ok()).ok_or_else(|| damaged("a distance leads out of it"))
    }

    fn word(&self, at: usize) -> Result<usize> {
        Ok(u32::from_le_bytes(self.read(at)?) as usize)
    }

    /// Where the distance at `at` leads.
    fn follow(&self, at: usize) -> Result<usize> {
        match self.word(at)? {
            0 => Err(damaged("a distance is 0")),
            distance => Ok(at + distance),
        }
    }

    fn table(&'a self, at: usize) -> Result<Table<'a>> {
        let back = i32::from_le_bytes(self.read(at)?);
        let slots = usize::try_from(at as i64 - i64::from(back)).map_err(|_| damaged("a table has no slots"))?;
        let slots_size = usize::from(u16::from_le_bytes(self.read(slots)?));
        if slots_size < 4 || slots.checked_add(slots_size).is_none_or(|end| end > self.bytes.len()) {
            return Err(damaged("a table has no slots"));
        }
        Ok(Table { flat: self, at, slots, slots_size })
    }

    /// First byte and length of the vector at `at`, whose elements have `size` bytes.
    fn vector(&self, at: usize, size: usize) -> Result<(usize, usize)> {
        let length = self.word(at)?;
        let end = length.checked_mul(size).and_then(|n| n.checked_add(at + 4));
        end.filter(|end| *end <= self.bytes.len()).ok_or_else(|| damaged("a list is longer than the file"))?;
        Ok((at + 4, length))
    }

    fn spend(&self, elements: usize) -> Result<()> {
        let left =
            self.left.get().checked_sub(elements.max(1)).ok_or_else(|| damaged("it refers to itself too often"))?;
        self.left.set(left);
        Ok(())
    }

    fn text(&self, at: usize) -> Result<String> {
        let (start, length) = self.vector(at, 1)?;
        self.spend(length / 8)?;
        let text = std::str::from_utf8(&self.bytes[start..start + length]);
        text.map(str::to_owned).map_err(|_| damaged("a name is not UTF-8"))
    }
}

impl<'a> Table<'a> {
    /// Where slot `slot` is, where the table has it.
    fn slot(&self, slot: usize) -> Result<Option<usize>> {
        let place = 4 + 2 * slot;
        if place + 2 > self.slots_size {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(self.flat.read(self.slots + place)?);
        Ok((offset != 0).then(|| self.at + usize::from(offset)))
    }

    /// A number of `N` bytes, little-endian; zeros where there is none.
    pub(super) fn number<const N: usize>(&self, slot: usize) -> Result<[u8; N]> {
        self.slot(slot)?.map_or(Ok([0; N]), |at| self.flat.read(at))
    }

    pub(super) fn u8(&self, slot: usize) -> Result<u8> {
        Ok(self.number::<1>(slot)?[0])
    }

    pub(super) fn u16(&self, slot: usize) -> Result<u16> {
        self.number(slot).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&self, slot: usize) -> Result<u32> {
        self.number(slot).map(u32::from_le_bytes)
    }

    /// A string, where there is one.
    pub(super) fn text(&self, slot: usize) -> Result<Option<String>> {
        self.slot(slot)?.map(|at| self.flat.text(self.flat.follow(at)?)).transpose()
    }

    /// A table below this one, where there is one.
    pub(super) fn table(&self, slot: usize) -> Result<Option<Table<'a>>> {
        self.flat.spend(1)?;
        self.slot(slot)?.map(|at| self.flat.table(self.flat.follow(at)?)).transpose()
    }

    /// Bytes; none where there is no such list.
    pub(super) fn bytes(&self, slot: usize) -> Result<&'a [u8]> {
        let Some(at) = self.slot(slot)? else { return Ok(&[]) };
        let (start, length) = self.flat.vector(self.flat.follow(at)?, 1)?;
        Ok(&self.flat.bytes[start..start + length])
    }

    /// A list of numbers of `N` bytes each.
    pub(super) fn numbers<const N: usize>(&self, slot: usize) -> Result<Vec<[u8; N]>> {
        let Some(at) = self.slot(slot)? else { return Ok(Vec::new()) };
        let (start, length) = self.flat.vector(self.flat.follow(at)?, N)?;
        self.flat.spend(length)?;
        (0..length).map(|i| self.flat.read(start + i * N)).collect()
    }

    /// A list of strings.
    pub(super) fn texts(&self, slot: usize) -> Result<Vec<String>> {
        self.places(slot)?.into_iter().map(|at| self.flat.text(at)).collect()
    }

    /// A list of tables.
    pub(super) fn tables(&self, slot: usize) -> Result<Vec<Table<'a>>> {
        self.places(slot)?.into_iter().map(|at| self.flat.table(at)).collect()
    }

    fn places(&self, slot: usize) -> Result<Vec<usize>> {
        let Some(at) = self.slot(slot)? else { return Ok(Vec::new()) };
        let (start, length) = self.flat.vector(self.flat.follow(at)?, 4)?;
        self.flat.spend(length)?;
        (0..length).map(|i| self.flat.follow(start + 4 * i)).collect()
    }
}
