/** The answer of a recording: what to fix first, what it saves, and which code is behind it. */
import type { Answer, NanosRange, Piece, Pole, Poles, Summarised, Summary, TopFrame } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';
import { counted, formatDuration } from './format';
import { fileName } from './placed-function';

/** The poles that a summary names, as the list of all of them: the page shows them until that list is there, so that nothing moves when it comes. */
export function polesOfSummary(summary: Summary): Poles {
  const { recording, of, wallNanos, poles, truncated, betweenNanos, idleNanos, attached } = summary;
  return { recording, of, wallNanos, poles, truncated, betweenNanos, idleNanos, attached: attached !== null };
}

/** The context that distinguishes a pole from others of its name; `null` if the name already contains it. */
export function contextOf(pole: { readonly name: string; readonly context: string | null }): string | null {
  return pole.context === null || pole.name.includes(pole.context) ? null : pole.context;
}

/** What would end sooner: the word after `this`. */
export function wholeInWords(of: Summarised): string {
  return of === 'trace' ? 'trace' : 'run';
}

const WHOLE: Readonly<Record<Summarised, string>> = {
  command: 'run',
  command_alone: 'run',
  attached: 'recording',
  trace: 'trace',
  file: 'file',
  profile: 'profile',
};

/** What a page shows all of: the word after `whole`. */
export function subjectInWords(of: Summarised): string {
  return WHOLE[of];
}

/** `python3 › parse_rules`: the operation of a pole, and the part of its own time that it is. */
export function nameOfPole(pole: Pole): string {
  return pole.part === null || pole.part.text === '' ? pole.name : `${pole.name} › ${pole.part.text}`;
}

/** A pole that is a part of the own time of its operation. */
export type PartPole = Pole & { readonly part: NonNullable<Pole['part']> };

/** The pole if it is a named part of its operation, else `null`. */
export function partOfPole(pole: Pole | null): PartPole | null {
  return pole === null || pole.part === null || pole.part.text === '' ? null : { ...pole, part: pole.part };
}

/** `prog.py:4; `: where the function of a pole is; empty if that is unknown. */
export function placeInWords({ part }: Pole): string {
  return part === null || part.file === null || part.line === null ? '' : `${fileName(part.file)}:${part.line}; `;
}

/** `3 spans`, or `3 processes` in a recording without spans. */
export function countedNodes(count: number, spans: number): string {
  return spans === 0 ? counted(count, 'process', 'processes') : counted(count, 'span');
}

/** What it means that the dependencies of an operation are certain or inferred. */
export function evidenceInWords({ evidence, savesIfZeroNanos }: Pick<Pole, 'evidence' | 'savesIfZeroNanos'>): string {
  return evidence === 'declared'
    ? '◆ Certain: span links declare its dependencies, or it depended on nothing else.'
    : `◇ Its dependencies are inferred from the order of events${isOneNumber(savesIfZeroNanos) ? '' : ', so the saving is a range'}.`;
}

/** The name of the cloud resource that a pole works on: the last part of its URN. */
export function nameOfResource(pole: Pole): string | undefined {
  return pole.resource?.split('::').slice(3).join('::');
}

/** `pulumirpc.ResourceProvider/Create ×2 in modern:index:Step database`. */
export function poleInWords(pole: Pole): string {
  const context = contextOf(pole);
  return `${nameOfPole(pole)}${pole.count > 1 ? ` ×${pole.count}` : ''}${context === null ? '' : ` in ${context}`}`;
}

/** `contains`, or `contains part of` a pole that goes on after this one. */
export function containsInWords(pole: Pole): string {
  return pole.containsAll ? 'contains' : 'contains part of';
}

/** What limits the saving of a pole, before and after the name of the operation that does; it is certain only if the dependencies are. */
export function limitInWords({ evidence }: Pick<Pole, 'evidence'>): readonly [string, string] {
  return evidence === 'declared'
    ? ['it cannot save more: without it, ', ' is on the path']
    : ['it probably cannot save more: without it, ', ' would be on the path'];
}

/** ` in bash (s12)`: the longer operation that what limits a saving is a part of. */
export function withinInWords({ within }: NonNullable<Pole['limitedBy']>): string {
  return within === null ? '' : ` in ${within.name} (${within.handle})`;
}

/** Why a pole is long, and what limits its saving: `contains p4; waits, 0% on-CPU; it cannot save more: without it, create bucket (s9) is on the path`. */
export function whyInWords(pole: Pole): string {
  const { reason, limitedBy, blockedBy } = pole;
  const whom = blockedBy === null ? '' : `; ${blockedBy.text}`;
  const [before, after] = limitInWords(pole);
  const limit = limitedBy === null ? '' : `; ${before}${limitedBy.name} (${limitedBy.handle})${withinInWords(limitedBy)}${after}`;
  const inner = pole.contains === null ? '' : `${containsInWords(pole)} ${pole.contains}; `;
  return `${inner}${placeInWords(pole)}${reason.text}${whom}${limit}`;
}

/** The pole inside this one that explains most of its saving. */
export function containedPole(pole: Pole, poles: Poles): Pole | null {
  return poles.poles.find(({ handle }) => handle === pole.contains) ?? null;
}

/** The selected pole: the one that the URL names, else the pole of the selected span. */
export function selectedPole(poles: Poles, pole: string | undefined, span: string | undefined): Pole | null {
  if (pole !== undefined) return poles.poles.find(({ handle }) => handle === pole) ?? null;
  return span === undefined ? null : (poles.poles.find(({ spans }) => spans.includes(span)) ?? null);
}

/** Whether fixing it saves at least a thousandth of the run. */
export function isWorthwhile(range: NanosRange, wallNanos: Nanos): boolean {
  return range.high > 0 && ratio(range.high, wallNanos) >= 0.001;
}

/** Whether nothing would be left without it: then it is what the run does, and “shorter” says nothing. */
export function isAllOfIt(range: NanosRange, wallNanos: Nanos): boolean {
  return ratio(range.low, wallNanos) >= 0.99;
}

/** Whether both ends of a saving print the same. */
export function isOneNumber(range: NanosRange): boolean {
  return formatDuration(range.low) === formatDuration(range.high);
}

/** The wall time that remains after a saving. */
export function wallAfter(range: NanosRange, wallNanos: Nanos): NanosRange {
  return {
    low: Math.max(0, wallNanos - range.high) as Nanos,
    high: Math.max(0, wallNanos - range.low) as Nanos,
  };
}

/** The function of a piece of a pole's reason among those of the pole's samples; `null` if it is not among the most important ones. */
export function frameOfPiece(pole: Pole, piece: Piece): TopFrame | null {
  return piece.kind === 'function' ? (pole.topFrames.find((top) => top.function === piece.text) ?? null) : null;
}

/** Whether a recording has an answer worth a line of its own. */
export function hasAnswer(answer: Answer | null, wallNanos: Nanos): answer is Answer {
  return answer !== null && isWorthwhile(answer.savesIfZeroNanos, wallNanos);
}
