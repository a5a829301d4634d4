//! Attributes of instructions as values: lists of dimensions, paddings, slices, windows.

use super::lex::{Lexer, Token, short};
use super::parse::Instruction;
use crate::graph::{Padding, Precision, Window};

/// Attributes that do not change what is computed.
const SILENT: [&str; 8] = [
    "metadata",
    "frontend_attributes",
    "backend_config",
    "control-predecessors",
    "origin",
    "original_value",
    "statistics",
    "xla_cpu_small_call",
];
/// Numbers in windows and paddings are smaller, so that sums and products of them fit.
const LIMIT: i64 = 1 << 40;

impl<'a> Instruction<'a> {
    /// **Errors** when an attribute is neither silent nor among `known`.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        for (name, value) in &self.attributes {
            if *name == "sharding" {
                if value.contains("replicated") || value.contains("maximal device=0") {
                    continue;
                }
                return Err(format!(
                    "sharding={{{}}} is not supported: lower the function for one device, without a mesh",
                    short(value)
                ));
            }
            if !SILENT.contains(name) && !known.contains(name) {
                return Err(format!("the attribute {}={} is not supported", short(name), short(value)));
            }
        }
        Ok(())
    }

    /// An attribute that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&'a str, String> {
        self.attribute(name).ok_or_else(|| format!("the attribute `{name}` is missing"))
    }

    /// `{0,2}`.
    pub(super) fn dims(&self, name: &str) -> Result<Vec<usize>, String> {
        list(self.need(name)?).ok_or_else(|| self.odd(name))
    }

    /// [`Self::dims`], empty where the attribute is not given.
    pub(super) fn dims_or_none(&self, name: &str) -> Result<Vec<usize>, String> {
        self.attribute(name).map_or(Ok(vec![]), |_| self.dims(name))
    }

    /// One dimension: `{1}` or `1`.
    pub(super) fn dim(&self, name: &str) -> Result<usize, String> {
        match self.dims(name)?[..] {
            [dim] => Ok(dim),
            _ => Err(format!("`{name}` is not one dimension")),
        }
    }

    /// A number, 1 where it is not given.
    pub(super) fn count(&self, name: &str) -> Result<usize, String> {
        self.attribute(name).map_or(Ok(1), |text| text.parse().map_err(|_| self.odd(name)))
    }

    fn odd(&self, name: &str) -> String {
        format!("{name}={} is not understood", short(self.attribute(name).unwrap_or("")))
    }

    /// Whether products are exact in the operands' type.
    pub(super) fn precision(&self) -> Precision {
        let text = self.attribute("operand_precision").unwrap_or("");
        if text.contains("high") { Precision::Highest } else { Precision::Default }
    }

    /// `padding=0_1x2_2_1`.
    pub(super) fn padding(&self, rank: usize) -> Result<Vec<Padding>, String> {
        let text = self.attribute("padding").unwrap_or("");
        let parse = |part: &str| {
            let numbers: Vec<i64> = part.split('_').map(number).collect::<Option<_>>()?;
            match numbers[..] {
                [low, high] => Some(Padding { low, high, interior: 0 }),
                [low, high, interior] => Some(Padding { low, high, interior: usize::try_from(interior).ok()? }),
                _ => None,
            }
        };
        let all: Option<Vec<Padding>> = text.split('x').filter(|p| !p.is_empty()).map(parse).collect();
        all.filter(|p| p.len() == rank).ok_or_else(|| self.odd("padding"))
    }

    /// `slice={[0:4:2], [1:8]}` as starts, limits, strides.
    pub(super) fn slices(&self) -> Result<[Vec<usize>; 3], String> {
        let mut lex = Lexer::new(self.need("slice")?, self.line);
        let mut all = [vec![], vec![], vec![]];
        while lex.eat('[') {
            let range = lex.enclosed()?;
            let numbers: Option<Vec<usize>> = range.split(':').map(|n| n.trim().parse().ok()).collect();
            let (start, limit, stride) = match numbers.as_deref() {
                Some([start, limit]) => (*start, *limit, 1),
                Some([start, limit, stride]) => (*start, *limit, *stride),
                _ => return Err(self.odd("slice")),
            };
            all[0].push(start);
            all[1].push(limit);
            all[2].push(stride);
            lex.eat(',');
        }
        if lex.next() == Token::End { Ok(all) } else { Err(self.odd("slice")) }
    }

    /// `window={size=3x3 stride=2x1 pad=0_1x2_2 lhs_dilate=1x1 rhs_dilate=1x2 rhs_reversal=0x1}`: the windows, and which
    /// dimensions of the kernel are reversed.
    pub(super) fn window(&self) -> Result<(Vec<Window>, Vec<bool>), String> {
        let mut lex = Lexer::new(self.attribute("window").unwrap_or(""), self.line);
        let (mut windows, mut reversed) = (Vec::new(), Vec::new());
        while lex.peek() != Token::End {
            let name = lex.word("a property of the window")?;
            lex.expect('=')?;
            let parts: Vec<&str> = lex.word("the window")?.split('x').collect();
            if windows.is_empty() && name == "size" {
                windows = vec![Window::ONE; parts.len()];
                reversed = vec![false; parts.len()];
            }
            if parts.len() != windows.len() {
                return Err(self.odd("window"));
            }
            for (i, part) in parts.iter().enumerate() {
                let set = || {
                    let w = &mut windows[i];
                    let size = || part.parse::<usize>().ok().filter(|n| (*n as u128) < LIMIT as u128);
                    match name {
                        "size" => w.size = size()?,
                        "stride" => w.stride = size()?,
                        "pad" => {
                            let (low, high) = part.split_once('_')?;
                            (w.low, w.high) = (number(low)?, number(high)?);
                        }
                        "lhs_dilate" => w.base_dilation = size()?,
                        "rhs_dilate" => w.window_dilation = size()?,
                        "rhs_reversal" => reversed[i] = size()? == 1,
                        _ => return None,
                    }
                    Some(())
                };
                let mut set = set;
                set().ok_or_else(|| self.odd("window"))?;
            }
        }
        Ok((windows, reversed))
    }
}

/// A number that sums and products can be made of.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|n: &i64| n.abs() < LIMIT)
}

/// `0,2`, with blanks.
fn list(text: &str) -> Option<Vec<usize>> {
    text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(|p| p.parse().ok()).collect()
}
