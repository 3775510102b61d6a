/** A row of the trace in words, for people who do not see the marks on the canvas. */
import { SPAN_FLAG } from '../api/checks';
import type { Pole, Tree } from '../api/types.gen';
import type { SpanIndex } from '../base/brand';
import { at } from '../base/column';
import { contextOf } from './answer';
import { counted, formatDuration, formatShare } from './format';

/** The name of a span. */
export function nameOfSpan(tree: Tree, span: SpanIndex): string {
  return tree.names[at(tree.spans.name, span)] ?? '';
}

/** Words that stand for the service of the command, of a process and of a span that name none. */
const NO_SERVICE: ReadonlySet<string> = new Set(['run', 'process', 'unknown_service']);

/** A service as far as it says something; else an empty text. */
export function namedService(service: string): string {
  return NO_SERVICE.has(service) ? '' : service;
}

/** The service of a span, if it names one. */
export function serviceOfSpan(tree: Tree, span: SpanIndex): string {
  return namedService(tree.services[at(tree.spans.service, span)] ?? '');
}

/** The unusual facts about a span. */
export function remarksOf(tree: Tree, span: SpanIndex): readonly string[] {
  const flags = at(tree.spans.flags, span);
  const remarks: string[] = [];
  if ((flags & SPAN_FLAG.error) !== 0) remarks.push('failed');
  if ((flags & SPAN_FLAG.process) !== 0) remarks.push('a process, not a span');
  if ((flags & SPAN_FLAG.parentInferred) !== 0) remarks.push('parent inferred');
  if ((flags & SPAN_FLAG.orphan) !== 0) remarks.push('parent not in the recording');
  if ((flags & SPAN_FLAG.clamped) !== 0) remarks.push('its recorded end was before its start');
  if ((flags & SPAN_FLAG.cycle) !== 0) remarks.push('its parents formed a loop, which longpole broke here');
  return remarks;
}

/** `long pole p4 in legacy:index:Step dashboard-0`. */
export function poleOfSpanInWords(pole: Pole): string {
  const context = contextOf(pole);
  return `long pole ${pole.handle}${context === null ? '' : ` in ${context}`}`;
}

/** The whole row: `pack bundle, provider-build, 2.37s, on the critical path for 2.37s, long pole p1`. */
export function rowInWords(tree: Tree, span: SpanIndex, pole: Pole | undefined, share: number | undefined): string {
  const onPath = at(tree.spans.onPathNanos, span);
  const below = at(tree.spans.subtree, span);
  const service = serviceOfSpan(tree, span);
  return [
    nameOfSpan(tree, span),
    ...(service === '' ? [] : [service]),
    formatDuration(at(tree.spans.durationNanos, span)),
    ...(onPath > 0 ? [`on the critical path for ${formatDuration(onPath)}`] : []),
    ...(pole === undefined ? [] : [poleOfSpanInWords(pole)]),
    ...(share === undefined ? [] : [`${formatShare(share)} of its samples are in the selected function`]),
    ...remarksOf(tree, span),
    ...(below > 0 ? [`${counted(below, 'row')} below`] : []),
  ].join(', ');
}
