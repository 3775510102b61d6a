/** The cost of the lines of a source, for its gutter. */
import type { Source, SourceLine } from '../api/types.gen';
import type { Nanos } from '../base/brand';
import { ratio } from '../base/math';

/** A line with its cost. */
export interface CostedLine extends SourceLine {
  /** Time on CPUs there and in what it calls, and waits there. */
  readonly costNanos: Nanos;
  /** The cost as a share of that of the costliest line. */
  readonly heat: number;
  /** Whether lines before it are left out. */
  readonly followsGap: boolean;
}

/** The lines with their costs. */
export function costedLines({ lines }: Source): readonly CostedLine[] {
  const costs = lines.map(({ totalNanos, waitedNanos }) => totalNanos + waitedNanos);
  const most = costs.reduce((a, b) => Math.max(a, b), 0);
  return lines.map((line, place) => ({
    ...line,
    costNanos: (costs[place] ?? 0) as Nanos,
    heat: ratio(costs[place] ?? 0, most),
    followsGap: place > 0 && (lines[place - 1]?.line ?? 0) + 1 < line.line,
  }));
}

/** The number of the costliest line, the first of several; `null` where no line has a cost. */
export function hottestLine(lines: readonly CostedLine[]): number | null {
  return lines.find(({ heat }) => heat === 1)?.line ?? null;
}
