/** The selection of a recording, which is its URL, and the ways to change it. Each change is a step of the browser's history, except zooming and folding. */
import { getRouteApi } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { FlameTime, Pole } from '../api/types.gen';
import type { Excerpt } from '../logic/excerpt';
import type { Grouping, OperationOrder } from '../logic/operations';
import type { Fold } from '../logic/rows';
import type { TimeRange } from '../logic/waterfall';
import {
  changed,
  printFold,
  printRange,
  type RecordingSearch,
  readRange,
  selectingExcerpt,
  selectingSpan,
  showingOnly,
  showingTime,
  toggledRun,
  toggledWithout,
  type View,
} from './url';

const route = getRouteApi('/r/$rec');

export interface SelectionActions {
  selectSpan(handle: string | null): void;
  /** Selects a pole, its span at `position`, and a function if there is one. */
  selectPole(pole: Pole, position?: number, frame?: string): void;
  /** Selects a pole and shows where it waited. */
  selectWaits(pole: Pole): void;
  /** Imagines the run without a pole, or with it again; `null` brings all back. */
  toggleWithout(pole: string | null): void;
  /** Adds the first span of a pole to a URL that names only the pole; no step of the history. */
  openPole(pole: Pole): void;
  /** Selects the span of a link; no step of the history. */
  openSpan(handle: string): void;
  selectFrame(handle: string | null): void;
  /** Opens or closes the source of the selected function. */
  showSource(isOpen: boolean): void;
  zoomFlame(node: number): void;
  /** Unfolds the run of foreign frames that begins at a node, or folds it again. */
  toggleRun(first: number): void;
  /** Folds all runs of foreign frames, or unfolds them. */
  foldForeign(isFolded: boolean): void;
  showTime(time: FlameTime): void;
  /** Moves the part of the time axis that is on the screen. */
  setRange(range: TimeRange | null): void;
  /** Selects a range of time, or a thread; `null` deselects it. */
  selectExcerpt(excerpt: Partial<Excerpt>): void;
  setFold(fold: Fold): void;
  /** Searches rows of the trace; an empty text ends the search. */
  find(text: string): void;
  showOnlyFound(isOnly: boolean): void;
  /** Shows only the rows that a search finds; an empty text shows all. */
  filter(text: string): void;
  /** Shows the trace or its operations. */
  showView(view: View): void;
  /** Groups the spans of the table by what they have in common. */
  groupBy(grouping: Grouping): void;
  sortOperations(order: OperationOrder): void;
  /** Draws the durations of an operation large. */
  selectOperation(key: string): void;
  /** Shows the trace with only the spans that a search finds. */
  showSpans(text: string): void;
}

export interface Selection {
  readonly recording: string;
  readonly search: RecordingSearch;
  /** The selected range of time and thread; the same object while they stay. */
  readonly excerpt: Excerpt;
  readonly actions: SelectionActions;
}

/** The current selection. `actions` stays the same object while the page is open. */
export function useSelection(): Selection {
  const { rec } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const actions = useMemo<SelectionActions>(() => {
    const go = (change: (search: RecordingSearch) => RecordingSearch, replace: boolean): void => {
      navigate({ search: (previous) => change(previous as RecordingSearch), replace, resetScroll: false });
    };
    return {
      selectSpan: (handle) => go((previous) => selectingSpan(previous, handle, null), false),
      selectPole: (pole, position = 0, frame) =>
        go((previous) => {
          const next = selectingSpan(previous, pole.spans[position] ?? null, pole.handle);
          return frame === undefined ? next : changed(next, { frame });
        }, false),
      selectWaits: (pole) => go((previous) => showingTime(selectingSpan(previous, pole.spans[0] ?? null, pole.handle), 'off_cpu'), false),
      toggleWithout: (pole) =>
        go((previous) => changed(previous, { without: pole === null ? null : toggledWithout(previous.without, pole) }), true),
      openPole: (pole) =>
        go((previous) => selectingSpan(previous, pole.spans[0] ?? null, pole.spans.length > 0 ? pole.handle : null), true),
      openSpan: (handle) => go((previous) => selectingSpan(previous, handle, null), true),
      selectFrame: (handle) => go((previous) => changed(previous, { frame: handle }), false),
      showSource: (isOpen) => go((previous) => changed(previous, { source: isOpen ? 1 : null }), true),
      zoomFlame: (node) => go((previous) => changed(previous, { node: node > 0 ? node : null }), true),
      toggleRun: (first) => go((previous) => toggledRun(previous, first), true),
      foldForeign: (isFolded) => go((previous) => changed(previous, { unfold: isFolded ? null : 'all' }), true),
      showTime: (time) => go((previous) => showingTime(previous, time), false),
      setRange: (range) => go((previous) => changed(previous, { t: range === null ? null : printRange(range) }), true),
      selectExcerpt: (excerpt) => go((previous) => selectingExcerpt(previous, excerpt), false),
      find: (text) => go((previous) => changed(previous, text === '' ? { find: null, only: null } : { find: text }), true),
      showOnlyFound: (isOnly) => go((previous) => changed(previous, { only: isOnly ? 1 : null }), true),
      filter: (text) => go((previous) => changed(previous, text === '' ? { find: null, only: null } : { find: text, only: 1 }), false),
      showView: (view) => go((previous) => changed(previous, { view }), false),
      groupBy: (grouping) => go((previous) => changed(previous, { by: grouping === 'operation' ? null : grouping, op: null }), true),
      sortOperations: (order) => go((previous) => changed(previous, { sort: order === 'total' ? null : order }), true),
      selectOperation: (key) => go((previous) => changed(previous, { op: key }), true),
      showSpans: (text) => go((previous) => showingOnly(previous, text), false),
      setFold: (fold) => go((previous) => changed(previous, { fold: printFold(fold) }), true),
    };
  }, [navigate]);
  const { range, thread } = search;
  const excerpt = useMemo<Excerpt>(
    () => ({ range: range === undefined ? null : readRange(range), thread: thread ?? null }),
    [range, thread],
  );
  return { recording: rec, search, excerpt, actions };
}
