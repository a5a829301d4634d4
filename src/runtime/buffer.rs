//! Buffers: tensors on a device.

use super::signature::{Argument, Tag};
use super::{Device, xla_error};
use crate::array::Array;
use crate::error::Result;
use crate::graph::Shape;

/// A tensor on a device. Its memory is freed when it is dropped, or passes to a result when it is donated.
pub struct Buffer {
    pub(super) inner: xla::PjRtBuffer,
    pub(super) tag: Tag,
}

impl Buffer {
    /// Copies a host tensor to `device`.
    pub(super) fn from_host(device: &Device, array: &Array) -> Result<Self> {
        let ty = super::element_type(array.dtype());
        let inner = device.client().buffer_from_host_raw_bytes(ty, array.bytes(), array.dims(), None);
        Ok(Buffer { inner: inner.map_err(xla_error)?, tag: Tag::of_array(array, device.id()) })
    }

    /// Element type and dimensions; costs no call to XLA.
    pub fn shape(&self) -> &Shape {
        &self.tag.shape
    }

    /// Whether the memory has passed to a result of a program. Such a buffer cannot be used any more.
    pub fn is_donated(&self) -> bool {
        self.tag.is_donated()
    }

    /// Copies the tensor to the host, waiting for what computes it. Costs a thread hop (about 50 us): read rarely.
    pub fn to_host(&self) -> Result<Array> {
        self.tag.to_host(&self.inner)
    }
}

impl Argument for Buffer {
    fn tag(&self) -> &Tag {
        &self.tag
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({:?})", self.tag)
    }
}
