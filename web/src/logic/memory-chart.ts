/** The memory of a process over time, as a step chart: it is constant between two readings, because the process did not run between them. */
import type { Nanos } from '../base/brand';
import { at } from '../base/column';

/** Readings by time: columns of one length. */
export interface Readings {
  readonly timeNanos: Float64Array;
  readonly residentBytes: Float64Array;
}

export interface MemoryChart {
  /** Outline of the area in a box of 1 by 1 with the origin at its top left: `x y` pairs, the base line included. */
  readonly area: readonly (readonly [number, number])[];
  /** Where the selected span lies. */
  readonly span: { readonly from: number; readonly to: number };
  readonly start: Nanos;
  readonly end: Nanos;
  /** The memory at the top of the box. */
  readonly topBytes: number;
}

/** The chart of a process from its first reading to the end of the selected span, or its last reading; `null` if there is nothing to draw. */
export function memoryChart(readings: Readings, from: Nanos, to: Nanos): MemoryChart | null {
  const { timeNanos, residentBytes } = readings;
  const count = timeNanos.length;
  if (count < 2) return null;
  const start = Math.min(at(timeNanos, 0), from);
  const end = Math.max(at(timeNanos, count - 1), to);
  let top = 0;
  for (const bytes of residentBytes) top = Math.max(top, bytes);
  if (end <= start || top === 0) return null;
  const x = (time: number) => (time - start) / (end - start);
  const y = (bytes: number) => 1 - bytes / top;
  const area: [number, number][] = [[x(at(timeNanos, 0)), 1]];
  for (let index = 0; index < count; index++) {
    if (index > 0) area.push([x(at(timeNanos, index)), y(at(residentBytes, index - 1))]);
    area.push([x(at(timeNanos, index)), y(at(residentBytes, index))]);
  }
  area.push([x(at(timeNanos, count - 1)), 1]);
  return { area, span: { from: x(from), to: x(to) }, start: start as Nanos, end: end as Nanos, topBytes: top };
}
