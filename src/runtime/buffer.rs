//! Buffers: tensors on a device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Device, xla_error};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::Shape;

/// A tensor on a device. Its memory is freed when it is dropped, or passes to a result when it is donated.
pub struct Buffer {
    pub(super) inner: xla::PjRtBuffer,
    pub(super) shape: Arc<Shape>,
    /// Which device it lives on; see [`Device`].
    pub(super) device: u64,
    pub(super) donated: AtomicBool,
}

impl Buffer {
    pub(super) fn new(inner: xla::PjRtBuffer, shape: Arc<Shape>, device: u64) -> Self {
        Buffer { inner, shape, device, donated: AtomicBool::new(false) }
    }

    /// Copies a host tensor to `device`.
    pub(super) fn from_host(device: &Device, array: &Array) -> Result<Self> {
        let ty = super::element_type(array.dtype());
        let inner = device.client().buffer_from_host_raw_bytes(ty, array.bytes(), array.dims(), None);
        let shape = Arc::new(Shape::new(array.dtype(), array.dims()));
        Ok(Buffer::new(inner.map_err(xla_error)?, shape, device.id()))
    }

    /// Element type and dimensions; costs no call to XLA.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the memory has passed to a result of a program. Such a buffer cannot be used any more.
    pub fn is_donated(&self) -> bool {
        self.donated.load(Ordering::Acquire)
    }

    /// Copies the tensor to the host, waiting for what computes it. Costs a thread hop (about 50 us): read rarely.
    pub fn to_host(&self) -> Result<Array> {
        if self.is_donated() {
            return Err(Error::tensor("buffer", "was donated to a program and cannot be read any more"));
        }
        let literal = self.inner.to_literal_sync().map_err(xla_error)?;
        let mut bytes = vec![0u8; self.shape.bytes()];
        if !bytes.is_empty() {
            literal.copy_untyped_to(&mut bytes).map_err(xla_error)?;
        }
        Array::from_bytes(self.shape.dtype, &self.shape.dims, bytes)
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({}{})", self.shape, if self.is_donated() { ", donated" } else { "" })
    }
}
