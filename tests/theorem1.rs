//! Theorem 1 of the uniform-phase paper on many small networks: the mean squared singular value of dh_L/dh_1 is one at
//! every depth, and not so for the initialisations it is compared with (Appendix A.4).

use sinexp::analysis::protocol::{Protocol, moment_field};
use sinexp::analysis::spectrum::Summary;
use sinexp::runtime::Device;

fn summaries(init: &str, networks: usize, depths: &[usize]) -> Vec<Summary> {
    let device = Device::open("cpu").expect("cpu");
    let protocol = Protocol {
        width: 16,
        networks,
        points: 1,
        seed: 1,
        omega0: 30.0,
        omega_h: 1.0,
        domain: (-std::f64::consts::PI, std::f64::consts::PI),
    };
    let moments = moment_field(&device, &protocol).expect("moments");
    let cell = |depth: &usize| {
        let jacobian = protocol.jacobian(&device, *depth).expect("compiles");
        protocol.cell(&jacobian, init, *depth, Some(&moments), || {}).expect("spectra").summary()
    };
    depths.iter().map(cell).collect()
}

#[test]
fn uniform_phase_keeps_the_mean_square_at_one() {
    for (summary, depth) in summaries("uniform-mm", 2000, &[2, 4, 8]).iter().zip([2, 4, 8]) {
        let error = summary.standard_error.expect("many networks");
        let off = (summary.mean_square - 1.0) / error;
        assert!(off.abs() < 4.0 && error < 0.03, "depth {depth}: {} ± {error}", summary.mean_square);
    }
}

#[test]
fn the_others_do_not() {
    let cvp26 = summaries("cvp26-s0", 500, &[2, 4, 8]);
    assert!(cvp26.windows(2).all(|w| w[1].mean_square < 0.8 * w[0].mean_square), "{cvp26:?}");
    assert!(cvp26.iter().all(|s| (1.3..2.1).contains(&s.largest)), "the largest stays: {cvp26:?}");
    let sm20 = summaries("sm20", 500, &[2, 4, 8]);
    assert!(sm20.windows(2).all(|w| w[1].mean_square > 1.3 * w[0].mean_square), "{sm20:?}");
}
