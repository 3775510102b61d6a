/** The long poles of many traces together, in words. */
import type { OperationPoles, Quantiles, SharedPole } from '../api/types.gen';
import { formatDuration, formatShare } from './format';

/** Poles that the page lists. */
const LISTED_MAX = 6;
/** A pole with a smaller part of the time is not listed. */
const SHARE_MIN = 0.01;

export type Quantile = keyof Quantiles;

/** `db › SELECT orders`, the service only where it is another one than the operation's. */
export function poleName(pole: SharedPole, of: OperationPoles): string {
  const name = pole.part === null ? pole.name : `${pole.name} › ${pole.part}`;
  return pole.service === of.service || pole.service === '' ? name : `${name} · ${pole.service}`;
}

/** How long the traces would take without the pole: `46ms`, `46ms–60ms`. */
export function takesWithout(pole: SharedPole, quantile: Quantile): string {
  const [low, high] = [formatDuration(pole.withoutAtBest[quantile]), formatDuration(pole.without[quantile])];
  return low === high ? low : `${low}–${high}`;
}

/** Whether any trace is known to end earlier without the pole. */
export const saves = (pole: SharedPole): boolean => pole.savesNanos.high > 0;

export const poleShare = (pole: SharedPole, of: OperationPoles): string => formatShare(pole.onPathNanos / Math.max(of.totalNanos, 1));

/** How much more of the slowest traces a pole must have than of the others, to be why they are slow. */
const APART_MIN = 0.1;

/** Why the slow ones are slow, where one pole tells. */
export function whySlow(of: OperationPoles): string | null {
  const apart = ({ shareOfSlowest, shareOfOthers }: SharedPole) => (shareOfSlowest ?? 0) - (shareOfOthers ?? 0);
  const [pole] = [...of.poles].sort((a, b) => apart(b) - apart(a));
  if (pole === undefined || apart(pole) < APART_MIN) return null;
  const [slowest, others] = [formatShare(pole.shareOfSlowest ?? 0), formatShare(pole.shareOfOthers ?? 0)];
  return `The slowest 5% are slow because of ${poleName(pole, of)}: ${slowest} of their time, ${others} in the others.`;
}

export const listedPoles = (of: OperationPoles): readonly SharedPole[] =>
  of.poles.filter((pole) => pole.onPathNanos >= SHARE_MIN * of.totalNanos).slice(0, LISTED_MAX);
