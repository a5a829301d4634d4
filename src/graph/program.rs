//! Programs: a finished graph as HLO text with its signature, ready for a device.

use super::shape::Shape;

/// HLO text with its signature: all that a device needs, and nothing that cannot cross threads.
#[derive(Clone, Debug)]
pub struct Program {
    /// The HLO module's name, used in messages.
    pub name: String,
    /// Argument names and shapes, in call order.
    pub inputs: Vec<(String, Shape)>,
    /// Result names and shapes, in order.
    pub outputs: Vec<(String, Shape)>,
    /// Donations: `(output, input)` pairs whose buffers are one. The input is used up by each call.
    pub aliases: Vec<(usize, usize)>,
    /// The whole module as HLO text.
    pub text: String,
}
