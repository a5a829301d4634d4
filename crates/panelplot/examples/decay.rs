//! Two panels that share their axes: `cargo run -p panelplot --example decay -- decay` writes decay.png and decay.svg.

use panelplot::style::{TEXT_WIDTH, sequence};
use panelplot::{Axis, Figure, Legend, Panel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stem = std::env::args().nth(1).ok_or("give a name for the files")?;
    let mut figure = Figure::new(TEXT_WIDTH, 2).shared_axes().legend(Legend::Below, Some("start:"));
    for (title, power) in [("slow", 0.5), ("fast", 1.5)] {
        let mut panel = Panel::new(title, Axis::log("step"), Axis::log("error"));
        for (i, start) in [1.0, 3.0, 9.0].into_iter().enumerate() {
            let points = (1..=100).map(|n| (f64::from(n), start * f64::from(n).powf(-power))).collect();
            panel = panel.line(start.to_string(), sequence(i, 3), points);
        }
        figure = figure.panel(panel);
    }
    std::fs::write(format!("{stem}.png"), figure.to_png()?)?;
    std::fs::write(format!("{stem}.svg"), figure.to_svg()?)?;
    Ok(())
}
