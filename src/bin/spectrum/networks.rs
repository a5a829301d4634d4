//! `spectrum` of sine networks: drawn by the paper's protocol, or from a file of weights.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use sinexp::analysis::protocol::{Protocol, Weights, moment_field, sampled_points, spectra};
use sinexp::analysis::spectrum::Cell;
use sinexp::cli::Progress;
use sinexp::interop::arrays;
use sinexp::nn::siren_weights::{LayerNames, Layout, SirenWeights};
use sinexp::runtime::Device;

use super::Arguments;

/// The networks of the paper's protocol: one cell for each initialisation and depth.
pub fn drawn_cells(arguments: &Arguments, device: &Device) -> anyhow::Result<(Vec<Cell>, Value)> {
    let protocol = Protocol {
        width: arguments.width as usize,
        networks: arguments.networks as usize,
        points: arguments.points as usize,
        seed: arguments.seed,
        omega0: arguments.omega0.unwrap_or(30.0),
        omega_h: arguments.omega_h.unwrap_or(1.0),
        domain: arguments.domain.unwrap_or((-std::f64::consts::PI, std::f64::consts::PI)),
    };
    let moments = match arguments.inits.iter().any(|i| i == "uniform-mm") {
        true => Some(moment_field(device, &protocol)?),
        false => None,
    };
    let total = arguments.inits.len() * arguments.depths.len() * protocol.networks;
    let mut progress = Progress::new("spectrum", total as u64);
    let mut cells = Vec::new();
    for depth in &arguments.depths {
        let jacobian = protocol.jacobian(device, *depth)?;
        for init in &arguments.inits {
            cells.push(protocol.cell(&jacobian, init, *depth, moments.as_ref(), || {
                progress.step(&format!("{init} L {depth}"));
            })?);
        }
    }
    drop(progress);
    // Grouped as in the paper: by initialisation, then depth, each in the order given.
    let place = |c: &Cell| arguments.inits.iter().position(|i| i == c.name());
    cells.sort_by_key(place);
    let what = format!(
        "N = {}, {} networks × {} points on [{:.4}, {:.4}], seed {}.",
        protocol.width, protocol.networks, protocol.points, protocol.domain.0, protocol.domain.1, protocol.seed
    );
    let config = json!({
        "what": what,
        "width": protocol.width,
        "depths": arguments.depths,
        "inits": arguments.inits,
        "networks": protocol.networks,
        "points": protocol.points,
        "omega0": protocol.omega0,
        "omega_h": protocol.omega_h,
        "domain": protocol.domain,
        "moments": moments.map(|m| json!({ "mu": m.mu.to_vec(), "sigma": m.sigma.iter().collect::<Vec<_>>(),
                                           "omega": m.omega.iter().collect::<Vec<_>>() })),
    });
    Ok((cells, config))
}

/// The one network of a file.
pub fn foreign_cells(
    arguments: &Arguments,
    device: &Device,
    name: &str,
    siren: SirenWeights,
) -> anyhow::Result<(Vec<Cell>, Value)> {
    let domain = arguments.domain.unwrap_or((-1.0, 1.0));
    let (width, depth, omega0, omega_h) = (siren.width, siren.depth, siren.omega0, siren.omega_h);
    let (layout, names) = (siren.layout, siren.names.clone());
    let end = |name: Option<&String>| name.cloned().unwrap_or_default();
    let matrices = format!("{} .. {}", end(siren.names.first()), end(siren.names.last()));
    let points = sampled_points(arguments.seed, arguments.points as usize, siren.n_in, domain);
    let (network, weights): (_, Weights) = siren.clone().network();
    let jacobian = sinexp::analysis::jacobian::HiddenJacobian::new(device, &network, arguments.points as usize)?;
    let cell = spectra(&jacobian, name, network.hidden, 1, |_| Ok((weights.clone(), points.clone())), || {})?;
    let what = format!(
        "{name}, N = {}, L = {}, ω₀ = {}, ω = {}, {} as {}, {} points on [{}, {}], seed {}.",
        width, depth, omega0, omega_h, matrices, layout, arguments.points, domain.0, domain.1, arguments.seed
    );
    let config = json!({
        "what": what,
        "weights": arguments.weights,
        "width": width,
        "depths": [depth],
        "matrices": names,
        "layout": layout.to_string(),
        "points": arguments.points,
        "omega0": omega0,
        "omega_h": omega_h,
        "domain": domain,
    });
    Ok((vec![cell], config))
}

/// The network in a file, and the file's name without its extension.
pub fn read_weights(path: &Path, arguments: &Arguments) -> anyhow::Result<(String, SirenWeights)> {
    let names = arguments.names.as_deref().map_or_else(|| Ok(LayerNames::default()), LayerNames::parse)?;
    let file = arrays::read(path)?;
    let omega = (arguments.omega0, arguments.omega_h);
    let layout = arguments.layout.map(Layout::from);
    let siren = SirenWeights::find(&file.tensors, &file.metadata, &names, omega, layout);
    let siren = siren.with_context(|| path.display().to_string())?;
    let name = path.file_stem().map_or_else(|| "network".into(), |s| s.to_string_lossy().into_owned());
    Ok((name, siren))
}
