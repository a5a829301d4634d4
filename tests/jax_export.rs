//! `.jax_export` files: written and read back, those of JAX, damaged ones.

use std::collections::BTreeSet;

use sinexp::array::{Array, DType};
use sinexp::graph::{Program, Shape, Tensor};
use sinexp::interop::jax_export::{Aval, DisabledCheck, Exported, Kind, Options, Sharding, Tree, export, export_graph};
use sinexp::interop::program::{Foreign, Format};
use sinexp::runtime::Device;

/// Written by python/fixtures/write_jax_export.py, in JAX 0.10.2.
const JAX: &[u8] = include_bytes!("files/several.jax_export");

fn parameter(name: &str, dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::parameter(name, Shape::new(dtype, dims))
}

/// f({"w": f32[3], "a": bf16[2]}, n i32[]) -> (n w, n + 1).
fn small(options: &Options) -> Exported {
    let (w, a, n) =
        (parameter("w", DType::F32, &[3]), parameter("a", DType::BF16, &[2]), parameter("n", DType::I32, &[]));
    let params = Tree::dict([("w", Tree::Leaf(w.clone())), ("a", Tree::Leaf(a))]);
    let results = Tree::Tuple(vec![Tree::Leaf(&n.convert(DType::F32) * &w), Tree::Leaf(&n + &n.ones_like())]);
    export_graph("small", &[params, Tree::Leaf(n)], &results, options).expect("valid")
}

fn evaluate(foreign: &Foreign, inputs: &[Array]) -> Vec<Array> {
    let device = Device::open("cpu").expect("a CPU");
    let program = device.compile(&foreign.program().expect("known types")).expect("valid");
    program.call(&inputs.iter().collect::<Vec<_>>()).expect("fits")
}

#[test]
fn what_is_written_is_read_back() {
    for serialization_version in [2, 12] {
        let mut exported = small(&Options { orders: 2, serialization_version, ..Options::default() });
        exported.jax_version = Some("0.12.0".into());
        exported.unordered_effects = vec!["SomeEffect".into()];
        exported.disabled_checks.push(DisabledCheck::CustomCall("target".into()));
        let again = Exported::read(&exported.to_bytes().expect("valid")).expect("valid");
        assert_eq!(again, exported);
        assert_eq!(again.serialization_version, serialization_version);
        assert_eq!(again.in_tree.argument_paths(), ["args[0]['a']", "args[0]['w']", "args[1]"]);
        let vjp = again.vjp.expect("one order");
        let kinds: Vec<String> = vjp.in_avals.iter().map(ToString::to_string).collect();
        assert_eq!(kinds, ["bfloat16[2]", "float32[3]", "int32[]", "float32[3]", "float0[]"]);
        assert_eq!(vjp.out_avals[2].kind, Kind::FLOAT0);
        assert_eq!(vjp.kept, [0, 1, 2, 3], "a cotangent of an integer is not passed");
        assert!(vjp.vjp.is_some());
    }
    let tree = Tree::arguments(vec![
        Tree::None,
        Tree::List(vec![Tree::Leaf(()), Tree::Tuple(Vec::new()), Tree::Dict(Vec::new())]),
        Tree::Custom("my.Class".into(), vec![1, 2, 3], vec![Tree::Leaf(()), Tree::Leaf(())]),
    ]);
    let exported = Exported { in_tree: tree, vjp: None, ..small(&Options::default()) };
    assert_eq!(Exported::read(&exported.to_bytes().expect("valid")).expect("valid"), exported);
}

#[test]
fn what_cannot_be_is_not_written() {
    let exported = small(&Options { orders: 0, ..Options::default() });
    let fails = |exported: Exported| exported.to_bytes().expect_err("refused").to_string();
    assert!(fails(Exported { in_avals: exported.in_avals[1..].to_vec(), ..exported.clone() }).contains("3 leaves"));
    assert!(fails(Exported { kept: vec![0, 0], ..exported.clone() }).contains("keeps"));
    assert!(fails(Exported { kept: vec![3], ..exported.clone() }).contains("keeps"));
    assert!(fails(Exported { devices: 2, ..exported.clone() }).contains("one device"));
    assert!(fails(Exported { in_shardings: vec![Sharding::Split], ..exported }).contains("one device"));

    let x = parameter("x", DType::F32, &[2]);
    let program = Program::new("double", &[x.clone()], &[("y", &x * 2.0)]).expect("valid");
    let leaf = || Tree::arguments(vec![Tree::Leaf(())]);
    let fails = |vjp: &Program| {
        export(&program, Some(vjp), leaf(), Tree::Leaf(()), &Options::default()).expect_err("refused").to_string()
    };
    assert!(fails(&program).contains("its inputs are float32[2], expected float32[2], float32[2]"));
    let two = Tree::arguments(vec![Tree::Leaf(()); 2]);
    assert!(export(&program, None, two, Tree::Leaf(()), &Options::default()).is_err());
}

#[test]
fn ours_computes_what_it_did() {
    let bytes = small(&Options::default()).to_bytes().expect("valid");
    let foreign = Foreign::from_bytes(&bytes, "").expect("recognised without its extension");
    assert_eq!(foreign.format, Format::JaxExport);
    let inputs = [
        Array::from_slice(&[2], &[half::bf16::ONE; 2]),
        Array::from_slice(&[3], &[1f32, 2.0, 3.0]),
        Array::scalar(2i32),
    ];
    let results = evaluate(&foreign, &inputs);
    assert_eq!(results, [Array::from_slice(&[3], &[2f32, 4.0, 6.0]), Array::scalar(3i32)]);
    let names: Vec<&str> = foreign.signature.outputs.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["result[0]", "result[1]"]);
}

#[test]
fn donation_does_not_survive() {
    let x = parameter("x", DType::F32, &[2]);
    let program = Program::with_donation("double", &[x.clone()], &[("y", &x * 2.0)], &[(0, 0)]).expect("valid");
    let tree = Tree::arguments(vec![Tree::Leaf(())]);
    let exported = export(&program, None, tree, Tree::Leaf(()), &Options::default()).expect("valid");
    let foreign = Foreign::from_bytes(&exported.to_bytes().expect("valid"), "jax_export").expect("valid");
    assert!(foreign.signature.donations.is_empty() && !foreign.text.contains("alias"), "{}", foreign.text);
}

/// f(params, ignored f32[7], n i32[]) -> {"k": n + [0, 1, 2], "y": tanh(w) n}, for cpu, cuda and tpu.
#[test]
fn a_file_of_jax() {
    let exported = Exported::read(JAX).expect("valid");
    assert_eq!(exported.platforms, ["cpu", "cuda", "tpu"]);
    assert_eq!(exported.platform_index("tpu").expect("there"), Some(2));
    assert!(exported.platform_index("rocm").expect_err("not there").to_string().contains("cpu, cuda, tpu"));
    assert_eq!((exported.in_avals.len(), &exported.kept[..]), (4, &[1, 3][..]));
    assert_eq!(exported.in_avals[0], Aval::new(Kind::of(DType::F32), &[2]));
    assert!(exported.vjp.is_some());

    for platform in ["cpu", "tpu"] {
        let foreign = Foreign::from_bytes(JAX, "").expect("valid").on(platform).expect("for it");
        let names: BTreeSet<&str> = foreign.signature.inputs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(foreign.signature.inputs.len(), 4, "{names:?}");
        let inputs = [
            Array::from_slice(&[2], &[5f32, 6.0]),
            Array::from_slice(&[3], &[0f32, 0.5, -1.0]),
            Array::from_slice(&[7], &[0f32; 7]),
            Array::scalar(3i32),
        ];
        let results = evaluate(&foreign, &inputs);
        assert_eq!(results[0], Array::from_slice(&[3], &[3i32, 4, 5]));
        for (got, x) in results[1].to_f64_vec().iter().zip([0.0f64, 0.5, -1.0]) {
            assert!((got - 3.0 * x.tanh()).abs() < 1e-6);
        }
    }
    // Written again by us, it is the same function.
    assert_eq!(Exported::read(&exported.to_bytes().expect("one device")).expect("valid"), exported);
}

/// SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// The flat buffer only: XLA's reader of modules ends the process on some damaged ones.
#[test]
fn damaged_files_are_errors() {
    let ours = small(&Options::default()).to_bytes().expect("valid");
    let mut numbers = Numbers(11);
    let (mut refused, mut read) = (0, 0);
    for round in 0..4000 {
        let original = if round % 2 == 0 { JAX } else { &ours };
        let mut bytes = original.to_vec();
        match round % 4 {
            0 | 1 => {
                for _ in 0..=numbers.below(4) {
                    let at = numbers.below(bytes.len());
                    bytes[at] ^= 1 << numbers.below(8);
                }
            }
            2 => {
                // A distance or length of any size, mostly in the part that is not modules.
                let at = numbers.below(bytes.len() / 4) * 4;
                let value = [0u32, 1, 4, 0x7fff_ffff, 0xffff_fffc, numbers.below(1 << 32) as u32][numbers.below(6)];
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            _ => bytes.truncate(numbers.below(bytes.len())),
        }
        match Exported::read(&bytes) {
            Ok(exported) => {
                read += 1;
                let _ = exported.check_runnable();
                let _ = exported.to_bytes();
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    assert!(refused > 1000 && read > 100, "{refused} refused, {read} read");
    for nonsense in [&b""[..], b"\x04\0\0\0", &[0xff; 64], &[0; 4096]] {
        assert!(Exported::read(nonsense).is_err());
    }
}

/// A list of a list of a list ..., each many times the same: small on disk, endless when followed without a budget.
#[test]
fn files_that_repeat_themselves_end() {
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    let start = builder.start_table();
    let mut tree = builder.end_table(start);
    for _ in 0..20 {
        let children = builder.create_vector(&[tree; 16]);
        let start = builder.start_table();
        builder.push_slot_always(4, 2i8);
        builder.push_slot_always(6, children);
        tree = builder.end_table(start);
    }
    let name = builder.create_string("f");
    let start = builder.start_table();
    builder.push_slot_always(6, name);
    builder.push_slot_always(8, tree);
    builder.push_slot_always(12, tree);
    let root = builder.end_table(start);
    builder.finish_minimal(root);
    let error = Exported::read(builder.finished_data()).expect_err("endless").to_string();
    assert!(error.contains("too often"), "{error}");
}
