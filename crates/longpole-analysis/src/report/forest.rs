//! The tree builder, wired to the rules of the tools it knows ([`PlacementRules`]).

use longpole_model::{Recording, SpanHead};

use crate::pulumi::placement::PulumiPlacement;
use crate::tree::build;
use crate::tree::emitters::Emitters;
use crate::tree::forest::Forest;
use crate::tree::placement::PlacementRules;
use crate::tree::span_list::SpanList;

impl Forest {
    /// The forest of a recording's spans and processes.
    pub fn build(recording: &Recording) -> Forest {
        let spans = SpanList::Whole(&recording.spans);
        let emitters = Emitters::of(spans);
        let pulumi = PulumiPlacement::of(recording, emitters.examples(spans));
        build::build(recording, spans, emitters, pulumi.as_ref().map(|it| it as &dyn PlacementRules))
    }

    /// The forest of spans that have only `heads`; `recording.spans` are their examples. Spans of Pulumi have no outline
    /// ([`summary_spans::is_enough`](crate::report::summary_spans::is_enough)).
    pub(crate) fn of_outline(recording: &Recording, heads: &[SpanHead]) -> Forest {
        let spans = SpanList::Outline { heads, examples: &recording.spans };
        build::build(recording, spans, Emitters::of(spans), None)
    }
}
