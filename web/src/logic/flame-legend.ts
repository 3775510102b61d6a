/** What the colours of a flame graph stand for: whose code it is, or what its time was. */

import type { WaitKind } from '../api/types.gen';
import type { Nanos, NodeIndex } from '../base/brand';
import { at } from '../base/column';
import { ratio } from '../base/math';
import type { DrawnFlame } from './drawn-flame';
import { totalsBy } from './flame-totals';
import { formatShare } from './format';
import type { Origin } from './function-name';
import { originOfPlaced } from './placed-function';
import { labelOfWait } from './states';

/** Code of one origin: its share of the time with what it called, and its own. */
export interface OriginShare {
  readonly name: string;
  readonly kind: Origin['kind'];
  readonly total: number;
  readonly self: number;
}

/** Names of origins that are no crate. */
const GREYS: Readonly<Record<Exclude<Origin['kind'], 'crate'>, string>> = {
  runtime: 'language runtime',
  native: 'native code',
  unknown: 'without a name',
};

const OTHERS: Omit<OriginShare, 'total' | 'self'> = { name: 'other code', kind: 'unknown' };

/** The origins of the code: the crates with the most time, then all others, then grey code by kind. */
export function originShares(flame: DrawnFlame, cratesMax = 6): readonly OriginShare[] {
  const keys: Omit<OriginShare, 'total' | 'self'>[] = [];
  const known = new Map<string, number>();
  const numberOf = (key: Omit<OriginShare, 'total' | 'self'>): number => {
    const text = `${key.kind} ${key.name}`;
    const number = known.get(text) ?? keys.push(key) - 1;
    known.set(text, number);
    return number;
  };
  const originOf = flame.frames.map((frame) => {
    const { name, kind } = originOfPlaced(frame);
    return numberOf({ name: kind === 'crate' || (kind === 'unknown' && name !== '') ? name : GREYS[kind], kind });
  });
  const originTotals = (numbers: readonly number[]) => totalsBy(flame, (frame) => numbers[frame] ?? -1, keys.length);
  const { total: unmerged } = originTotals(originOf);
  const crates = keys.map((_, number) => number).filter((number) => keys[number]?.kind === 'crate');
  crates.sort((a, b) => at(unmerged, b) - at(unmerged, a));
  // Several crates in one stack count once for all others.
  const isOther = new Set(crates.slice(cratesMax));
  const others = numberOf(OTHERS);
  const merged = originOf.map((number) => (isOther.has(number) ? others : number));
  const { total, self } = originTotals(merged);
  const greys = [others, ...Object.entries(GREYS).map(([kind, name]) => numberOf({ name, kind: kind as Origin['kind'] }))];
  return [...crates.slice(0, cratesMax), ...greys]
    .map((number) => ({
      ...(keys[number] ?? OTHERS),
      total: ratio(total[number] ?? 0, flame.weightNanos),
      self: ratio(self[number] ?? 0, flame.weightNanos),
    }))
    .filter((share) => share.total > 0);
}

/** What a thread did in the time of a box. */
export type FlameState = 'on_cpu' | WaitKind;

/** Whether the colours are those of states: boxes of waits have some. */
export function showsStates(flame: DrawnFlame): boolean {
  return flame.waits.length > 0;
}

/** The share of a box's time on a CPU. */
export function ranShare(flame: DrawnFlame, node: NodeIndex): number {
  return 1 - ratio(at(flame.nodes.waitedNanos, node), at(flame.nodes.totalNanos, node));
}

/** What most waits of a box were for; `null` if it has none. */
export function waitOfNode(flame: DrawnFlame, node: NodeIndex): WaitKind | null {
  return flame.waits[at(flame.nodes.wait, node)]?.kind ?? null;
}

/** The states of a box in words: `60% on-CPU, 40% waiting, mostly lock`; empty if the graph shows none. */
export function statesInWords(flame: DrawnFlame, node: NodeIndex): string {
  if (!showsStates(flame)) return '';
  const wait = waitOfNode(flame, node);
  const ran = ranShare(flame, node);
  const waited = wait === null ? [] : [`${formatShare(1 - ran)} waiting, ${flame.waits.length > 1 ? 'mostly ' : ''}${labelOfWait(wait)}`];
  return [...(ran > 0 ? [`${formatShare(ran)} on-CPU`] : []), ...waited].join(', ');
}

/** A state in the whole graph. */
export interface StateShare {
  readonly state: FlameState;
  readonly label: string;
  readonly nanos: Nanos;
  readonly share: number;
}

/** The states of the whole graph: on a CPU, then the waits, longest first. */
export function stateShares(flame: DrawnFlame): readonly StateShare[] {
  const waited = flame.waits.reduce((sum, { nanos }) => sum + nanos, 0);
  const share = (state: FlameState, label: string, nanos: number): StateShare => ({
    state,
    label,
    nanos: nanos as Nanos,
    share: ratio(nanos, flame.weightNanos),
  });
  return [
    share('on_cpu', 'on-CPU', flame.weightNanos - waited),
    ...flame.waits.map(({ kind, nanos }) => share(kind, labelOfWait(kind), nanos)),
  ].filter(({ nanos }) => nanos > 0);
}
