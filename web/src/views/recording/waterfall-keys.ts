/** Keys of the focused row, and keys of the time axis that work everywhere. */
import { type KeyboardEvent, type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef } from 'react';
import type { Pole } from '../../api/types.gen';
import type { RowIndex, SpanIndex } from '../../base/brand';
import { at } from '../../base/column';
import { clamp } from '../../base/math';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import { spanHandle, spanOfHandle } from '../../logic/handles';
import { ALL_FOLDED, isFolded, NOTHING_FOLDED, neighbouringMark, neighbouringPole, rowOf } from '../../logic/rows';
import { rangeOfSpan, rowsThatFit } from '../../logic/waterfall';
import { lanesAtom } from '../../state/preferences';
import type { SelectionActions } from '../../state/selection';
import { isTyping } from '../parts/keyboard';
import { type TimelineActions, useTimelineCommands } from './recording-commands';

export const ZOOM_STEP = 0.7;
const PAN_STEP = 0.15;
/** Factor of a step with Shift. */
const FASTER = 3;

/** Selects the next or the previous marked row; if none is marked, the next pole by rank, seen from `pole`. */
export function useMarkSteps(
  engine: WaterfallEngine,
  poles: readonly Pole[],
  pole: string | null,
  actions: SelectionActions,
): (direction: 1 | -1) => void {
  return useCallback(
    (direction) => {
      const { marked, selected, tree } = engine.scene();
      if (marked.length > 0) {
        const next = neighbouringMark(marked, selected, direction);
        if (next !== null) actions.selectSpan(spanHandle(next));
        return;
      }
      const next = neighbouringPole(poles, pole, direction);
      if (next === null) return;
      actions.selectPole(next);
      // Another part of the selected span: its row stays the same, and may have left the screen.
      const span = spanOfHandle(next.spans[0] ?? '', tree.spans.parent.length);
      if (span !== null && span === selected) engine.bringIntoSight(span, true);
    },
    [engine, poles, pole, actions],
  );
}

/** What keys and the command palette do with the time axis and the rows. */
function useTimelineActions(engine: WaterfallEngine, actions: SelectionActions, step: (direction: 1 | -1) => void): TimelineActions {
  return useMemo(
    () => ({
      find: () => document.querySelector<HTMLInputElement>('[data-find]')?.focus(),
      zoomToAll: () => engine.moveTo(engine.full, null),
      zoomToSelected: () => {
        const { selected, tree } = engine.scene();
        const range = engine.chosen.get() ?? (selected === null ? null : rangeOfSpan(tree, selected, engine.full));
        if (range !== null) engine.moveTo(range, null);
      },
      selectRange: () => actions.selectExcerpt({ range: engine.view.get().range }),
      toggleThreads: () => lanesAtom.set(!lanesAtom.get()),
      collapse: () => actions.setFold(ALL_FOLDED),
      expand: () => actions.setFold(NOTHING_FOLDED),
      step,
    }),
    [engine, actions, step],
  );
}

/** Keys that work wherever the focus is, and the same in the command palette. */
export function useTimelineKeys(
  engine: WaterfallEngine,
  actions: SelectionActions,
  step: (direction: 1 | -1) => void,
  whole: string,
): void {
  const timeline = useTimelineActions(engine, actions, step);
  useTimelineCommands(timeline, whole);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (isTyping(event)) return;
      const times = event.shiftKey ? FASTER : 1;
      const moves: Readonly<Record<string, () => void>> = {
        w: () => engine.zoom(ZOOM_STEP ** times),
        s: () => engine.zoom(ZOOM_STEP ** -times),
        a: () => engine.pan(-PAN_STEP * times),
        d: () => engine.pan(PAN_STEP * times),
        0: timeline.zoomToAll,
        z: timeline.zoomToSelected,
        r: timeline.selectRange,
        2: timeline.toggleThreads,
        '[': timeline.collapse,
        ']': timeline.expand,
        '.': () => timeline.step(1),
        ',': () => timeline.step(-1),
      };
      moves[event.key.toLowerCase()]?.();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [engine, timeline]);
}

/**
 * Gives the focus to rows. A row that is to have it is in the document wherever the rows move meanwhile, so the focus is there at once: a frame later
 * the selection of the key before could have moved the row off the screen.
 */
export function useRowFocus(
  host: RefObject<HTMLDivElement | null>,
  focused: SpanIndex | null,
  setFocused: (span: SpanIndex) => void,
): (span: SpanIndex) => void {
  const wanted = useRef<SpanIndex | null>(null);
  useLayoutEffect(() => {
    if (focused === null || wanted.current !== focused) return;
    wanted.current = null;
    host.current?.querySelector<HTMLElement>(`[data-span="${spanHandle(focused)}"]`)?.focus({ preventScroll: true });
  }, [host, focused]);
  return useCallback(
    (span) => {
      wanted.current = span;
      setFocused(span);
    },
    [setFocused],
  );
}

/** Keys of the row that has the focus. */
export function useRowKeys(
  engine: WaterfallEngine,
  focused: SpanIndex | null,
  focus: (span: SpanIndex) => void,
  select: (span: SpanIndex) => void,
  toggle: (span: SpanIndex) => void,
): (event: KeyboardEvent) => void {
  /** Scrolls a row into view and gives it the focus. */
  const focusRow = useCallback(
    (row: number): void => {
      const { rows } = engine.scene();
      const target = clamp(row, 0, rows.length - 1) as RowIndex;
      engine.setView({ ...engine.view.get(), topRow: engine.topRowFor(target) });
      focus(at(rows, target) as SpanIndex);
    },
    [engine, focus],
  );
  return (event) => {
    if (focused === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { tree, rows, fold } = engine.scene();
    const row = rowOf(rows, focused);
    const page = rowsThatFit(engine.box.get()) - 1;
    const parent = at(tree.spans.parent, focused);
    const isParent = at(tree.spans.subtree, focused) > 0;
    const folded = isParent && isFolded(fold, focused);
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => focusRow(row + 1),
      ArrowUp: () => focusRow(row - 1),
      PageDown: () => focusRow(row + page),
      PageUp: () => focusRow(row - page),
      Home: () => focusRow(0),
      End: () => focusRow(rows.length - 1),
      ArrowRight: () => (folded ? toggle(focused) : isParent && focusRow(row + 1)),
      ArrowLeft: () => (isParent && !folded ? toggle(focused) : parent >= 0 && focusRow(rowOf(rows, parent as SpanIndex))),
      Enter: () => select(focused),
      ' ': () => select(focused),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };
}
