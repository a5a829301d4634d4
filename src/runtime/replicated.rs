//! Data parallel: one program on several devices of one client, one copy (*replica*) each.
//!
//! Every replica runs the same program on its own arguments;
//! [`Tensor::all_reduce`](crate::graph::Tensor::all_reduce) is where they meet, by XLA's own collectives. Compiling for
//! replicas and running them are calls of the crate `xla`, which waits in its own threads, one per replica: nothing of
//! this needs native code of ours, and a group is an opened [`Device`] with a number of replicas.

use super::signature::{Argument, Signature, Tag, computation};
use super::{Device, DeviceOptions, device, xla_error};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::graph::{Program, Shape};

/// The first `replicas` devices of one client. Cheap to clone; buffers and executables of different opened groups do not
/// mix.
#[derive(Clone, Debug)]
pub struct DeviceGroup {
    device: Device,
    replicas: usize,
    id: u64,
}

impl DeviceGroup {
    /// Opens a device by name, as [`Device::open_with`], for programs that run on `replicas` of its devices at once.
    ///
    /// A CPU plugin has as many virtual devices as `options.cpu_devices` says. `cpu` has one, or as many as
    /// `XLA_FLAGS=--xla_force_host_platform_device_count=N` says when the process starts. They share the cores.
    ///
    /// **Errors** when there are fewer devices, saying how many there are and how to have more.
    ///
    /// ```
    /// use sinexp::{array::{Array, DType}, graph::{Combine, Program, Shape, Tensor}};
    /// use sinexp::runtime::{DeviceGroup, DeviceOptions};
    /// let x = Tensor::parameter("x", Shape::new(DType::F32, &[2]));
    /// let program = Program::new("total", &[x.clone()], &[("sum", x.all_reduce(Combine::Add))])?;
    /// let devices = DeviceGroup::open("cpu", 1, &DeviceOptions::default())?;
    /// let x = devices.put_each(&[Array::from_slice(&[2], &[1.0f32, 2.0])])?;
    /// let sum = devices.compile(&program)?.run(&[&x])?.swap_remove(0);
    /// assert_eq!(sum.to_host(0)?.to_vec::<f32>()?, [1.0, 2.0]); // the sum over one replica
    /// # Ok::<(), sinexp::error::Error>(())
    /// ```
    pub fn open(name: &str, replicas: usize, options: &DeviceOptions) -> Result<DeviceGroup> {
        if replicas == 0 {
            return Err(Error::argument("replicas", replicas, "expected 1 or more"));
        }
        let device = Device::open_with(name, options)?;
        let found = device.device_count();
        if found < replicas {
            let more = if name == "cpu" {
                format!("; start with XLA_FLAGS=--xla_force_host_platform_device_count={replicas} to have more")
            } else if device.is_cpu() {
                format!("; open it with cpu_devices = {replicas} to have more")
            } else {
                String::new()
            };
            let has = format!("has {found} device{}", if found == 1 { "" } else { "s" });
            let reason = format!("{has}, {replicas} replicas need one each{more}");
            return Err(Error::Device { device: name.into(), reason });
        }
        Ok(DeviceGroup { device, replicas, id: device::next_id() })
    }

    /// How many replicas programs run as.
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// The opened device whose first devices these are, for what it knows about itself.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Compiles a program to run on all replicas at once.
    pub fn compile(&self, program: &Program) -> Result<ReplicatedExecutable> {
        let computation = computation(program)?;
        let inner = self.device.client().compile_replicated(&computation, self.replicas).map_err(xla_error)?;
        let signature = Signature::new(program, self.device.name(), self.id);
        Ok(ReplicatedExecutable { inner, group: self.clone(), signature, waits: self.device.is_cpu() })
    }

    /// Copies a host tensor to every replica.
    pub fn put_all(&self, array: &Array) -> Result<ReplicatedBuffer> {
        self.put(&vec![array; self.replicas])
    }

    /// Copies one host tensor to each replica, of one dtype and shape: its part of the data.
    pub fn put_each(&self, arrays: &[Array]) -> Result<ReplicatedBuffer> {
        self.put(&arrays.iter().collect::<Vec<_>>())
    }

    fn put(&self, arrays: &[&Array]) -> Result<ReplicatedBuffer> {
        let refuse = |reason: String| Err(Error::tensor("buffer", reason));
        let (Some(first), true) = (arrays.first(), arrays.len() == self.replicas) else {
            return refuse(format!("{} tensors given for {} replicas", arrays.len(), self.replicas));
        };
        let shape = |a: &Array| Shape::new(a.dtype(), a.dims());
        if let Some(r) = arrays.iter().position(|a| a.dtype() != first.dtype() || a.dims() != first.dims()) {
            return refuse(format!("replica {r}'s is {}, replica 0's {}", shape(arrays[r]), shape(first)));
        }
        let client = self.device.client();
        let put = |(array, device): (&&Array, &xla::PjRtDevice)| {
            let ty = super::element_type(array.dtype());
            client.buffer_from_host_raw_bytes(ty, array.bytes(), array.dims(), Some(device)).map_err(xla_error)
        };
        let inner = arrays.iter().zip(&client.addressable_devices()).map(put).collect::<Result<_>>()?;
        Ok(ReplicatedBuffer { inner, tag: Tag::of_array(first, self.id) })
    }
}

/// A program compiled for all replicas of a group.
pub struct ReplicatedExecutable {
    inner: xla::PjRtLoadedExecutable,
    group: DeviceGroup,
    signature: Signature,
    /// Whether a call must end before the next one starts.
    waits: bool,
}

impl ReplicatedExecutable {
    /// The program's name.
    pub fn name(&self) -> &str {
        self.signature.name()
    }

    /// The group it was compiled for.
    pub fn group(&self) -> &DeviceGroup {
        &self.group
    }

    /// Argument names and shapes of one replica, in order.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.signature.inputs()
    }

    /// Result names and shapes of one replica, in order.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.signature.outputs()
    }

    /// Runs the program on all replicas: one buffer per result, as [`Executable::run`](super::Executable::run) with the
    /// same checks. Donated arguments are used up on every replica.
    ///
    /// Calls from several threads take turns. On CPU a call also returns only when all replicas are done: XLA's
    /// collectives there hold a thread each while they wait for one another, and calls in flight together would use up
    /// its threads and wait for ever.
    pub fn run(&self, arguments: &[&ReplicatedBuffer]) -> Result<Vec<ReplicatedBuffer>> {
        self.signature.claim(arguments)?;
        let results = self.execute(arguments)?;
        // From one list per replica to one buffer per result.
        let replicas = results.len();
        let mut results: Vec<_> = results.into_iter().map(Vec::into_iter).collect();
        let counts = results.iter().map(ExactSizeIterator::len);
        let count = if replicas == self.group.replicas { counts.min().unwrap_or(0) } else { 0 };
        let tags = self.signature.results(count)?;
        Ok(tags
            .map(|tag| ReplicatedBuffer { inner: results.iter_mut().filter_map(Iterator::next).collect(), tag })
            .collect())
    }

    /// One list of results per replica.
    fn execute(&self, arguments: &[&ReplicatedBuffer]) -> Result<Vec<Vec<xla::PjRtBuffer>>> {
        let lists: Vec<Vec<&xla::PjRtBuffer>> =
            (0..self.group.replicas).map(|r| arguments.iter().map(|a| &a.inner[r]).collect()).collect();
        let _one_at_a_time = self.group.device.launch();
        let results = self.inner.execute_replicated_b(&lists).map_err(|e| {
            self.signature.release(arguments);
            xla_error(e)
        })?;
        // The crate can wait for a result only by copying it; all of one replica's are ready at once.
        let smallest = self.signature.outputs().enumerate().min_by_key(|(_, (_, shape))| shape.bytes());
        if let (Some((i, _)), true) = (smallest, self.waits) {
            for buffer in results.iter().filter_map(|list| list.get(i)) {
                buffer.to_literal_sync().map_err(xla_error)?;
            }
        }
        Ok(results)
    }
}

/// A tensor of one dtype and shape on every replica of a group, each with its own values.
pub struct ReplicatedBuffer {
    /// One per replica, in order.
    inner: Vec<xla::PjRtBuffer>,
    tag: Tag,
}

impl ReplicatedBuffer {
    /// Element type and dimensions on one replica; costs no call to XLA.
    pub fn shape(&self) -> &Shape {
        &self.tag.shape
    }

    /// On how many replicas it is.
    pub fn replicas(&self) -> usize {
        self.inner.len()
    }

    /// Whether the memory has passed to a result of a program. Such a buffer cannot be used any more.
    pub fn is_donated(&self) -> bool {
        self.tag.is_donated()
    }

    /// Copies one replica's tensor to the host, waiting for what computes it.
    ///
    /// **Errors** when there is no such replica, and when the buffer was donated.
    pub fn to_host(&self, replica: usize) -> Result<Array> {
        match self.inner.get(replica) {
            Some(buffer) => self.tag.to_host(buffer),
            None => Err(Error::argument("replica", replica, format!("expected less than {}", self.inner.len()))),
        }
    }
}

impl Argument for ReplicatedBuffer {
    fn tag(&self) -> &Tag {
        &self.tag
    }
}

impl std::fmt::Debug for ReplicatedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReplicatedBuffer({} x {:?})", self.inner.len(), self.tag)
    }
}
