/** Durations as people write them in a search: `204ms`, `1m30s`. */
import type { Nanos } from '../base/brand';

/** The units of a duration, in nanoseconds. */
export const NANOS_OF: Readonly<Record<string, number>> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 };

const DURATION = /^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/;
/** Durations are printed with this many digits: finer than a pixel of the plot of all traces. */
const DIGITS = 4;

/** A duration as Go writes it: `1.5s`, `1m30s`; `null` if it is none. */
export function readDuration(text: string): Nanos | null {
  if (!DURATION.test(text)) return null;
  let nanos = 0;
  for (const [, number, unit] of text.matchAll(/([\d.]+)([a-zµ]+)/g)) nanos += Number(number) * (NANOS_OF[unit ?? ''] ?? 0);
  return Math.round(nanos) as Nanos;
}

/** A duration as Go writes it, with four digits: `204ms`, `1.523s`. */
export function printDuration(nanos: number, round: 'down' | 'up'): string {
  const unit = ['s', 'ms', 'µs'].find((name) => nanos >= (NANOS_OF[name] ?? 0)) ?? 'ns';
  const step = Math.max(1, 10 ** (Math.floor(Math.log10(Math.max(nanos, 1))) + 1 - DIGITS));
  const steps = round === 'down' ? Math.floor(nanos / step) : Math.ceil(nanos / step);
  // The quotient of two numbers of few digits; what lies behind them is an error of the division.
  return `${Number(((steps * step) / (NANOS_OF[unit] ?? 1)).toPrecision(DIGITS + 3))}${unit}`;
}
