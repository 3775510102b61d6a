/** What the reader can do with a recording, for the command palette. */
import { useMemo } from 'react';
import type { Flame, FlameTime, Poles, Tree } from '../../api/types.gen';
import { nameOfPole, wholeInWords } from '../../logic/answer';
import { FLAME_TIME_WORDS } from '../../logic/flame-time';
import { bestMatches } from '../../logic/fuzzy';
import { spanHandle } from '../../logic/handles';
import { spansNamed } from '../../logic/named-spans';
import { type Command, type CommandSource, commandList, useCommands } from '../../state/commands';
import type { SelectionActions } from '../../state/selection';
import type { View } from '../../state/url';

/** Gives the focus to the first of these elements that can have it. */
function focusOn(selector: string): void {
  const found = document.querySelector<HTMLElement>(selector);
  found?.scrollIntoView({ block: 'nearest' });
  found?.focus();
}

/** Frames that a view has until its rows are there: a million spans take less than a second. */
const FRAMES_MAX = 120;

/** Shows the trace or its operations, and goes to the row there that can have the focus. */
function goTo(view: View, row: string, actions: SelectionActions): void {
  if (document.querySelector(row) !== null) {
    focusOn(row);
    return;
  }
  actions.showView(view);
  const look = (frames: number): void => {
    if (document.querySelector(row) !== null) focusOn(row);
    else if (frames > 0) requestAnimationFrame(() => look(frames - 1));
  };
  look(FRAMES_MAX);
}

const action = (id: string, title: string, run: () => void, keys?: string): Command => ({
  id,
  title,
  kind: 'action',
  run,
  ...(keys === undefined ? {} : { keys }),
});

/** Poles by their rank, and to imagine the run or trace without them. */
function polesSource({ poles, of }: Poles, actions: SelectionActions): CommandSource {
  return commandList([
    ...poles.map((pole) => ({
      id: pole.handle,
      title: `${pole.handle} ${nameOfPole(pole)}`,
      kind: 'pole',
      run: () => actions.selectPole(pole),
    })),
    ...poles.map((pole) =>
      action(
        `without ${pole.handle}`,
        `Imagine the ${wholeInWords(of)} without ${pole.handle}, or with it again: ${nameOfPole(pole)}`,
        () => actions.toggleWithout(pole.handle),
      ),
    ),
  ]);
}

function spansSource(tree: Tree, actions: SelectionActions): CommandSource {
  return {
    find: (query, limit) =>
      spansNamed(tree, query, limit).map(({ entry: { span, words }, score }) => ({
        entry: { id: spanHandle(span), title: words, kind: 'span', run: () => actions.selectSpan(spanHandle(span)) },
        score,
      })),
    ofKeys: () => null,
  };
}

/** Adds commands for the poles and the spans, and commands that go to parts of the page. */
export function useRecordingCommands(poles: Poles, tree: Tree | undefined, actions: SelectionActions): void {
  const parts = useMemo(
    () =>
      commandList([
        action('go rows', 'Go to the rows of the trace', () => goTo('trace', '[role="treegrid"] [tabindex="0"]', actions), 'G T'),
        action('go operations', 'Go to the operations', () => goTo('operations', '[data-cell="name"][tabindex="0"]', actions), 'G O'),
        action('go poles', 'Go to the long poles', () => focusOn('[aria-label="Table of long poles"]'), 'G L'),
        action('go profile', 'Go to the flame graph', () => focusOn('[data-node][tabindex="0"]'), 'G P'),
        action('source', 'Show the source of the selected function', () => actions.showSource(true)),
        action('all', 'Deselect the span', () => actions.selectSpan(null), 'Esc'),
      ]),
    [actions],
  );
  const ofPoles = useMemo(() => polesSource(poles, actions), [poles, actions]);
  const ofSpans = useMemo(() => (tree === undefined ? commandList([]) : spansSource(tree, actions)), [tree, actions]);
  useCommands(parts);
  useCommands(ofPoles);
  useCommands(ofSpans);
}

/** What the time axis and the rows can do. */
export interface TimelineActions {
  readonly find: () => void;
  readonly zoomToSelected: () => void;
  readonly zoomToAll: () => void;
  readonly selectRange: () => void;
  readonly collapse: () => void;
  readonly expand: () => void;
  readonly toggleThreads: () => void;
  readonly step: (direction: 1 | -1) => void;
}

/** Adds commands for it. */
export function useTimelineCommands(timeline: TimelineActions, whole: string): void {
  const source = useMemo(
    () =>
      commandList([
        action('find', 'Find rows of the trace', timeline.find, '/'),
        action('next', 'Next long pole or match', () => timeline.step(1), '.'),
        action('previous', 'Previous long pole or match', () => timeline.step(-1), ','),
        action('zoom', 'Zoom to the selected range or span', timeline.zoomToSelected, 'Z'),
        action('whole', `Show the whole ${whole}`, timeline.zoomToAll, '0'),
        action('range', 'Select the range on the screen', timeline.selectRange, 'R'),
        action('collapse', 'Collapse all rows', timeline.collapse, '['),
        action('expand', 'Expand all rows', timeline.expand, ']'),
        action('threads', 'Show or hide threads', timeline.toggleThreads, '2'),
      ]),
    [timeline, whole],
  );
  useCommands(source);
}

/** Adds commands for the functions of the flame graph and for the graph. */
export function useFlameCommands(flame: Flame | undefined, hasTimes: boolean, actions: SelectionActions): void {
  const source = useMemo<CommandSource>(() => {
    const frames = flame?.frames ?? [];
    const times = (hasTimes ? FLAME_TIME_WORDS : []).map(({ time, label }: { readonly time: FlameTime; readonly label: string }) =>
      action(`time ${time}`, `Flame graph of ${label} time`, () => actions.showTime(time)),
    );
    const list = commandList([
      ...times,
      action('fold', 'Fold foreign frames', () => actions.foldForeign(true)),
      action('unfold', 'Unfold foreign frames', () => actions.foldForeign(false)),
      action('whole graph', 'Whole flame graph', () => actions.zoomFlame(0)),
    ]);
    return {
      find: (query, limit) => [
        ...list.find(query, limit),
        ...(query.trim() === '' ? [] : bestMatches(query, frames, (frame) => `${frame.handle} ${frame.function}`, limit)).map(
          ({ entry: { handle, function: name }, score }) => ({
            entry: { id: handle, title: `${handle} ${name}`, kind: 'function', run: () => actions.selectFrame(handle) },
            score,
          }),
        ),
      ],
      ofKeys: list.ofKeys,
    };
  }, [flame, hasTimes, actions]);
  useCommands(source);
}
