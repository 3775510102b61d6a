/** The URL and the rows follow each other. */
import { useEffect, useRef } from 'react';
import type { SpanIndex } from '../../base/brand';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import { revealed } from '../../logic/rows';
import type { TimeRange } from '../../logic/waterfall';
import type { SelectionActions } from '../../state/selection';
import { printRange } from '../../state/url';

/** After this long without a movement the time range goes into the URL; browsers refuse to have it changed sixty times a second. */
const SETTLE_MILLIS = 250;

/** A change of the URL that is not ours moves the view, and a view that has come to rest goes into the URL. */
export function useRangeInUrl(engine: WaterfallEngine, wanted: TimeRange | null, actions: SelectionActions): void {
  const { view, full } = engine;
  const known = useRef<string | null>(null);
  const text = wanted === null ? null : printRange(wanted);
  useEffect(() => {
    if (known.current === text) return;
    known.current = text;
    engine.moveTo(wanted ?? full, null);
  }, [engine, text, wanted, full]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const settle = (): void => {
      const { range } = view.get();
      const isWhole = range.start <= full.start && range.end >= full.end;
      const now = isWhole ? null : printRange(range);
      if (known.current === now) return;
      known.current = now;
      actions.setRange(isWhole ? null : range);
    };
    const unwatch = view.watch(() => {
      clearTimeout(timer);
      timer = setTimeout(settle, SETTLE_MILLIS);
    });
    return () => {
      clearTimeout(timer);
      unwatch();
    };
  }, [view, full, actions]);
}

/** A span that is selected elsewhere is brought onto the screen, unfolded if need be: once, so that folding by hand later stays possible. */
export function useSelectedInSight(
  engine: WaterfallEngine,
  rows: Uint32Array,
  selected: SpanIndex | null,
  ready: boolean,
  actions: SelectionActions,
): void {
  const shown = useRef<SpanIndex | null>(null);
  // A link has its own range of time, which its span need not be in.
  const isLater = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new rows are what an unfolding was for
  useEffect(() => {
    if (selected === null || !ready || shown.current === selected) {
      if (selected === null) shown.current = null;
      if (ready) isLater.current = true;
      return;
    }
    const { fold, tree } = engine.scene();
    const opened = revealed(fold, tree, selected);
    if (opened !== fold) {
      // The rows change, and then this runs again.
      actions.setFold(opened);
      return;
    }
    shown.current = selected;
    engine.bringIntoSight(selected, isLater.current);
    isLater.current = true;
  }, [engine, rows, selected, ready, actions]);
}
