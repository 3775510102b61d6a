/** Values computed from loaded documents and the URL, cached until their inputs change. */
import { useMemo } from 'react';
import type { Frame, Pole, Poles, Tree } from '../api/types.gen';
import { type CriticalPath, criticalPathOf } from '../logic/critical-path';
import { spanOfHandle } from '../logic/handles';
import { countProcesses, type Fold, visibleSpans } from '../logic/rows';
import { fullRange, type TimeRange } from '../logic/waterfall';

/** A tree with derived data for drawing that depends on nothing else. */
export interface PreparedTree {
  readonly tree: Tree;
  readonly path: CriticalPath;
  readonly full: TimeRange;
  /** The number of rows that are processes; the others are spans that programs sent. */
  readonly processes: number;
}

export function usePreparedTree(tree: Tree): PreparedTree {
  return useMemo(() => ({ tree, path: criticalPathOf(tree), full: fullRange(tree), processes: countProcesses(tree) }), [tree]);
}

export function useVisibleSpans(tree: Tree, fold: Fold): Uint32Array {
  return useMemo(() => visibleSpans(tree, fold), [tree, fold]);
}

/** Spans marked because they belong to a pole, or because a selected function ran in them. */
export interface SpanMarks {
  /** The marked spans, ascending. */
  readonly spans: Uint32Array;
  /** For each span, the pole it belongs to. */
  readonly poleOf: ReadonlyMap<number, Pole>;
  /** For each span, the share of its samples that contain the selected function. */
  readonly shareOf: ReadonlyMap<number, number>;
}

/** The marks of what was found, or else of the selected function; those of all poles are in `poleOf`. */
export function useSpanMarks(tree: Tree, poles: Poles, frame: Frame | undefined, found: Uint32Array | null): SpanMarks {
  return useMemo(() => {
    const poleOf = new Map<number, Pole>();
    for (const pole of poles.poles) {
      for (const handle of pole.spans) {
        const span = spanOfHandle(handle, tree.spans.parent.length);
        if (span !== null && !poleOf.has(span)) poleOf.set(span, pole);
      }
    }
    const shareOf = new Map<number, number>();
    for (const entry of frame?.spans ?? []) {
      const span = spanOfHandle(entry.handle, tree.spans.parent.length);
      if (span !== null) shareOf.set(span, entry.share);
    }
    return { spans: found ?? Uint32Array.from(shareOf.keys()).sort(), poleOf, shareOf };
  }, [tree, poles, frame, found]);
}
