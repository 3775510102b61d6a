//! Where Pulumi's spans and processes stand in the tree: the rules that its conventions need ([`PlacementRules`]).
//!
//! ```text
//! RegisterResource db    ├──────────────────────┤
//!   Create db                ├────────────────┤      names the deployment as its parent; works for the registration
//! run-program            ├──────────────────┤
//!   LanguageRuntime/Run    ├──────────────┤          has the same parent as run-program; is what it says
//! ```

use std::collections::HashMap;

use longpole_model::{Recording, Span, SpanRow, Timestamp};

use crate::pulumi::call::{Call, RUN_PROGRAM, RUN_PROGRAM_CALL};
use crate::pulumi::program_kind::{is_build_tool, is_language_host, is_plugin};
use crate::pulumi::{opentracing_bridge, urn::urn_of};
use crate::tree::placement::{Adoption, PlacedSpans, PlacementRules, ProcessPlace, SpanAliases};
use crate::tree::span_list::rows;

/// How far a call looks up for the registration that it may stand under already.
const ABOVE_MAX: usize = 256;

/// Registrations of one resource that are compared with a call: client and server, in preview and update, and some.
const REGISTRATIONS_MAX: usize = 16;

/// The rules for one recording.
#[derive(Debug)]
pub(crate) struct PulumiPlacement {
    aliases: SpanAliases,
}

impl PulumiPlacement {
    /// The rules for this recording; `None` where no emitter is Pulumi's or an older tracer. `examples` holds a span of each emitter.
    pub(crate) fn of<'a>(recording: &Recording, examples: impl Iterator<Item = &'a Span>) -> Option<PulumiPlacement> {
        opentracing_bridge::concerns(examples).then(|| PulumiPlacement { aliases: opentracing_bridge::aliases(recording) })
    }
}

impl PlacementRules for PulumiPlacement {
    fn aliases(&self) -> &SpanAliases {
        &self.aliases
    }

    fn is_of_other_tracer(&self, span: &Span) -> bool {
        opentracing_bridge::is_legacy(span)
    }

    /// One of Pulumi's plug-ins, or the program that a language host runs: not what it runs to build that.
    fn is_served(&self, ProcessPlace { process, program, parent_program }: ProcessPlace<'_>) -> bool {
        is_plugin(program) || (parent_program.is_some_and(is_language_host) && !is_build_tool(process))
    }

    fn adoptions(&self, spans: &PlacedSpans<'_>) -> Vec<Adoption> {
        let mut adoptions = calls(spans);
        adoptions.extend(program_runs(spans));
        adoptions
    }
}

/// Puts the calls of providers under the registration of the same resource that covers them. The engine makes them in its own
/// name, so their parent ids say no more than "inside the deployment"; but the registration is over when they are.
fn calls(placed: &PlacedSpans<'_>) -> Vec<Adoption> {
    let PlacedSpans { spans, range, parent } = *placed;
    let working: Vec<(SpanRow, &str, Call)> = rows(spans).filter_map(|(i, s)| Some((i, urn_of(s)?, Call::of(&s.name)?))).collect();
    let mut registrations: HashMap<&str, Vec<(Timestamp, SpanRow)>> = HashMap::new();
    for &(i, urn, _) in working.iter().filter(|w| w.2.waits_for_work()) {
        registrations.entry(urn).or_default().push((range(i).start, i));
    }
    for list in registrations.values_mut() {
        list.sort_by_key(|&(start, i)| (start, spans[i].trace_id, spans[i].span_id, i));
    }
    let stands_inside = |i: SpanRow, urn: &str| {
        let above = std::iter::successors(parent(i), |&above| parent(above));
        above.take(ABOVE_MAX).any(|above| urn_of(&spans[above]) == Some(urn))
    };
    let mut adoptions = Vec::new();
    for (i, urn, _) in working.into_iter().filter(|w| !w.2.waits_for_work()) {
        let Some(list) = registrations.get(urn) else { continue };
        let before = &list[..list.partition_point(|&(start, _)| start <= range(i).start)];
        let covering = before.iter().rev().take(REGISTRATIONS_MAX).find(|&&(_, r)| range(i).end <= range(r).end);
        if let Some(&(_, registration)) = covering
            && !stands_inside(i, urn)
        {
            adoptions.push(Adoption { span: i, parent: registration });
        }
    }
    adoptions
}

/// Puts the call that runs the program under the span that says so: Pulumi gives both the same parent.
fn program_runs(placed: &PlacedSpans<'_>) -> Vec<Adoption> {
    let PlacedSpans { spans, range, parent } = *placed;
    let named = |name: &'static str| rows(spans).filter(move |(_, span)| span.name == name).filter_map(move |(i, _)| Some((parent(i)?, i)));
    let programs: HashMap<SpanRow, SpanRow> = named(RUN_PROGRAM).collect();
    let adopted = |(parent, call): (SpanRow, SpanRow)| {
        let program = *programs.get(&parent)?;
        let (outer, inner) = (range(program), range(call));
        (outer.start <= inner.start && inner.end <= outer.end).then_some(Adoption { span: call, parent: program })
    };
    named(RUN_PROGRAM_CALL).filter_map(adopted).collect()
}
