//! `random` against `jax.random`: bit for bit, normals within 4 units in the last place.

use std::collections::BTreeMap;

use sinexp::array::{Array, Element};
use sinexp::random::{Key, Variant};

use crate::golden;

const SEEDS: [u64; 5] = [0, 1, 42, 123456789, 2147483647];

/// The stored tensor's values.
fn stored<T: Element>(file: &BTreeMap<String, Array>, name: &str) -> Vec<T> {
    let array = file.get(name).unwrap_or_else(|| panic!("{name} is not in the file"));
    array.to_vec().unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn words(keys: &[Key]) -> Vec<u32> {
    keys.iter().flat_map(|k| k.words()).collect()
}

#[test]
fn keys_splits_and_fold_in() {
    let file = golden("prng.safetensors");
    for seed in SEEDS {
        let key = Key::new(seed);
        let get = |name: &str| stored::<u32>(&file, &format!("k{seed}.{name}"));
        assert_eq!(words(&[key]), get("data"));
        for n in [2, 3, 7] {
            assert_eq!(words(&key.split(n)), get(&format!("split{n}")), "split {n} of {seed}");
        }
        assert_eq!(words(&key.split(6)), get("split2x3"));
        let folded: Vec<Key> = [0, 1, 7, 1000, i32::MAX as u32].iter().map(|&d| key.fold_in(d)).collect();
        assert_eq!(words(&folded), get("fold_in"));
        let original = key.with_variant(Variant::Original);
        assert_eq!(words(&original.split(3)), get("orig.split3"));
    }
    let x64 = file.keys().find(|k| k.starts_with("x64.")).expect("a key made under x64");
    assert_eq!(words(&[Key::new((1 << 40) + 5)]), stored::<u32>(&file, x64));
}

#[test]
fn bits() {
    let file = golden("prng.safetensors");
    let shapes: [(&str, &[usize]); 5] =
        [("scalar", &[]), ("1", &[1]), ("7", &[7]), ("3x5", &[3, 5]), ("2x3x4", &[2, 3, 4])];
    for seed in SEEDS {
        let key = Key::new(seed);
        for (name, dims) in shapes {
            assert_eq!(
                key.bits32(dims).into_raw_vec_and_offset().0,
                stored::<u32>(&file, &format!("k{seed}.bits32.{name}"))
            );
            assert_eq!(
                key.bits16(dims).into_raw_vec_and_offset().0,
                stored::<u16>(&file, &format!("k{seed}.bits16.{name}"))
            );
            assert_eq!(
                key.bits8(dims).into_raw_vec_and_offset().0,
                stored::<u8>(&file, &format!("k{seed}.bits8.{name}"))
            );
        }
        assert_eq!(
            key.bits64(&[3, 5]).into_raw_vec_and_offset().0,
            stored::<u64>(&file, &format!("k{seed}.bits64.3x5"))
        );
        let original = key.with_variant(Variant::Original);
        for (name, dims) in [("3x5", &[3, 5][..]), ("7", &[7])] {
            let want = stored::<u32>(&file, &format!("k{seed}.orig.bits32.{name}"));
            assert_eq!(original.bits32(dims).into_raw_vec_and_offset().0, want);
        }
    }
}

#[test]
fn uniforms_integers_and_permutations_are_bit_equal() {
    let file = golden("prng.safetensors");
    let bound = (6.0f64 / 128.0).sqrt() as f32;
    let pi = std::f32::consts::PI;
    for seed in SEEDS {
        let key = Key::new(seed);
        let name = |what: &str| format!("k{seed}.{what}");
        let same = |what: &str, got: Vec<f32>| {
            let want = stored::<f32>(&file, &name(what));
            let differ = got.iter().zip(&want).filter(|(g, w)| g.to_bits() != w.to_bits()).count();
            assert!(got.len() == want.len() && differ == 0, "{}: {differ} of {} differ", name(what), want.len());
        };
        same("uniform", key.uniform(&[257], 0.0, 1.0).into_raw_vec_and_offset().0);
        same("uniform_sym", key.uniform(&[16, 17], -bound, bound).into_raw_vec_and_offset().0);
        same("uniform_pi", key.uniform(&[64], -pi, pi).into_raw_vec_and_offset().0);
        let original = key.with_variant(Variant::Original);
        same("orig.uniform", original.uniform(&[33], 0.0, 1.0).into_raw_vec_and_offset().0);
        let wide: Vec<f64> = key.uniform(&[65], 0.0f64, 1.0).into_raw_vec_and_offset().0;
        assert_eq!(wide, stored::<f64>(&file, &name("uniform_f64")));
        assert_eq!(
            key.randint(&[64], 0, 50257).into_raw_vec_and_offset().0,
            stored::<i32>(&file, &name("randint_0_50257"))
        );
        assert_eq!(key.randint(&[64], -5, 5).into_raw_vec_and_offset().0, stored::<i32>(&file, &name("randint_-5_5")));
        let coins: Vec<u8> = key.bernoulli(&[64], 0.3).iter().map(|&b| u8::from(b)).collect();
        assert_eq!(coins, stored::<u8>(&file, &name("bernoulli_0.3")));
        let order: Vec<f64> = key.permutation(100).into_iter().map(f64::from).collect();
        assert_eq!(order, file[&name("permutation_100")].to_f64_vec());
    }
}

#[test]
fn normals_are_within_four_units_in_the_last_place() {
    let file = golden("prng.safetensors");
    for seed in SEEDS {
        let key = Key::new(seed);
        let cases = [
            ("normal", key.normal::<f32>(&[16, 17]).into_raw_vec_and_offset().0),
            ("truncnorm_-2_2", key.truncated_normal(&[64], -2.0, 2.0).into_raw_vec_and_offset().0),
        ];
        for (what, got) in cases {
            let want = stored::<f32>(&file, &format!("k{seed}.{what}"));
            for (g, w) in got.iter().zip(&want) {
                let ulps = (g.to_bits() as i64 - w.to_bits() as i64).abs();
                assert!(ulps <= 4, "k{seed}.{what}: {g} for {w}, {ulps} ulp");
            }
        }
        let want = stored::<f64>(&file, &format!("k{seed}.normal_f64"));
        for (g, w) in key.normal::<f64>(&[65]).iter().zip(&want) {
            assert!((g - w).abs() <= 4e-15 * w.abs(), "k{seed}.normal_f64: {g} for {w}");
        }
    }
}
