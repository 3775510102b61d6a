import { type KeyboardEvent, type PointerEvent, useCallback, useEffect, useId, useMemo, useRef, useState } from 'react';
import { type Pole, SPAN_FLAG, type Tree } from '../../api/types';
import type { Nanos, RowIndex, SpanIndex } from '../../base/brand';
import { at } from '../../base/column';
import { clamp } from '../../base/math';
import { animate } from '../../canvas/animate';
import { drawMinimap } from '../../canvas/draw-minimap';
import { drawWaterfall, drawWaterfallPointer, type WaterfallPointer, type WaterfallScene } from '../../canvas/draw-waterfall';
import { createSurface, type Surface } from '../../canvas/surface';
import { counted, formatDuration, formatShare, formatTick } from '../../logic/format';
import { spanHandle } from '../../logic/handles';
import { ALL_FOLDED, type Fold, isFolded, NOTHING_FOLDED, revealed, rowOf, toggled } from '../../logic/rows';
import {
  clampRange,
  hitWaterfall,
  operationsInFlight,
  panned,
  ROW_HEIGHT,
  RULER_HEIGHT,
  rangeOfSpan,
  rowsOnScreen,
  rowsThatFit,
  type TimeRange,
  ticksOf,
  timeAt,
  topRowMax,
  topRowShowing,
  type WaterfallBox,
  type WaterfallView,
  zoomed,
} from '../../logic/waterfall';
import type { PreparedTree, SpanMarks } from '../../state/derived';
import type { SelectionActions } from '../../state/selection';
import { createAtom, useAtom } from '../../state/store';
import { createHover, HoverCard } from '../parts/hover-card';
import { FitIcon, FoldIcon, UnfoldIcon, ZoomInIcon, ZoomOutIcon } from '../parts/icons';
import { isTyping } from '../parts/keyboard';
import parts from '../parts/parts.module.css';
import { ScrollThumb } from '../parts/scroll-thumb';
import { IconButton } from '../parts/tip';
import { usePalette } from '../parts/use-palette';
import css from './recording.module.css';

/** A click that wandered further is a drag. */
const CLICK_PIXELS = 4;
const ZOOM_STEP = 0.7;
const PAN_STEP = 0.15;
/** After this long without a movement the time range goes into the URL; browsers refuse to change it sixty times a second. */
const SETTLE_MILLIS = 250;

/** Room for the scroll bar, right of the time axis. */
const SCROLL_WIDTH = 12;

const NO_POINTER: WaterfallPointer = { row: null, x: null, focus: null, drag: null };

function nameWidthOf(width: number): number {
  return Math.round(clamp(width * 0.36, 150, 380));
}

/** What is unusual about a span, in words. */
function remarksOf(tree: Tree, span: SpanIndex): readonly string[] {
  const flags = at(tree.flags, span);
  const remarks: string[] = [];
  if ((flags & SPAN_FLAG.error) !== 0) remarks.push('failed');
  if ((flags & SPAN_FLAG.process) !== 0) remarks.push('made from a process');
  if ((flags & SPAN_FLAG.parentInferred) !== 0) remarks.push('parent inferred');
  if ((flags & SPAN_FLAG.orphan) !== 0) remarks.push('its parent is not in the recording');
  if ((flags & SPAN_FLAG.clamped) !== 0) remarks.push('its times were fitted into its parent');
  if ((flags & SPAN_FLAG.cycle) !== 0) remarks.push('a cycle of parents was broken here');
  return remarks;
}

function labelOf(tree: Tree, span: SpanIndex, pole: Pole | undefined, share: number | undefined): string {
  const words = [
    `${tree.names[at(tree.name, span)]}, ${tree.services[at(tree.service, span)]}`,
    formatDuration(at(tree.duration, span)),
    ...(at(tree.onPath, span) > 0 ? [`on the critical path for ${formatDuration(at(tree.onPath, span))}`] : []),
    ...(pole === undefined ? [] : [`long pole ${pole.handle}`]),
    ...(share === undefined ? [] : [`${formatShare(share)} of its samples are in the selected function`]),
    ...remarksOf(tree, span),
    ...(at(tree.subtree, span) > 0 ? [`${counted(at(tree.subtree, span), 'span')} below`] : []),
  ];
  return words.join(', ');
}

function SpanCard({ tree, span }: { readonly tree: Tree; readonly span: SpanIndex }) {
  const onPath = at(tree.onPath, span);
  const samples = at(tree.samples, span);
  return (
    <>
      <strong>{tree.names[at(tree.name, span)]}</strong>
      <p>
        {spanHandle(span)} · {tree.services[at(tree.service, span)]}
      </p>
      <dl>
        <dt>duration</dt>
        <dd>{formatDuration(at(tree.duration, span))}</dd>
        <dt>starts</dt>
        <dd>{formatDuration(at(tree.start, span))} into the run</dd>
        <dt>on path</dt>
        <dd>{onPath > 0 ? formatDuration(onPath) : 'not on the critical path'}</dd>
        <dt>samples</dt>
        <dd>{samples > 0 ? `${counted(samples, 'sample')} of its own` : 'none of its own'}</dd>
      </dl>
      {remarksOf(tree, span).map((remark) => (
        <p key={remark}>{remark}</p>
      ))}
    </>
  );
}

const firstRowOf = (view: WaterfallView) => Math.floor(view.topRow);

/** The rows on the screen as a treegrid, for the keyboard, for screen readers and for tests. It lies over the canvas and is not seen. */
function RowsMirror({
  prepared,
  scene,
  view,
  box,
  focused,
  onFocus,
  onActivate,
}: {
  readonly prepared: PreparedTree;
  readonly scene: WaterfallScene;
  readonly view: ReturnType<typeof createAtom<WaterfallView>>;
  readonly box: WaterfallBox;
  readonly focused: SpanIndex | null;
  readonly onFocus: (span: SpanIndex | null) => void;
  readonly onActivate: (span: SpanIndex) => void;
}) {
  const { tree } = prepared;
  useAtom(view, firstRowOf);
  const shift = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = (): void => {
      const { topRow } = view.get();
      if (shift.current !== null) shift.current.style.transform = `translateY(${-(topRow - Math.floor(topRow)) * ROW_HEIGHT}px)`;
    };
    place();
    return view.watch(place);
  }, [view]);

  const [first, last] = rowsOnScreen(view.get(), box, scene.rows.length);
  const shown: { readonly row: RowIndex; readonly span: SpanIndex }[] = [];
  for (let row = first; row < last; row++) shown.push({ row: row as RowIndex, span: at(scene.rows, row) as SpanIndex });
  const wanted = focused ?? scene.selected;
  const tabStop = shown.some(({ span }) => span === wanted) ? wanted : shown[0]?.span;
  return (
    <div className={css.mirror} ref={shift} role="treegrid" aria-label="Spans" aria-rowcount={scene.rows.length} aria-colcount={1}>
      {shown.map(({ row, span }, position) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the rows are handled by the box around them
        <div
          key={span}
          id={`row-${spanHandle(span)}`}
          className={css.mirrorRow}
          style={{ top: position * ROW_HEIGHT }}
          role="row"
          data-span={spanHandle(span)}
          tabIndex={span === tabStop ? 0 : -1}
          aria-rowindex={row + 1}
          aria-level={at(tree.depth, span) + 1}
          aria-selected={span === scene.selected}
          {...(at(tree.subtree, span) > 0 ? { 'aria-expanded': !isFolded(scene.fold, span) } : {})}
          onFocus={() => onFocus(span)}
          onBlur={() => onFocus(null)}
          // A click of the mouse is judged by the box around the rows, by where it falls; this one is made by a screen reader.
          onClick={(event) => {
            if (event.detail === 0) onActivate(span);
          }}
        >
          <span role="gridcell" className={parts.visuallyHidden}>
            {labelOf(tree, span, scene.poleOf.get(span), scene.shareOf.get(span))}
          </span>
        </div>
      ))}
    </div>
  );
}

function Legend({ marked }: { readonly marked: boolean }) {
  return (
    <ul className={css.legend} aria-label="Legend">
      <li>
        <span className={css.legendPath} aria-hidden="true" /> critical path
      </li>
      <li>
        <span className={css.legendOwn} aria-hidden="true" /> own time
      </li>
      <li>
        <span className={css.legendChild} aria-hidden="true" /> in child
      </li>
      <li>
        <span className={css.legendProcess} aria-hidden="true" /> process
      </li>
      <li>
        <span className={css.legendInferred} aria-hidden="true" /> parent inferred
      </li>
      <li>
        <span className={css.legendError} aria-hidden="true">
          ×
        </span>{' '}
        failed
      </li>
      {marked && (
        <li>
          <span className={css.legendMarked} aria-hidden="true" /> has the selected function
        </li>
      )}
    </ul>
  );
}

/** The trace as rows: names on the left, time on the right. */
export function Waterfall({
  prepared,
  rows,
  fold,
  marks,
  selected,
  selectedPole,
  urlRange,
  actions,
}: {
  readonly prepared: PreparedTree;
  readonly rows: Uint32Array;
  readonly fold: Fold;
  readonly marks: SpanMarks;
  readonly selected: SpanIndex | null;
  readonly selectedPole: string | null;
  /** The time range that the URL asks for. */
  readonly urlRange: TimeRange | null;
  readonly actions: SelectionActions;
}) {
  const { tree, path, full } = prepared;
  const hintId = useId();
  const host = useRef<HTMLDivElement>(null);
  const mapHost = useRef<HTMLDivElement>(null);
  const rowsCanvas = useRef<HTMLCanvasElement>(null);
  const pointerCanvas = useRef<HTMLCanvasElement>(null);
  const mapCanvas = useRef<HTMLCanvasElement>(null);
  const surfaces = useRef<{ readonly rows: Surface; readonly pointer: Surface; readonly map: Surface } | null>(null);
  const [box, setBox] = useState<WaterfallBox>({ width: 0, height: 0, nameWidth: 0 });
  const [focused, setFocused] = useState<SpanIndex | null>(null);
  const view = useMemo(() => createAtom<WaterfallView>({ range: clampRange(full, full), topRow: 0 }), [full]);
  const pointer = useMemo(() => createAtom(NO_POINTER), []);
  const hover = useMemo(createHover, []);
  const stopMoving = useRef<() => void>(() => undefined);

  const scene = useMemo<WaterfallScene>(
    () => ({
      tree,
      path,
      rows,
      fold,
      selected,
      marked: marks.spans,
      shareOf: marks.shareOf,
      poleOf: marks.poleOf,
      selectedPole,
    }),
    [tree, path, rows, fold, selected, marks, selectedPole],
  );
  const latest = useRef({ scene, box });
  latest.current = { scene, box };

  const redraw = useCallback((): void => {
    surfaces.current?.rows.invalidate();
    surfaces.current?.pointer.invalidate();
    surfaces.current?.map.invalidate();
  }, []);
  const palette = usePalette(host, redraw);

  // Canvases live as long as the component; what they draw is read when they draw.
  useEffect(() => {
    if (rowsCanvas.current === null || pointerCanvas.current === null || mapCanvas.current === null) return undefined;
    let inFlight: Float64Array = new Float64Array(0);
    const created = {
      rows: createSurface(
        rowsCanvas.current,
        (c) => drawWaterfall(c, latest.current.scene, view.get(), latest.current.box, palette()),
        ({ width, height }) => {
          const next = { width: width - SCROLL_WIDTH, height, nameWidth: nameWidthOf(width) };
          latest.current = { ...latest.current, box: next };
          setBox(next);
        },
      ),
      pointer: createSurface(pointerCanvas.current, (c) => {
        const { box: now } = latest.current;
        const { x } = pointer.get();
        const { range } = view.get();
        // One digit more than the axis: a pixel is worth about a hundredth of a tick.
        const step = (ticksOf(range, now.width - now.nameWidth).step / 100) as Nanos;
        const time = x === null ? null : formatTick(Math.round(timeAt(now, range, x) / step) * step, step);
        drawWaterfallPointer(c, pointer.get(), view.get(), now, time, palette());
      }),
      map: createSurface(mapCanvas.current, (c, size) => {
        const left = nameWidthOf(size.width);
        const width = Math.max(1, Math.floor(size.width - SCROLL_WIDTH - left));
        if (inFlight.length !== width) inFlight = operationsInFlight(tree, full, width);
        drawMinimap(c, { inFlight, path: tree.criticalPath, full }, view.get().range, left, size.height, palette());
      }),
    };
    surfaces.current = created;
    const ends = [view.watch(redraw), pointer.watch(created.pointer.invalidate)];
    return () => {
      for (const end of ends) end();
      for (const surface of Object.values(created)) surface.dispose();
      surfaces.current = null;
    };
  }, [tree, full, view, pointer, palette, redraw]);

  // Draws again whenever what there is to draw has changed.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the canvas reads the scene through `latest`
  useEffect(redraw, [scene, redraw]);

  const setView = useCallback(
    (next: WaterfallView): void => {
      const { scene: now, box: size } = latest.current;
      view.set({
        range: clampRange(next.range, full),
        topRow: clamp(next.topRow, 0, topRowMax(size, now.rows.length)),
      });
    },
    [view, full],
  );

  /** Moves to another part, in a short movement that shows where it lies. */
  const moveTo = useCallback(
    (range: TimeRange | null, topRow: number | null): void => {
      stopMoving.current();
      const from = view.get();
      const to = { range: range ?? from.range, topRow: topRow ?? from.topRow };
      const between = (a: number, b: number, t: number) => a + (b - a) * t;
      stopMoving.current = animate((t) =>
        setView({
          range: {
            start: between(from.range.start, to.range.start, t) as Nanos,
            end: between(from.range.end, to.range.end, t) as Nanos,
          },
          topRow: between(from.topRow, to.topRow, t),
        }),
      );
    },
    [view, setView],
  );
  useEffect(() => () => stopMoving.current(), []);

  // The URL and the view follow each other: a change of the URL that is not ours moves the view, and a view that has come to rest goes into the URL.
  const printed = useRef<string | null>(null);
  useEffect(() => {
    const wanted = urlRange ?? full;
    const key = `${wanted.start} ${wanted.end}`;
    if (printed.current === key) return;
    printed.current = key;
    setView({ ...view.get(), range: wanted });
  }, [urlRange, full, view, setView]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const unwatch = view.watch(() => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const { range } = view.get();
        const whole = range.start <= full.start && range.end >= full.end;
        const rounded = whole ? full : { start: Math.floor(range.start), end: Math.ceil(range.end) };
        const key = `${rounded.start} ${rounded.end}`;
        if (printed.current === key) return;
        printed.current = key;
        actions.setRange(whole ? null : range);
      }, SETTLE_MILLIS);
    });
    return () => {
      clearTimeout(timer);
      unwatch();
    };
  }, [view, full, actions]);

  // A span selected elsewhere is brought onto the screen, unfolded if need be.
  // biome-ignore lint/correctness/useExhaustiveDependencies: folding by hand must not scroll back to the selection
  useEffect(() => {
    if (selected === null || box.height === 0) return;
    const opened = revealed(fold, tree, selected);
    if (opened !== fold) {
      actions.setFold(opened);
      return;
    }
    const topRow = topRowShowing(view.get(), latest.current.box, rows.length, rowOf(rows, selected));
    if (topRow !== view.get().topRow) moveTo(null, topRow);
  }, [selected, box.height > 0, tree, view, actions, moveTo]);

  const focusedRow = focused === null ? null : rowOf(rows, focused);
  useEffect(() => pointer.set({ ...pointer.get(), focus: focusedRow }), [pointer, focusedRow]);

  /** Gives the keyboard's focus to a row, which has to be on the screen first. */
  const focusRow = useCallback(
    (row: RowIndex): void => {
      stopMoving.current();
      const { scene: now, box: size } = latest.current;
      const target = clamp(row, 0, now.rows.length - 1) as RowIndex;
      setView({ ...view.get(), topRow: topRowShowing(view.get(), size, now.rows.length, target) });
      const handle = spanHandle(at(now.rows, target) as SpanIndex);
      // The row exists once React has drawn the rows of the new view.
      requestAnimationFrame(() => host.current?.querySelector<HTMLElement>(`[data-span="${handle}"]`)?.focus({ preventScroll: true }));
    },
    [view, setView],
  );

  const toggle = useCallback((span: SpanIndex) => actions.setFold(toggled(latest.current.scene.fold, span)), [actions]);
  const select = useCallback((span: SpanIndex) => actions.selectSpan(spanHandle(span)), [actions]);
  const zoom = useCallback(
    (factor: number) => {
      const { x } = pointer.get();
      const { box: size } = latest.current;
      const anchor = x === null ? 0.5 : (x - size.nameWidth) / (size.width - size.nameWidth);
      setView({ ...view.get(), range: zoomed(view.get().range, full, factor, anchor) });
    },
    [pointer, view, full, setView],
  );
  const pan = useCallback(
    (fraction: number) => setView({ ...view.get(), range: panned(view.get().range, full, fraction) }),
    [view, full, setView],
  );

  /** The next or previous row that belongs to a pole or has the selected function. */
  const step = useCallback(
    (direction: 1 | -1) => {
      const { scene: now } = latest.current;
      const marked = now.marked.length > 0 ? [...now.marked] : [...now.poleOf.keys()].sort((a, b) => a - b);
      const from = now.selected ?? -1;
      const next =
        direction > 0 ? (marked.find((span) => span > from) ?? marked[0]) : (marked.findLast((span) => span < from) ?? marked.at(-1));
      if (next !== undefined) select(next as SpanIndex);
    },
    [select],
  );

  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (isTyping(event)) return;
      const faster = event.shiftKey ? 3 : 1;
      const { selected: current } = latest.current.scene;
      const moves: Readonly<Record<string, () => void>> = {
        w: () => zoom(ZOOM_STEP ** faster),
        s: () => zoom(ZOOM_STEP ** -faster),
        a: () => pan(-PAN_STEP * faster),
        d: () => pan(PAN_STEP * faster),
        0: () => moveTo(full, null),
        z: () => current !== null && moveTo(rangeOfSpan(tree, current, full), null),
        '[': () => actions.setFold(ALL_FOLDED),
        ']': () => actions.setFold(NOTHING_FOLDED),
        '.': () => step(1),
        ',': () => step(-1),
      };
      moves[event.key.toLowerCase()]?.();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [zoom, pan, moveTo, step, actions, tree, full]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (focused === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rowOf(rows, focused);
    const below = at(tree.subtree, focused);
    const folded = below > 0 && isFolded(fold, focused);
    const page = rowsThatFit(box) - 1;
    const parent = at(tree.parent, focused);
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => focusRow((row + 1) as RowIndex),
      ArrowUp: () => focusRow((row - 1) as RowIndex),
      PageDown: () => focusRow((row + page) as RowIndex),
      PageUp: () => focusRow((row - page) as RowIndex),
      Home: () => focusRow(0 as RowIndex),
      End: () => focusRow((rows.length - 1) as RowIndex),
      ArrowRight: () => (folded ? toggle(focused) : below > 0 && focusRow((row + 1) as RowIndex)),
      ArrowLeft: () => (below > 0 && !folded ? toggle(focused) : parent >= 0 && focusRow(rowOf(rows, parent as SpanIndex))),
      Enter: () => select(focused),
      ' ': () => select(focused),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    move();
  };

  const place = (event: { readonly clientX: number; readonly clientY: number }): readonly [number, number] => {
    const bounds = host.current?.getBoundingClientRect();
    return bounds === undefined ? [0, 0] : [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  const hit = (event: { readonly clientX: number; readonly clientY: number }) => {
    const [x, y] = place(event);
    return hitWaterfall(tree, rows, view.get(), box, x, y);
  };

  // What a pressed pointer does: draw up a range on the ruler, or move the view.
  const press = useRef<{
    readonly x: number;
    readonly y: number;
    readonly onRuler: boolean;
    readonly from: WaterfallView;
    moved: boolean;
  } | null>(null);
  const onPointerDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    const found = hit(event);
    press.current = { x, y, onRuler: found.zone === 'ruler', from: view.get(), moved: false };
    stopMoving.current();
  };
  const onPointerMove = (event: PointerEvent): void => {
    const [x, y] = place(event);
    const { current } = press;
    if (current !== null && event.buttons === 0) press.current = null;
    else if (current !== null && (current.moved || Math.abs(x - current.x) > CLICK_PIXELS || Math.abs(y - current.y) > CLICK_PIXELS)) {
      // Only now, so that a plain click still reaches the row it fell on.
      if (!current.moved) host.current?.setPointerCapture(event.pointerId);
      current.moved = true;
      hover.set(null);
      if (current.onRuler) {
        pointer.set({
          ...pointer.get(),
          row: null,
          x: null,
          drag: [clamp(current.x, box.nameWidth, box.width), clamp(x, box.nameWidth, box.width)],
        });
        return;
      }
      const fraction = (current.x - x) / (box.width - box.nameWidth);
      setView({
        range: panned(current.from.range, full, fraction),
        topRow: current.from.topRow + (current.y - y) / ROW_HEIGHT,
      });
      return;
    }
    const found = hitWaterfall(tree, rows, view.get(), box, x, y);
    const row = 'row' in found ? found.row : null;
    const isOnAxis = found.zone === 'ruler' || found.zone === 'timeline';
    pointer.set({ ...pointer.get(), row, x: isOnAxis ? x : null });
    hover.set(
      'span' in found && found.zone !== 'fold'
        ? { x: event.clientX, y: event.clientY, content: <SpanCard tree={tree} span={found.span} /> }
        : null,
    );
  };
  const onPointerUp = (): void => {
    const drag = pointer.get().drag;
    if (drag === null) return;
    pointer.set({ ...pointer.get(), drag: null });
    const [a, b] = drag;
    const { range } = view.get();
    moveTo({ start: timeAt(box, range, Math.min(a, b)), end: timeAt(box, range, Math.max(a, b)) }, null);
  };
  const onClick = (event: React.MouseEvent): void => {
    const moved = press.current?.moved === true;
    press.current = null;
    if (moved || event.detail === 0) return;
    const found = hit(event);
    if (found.zone === 'fold') toggle(found.span);
    else if ('span' in found) select(found.span);
  };
  const onDoubleClick = (event: React.MouseEvent): void => {
    const found = hit(event);
    if (found.zone === 'timeline') moveTo(rangeOfSpan(tree, found.span, full), null);
    if (found.zone === 'ruler') moveTo(full, null);
  };

  // React listens to wheels passively, and then the page would scroll along.
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const onWheel = (event: WheelEvent): void => {
      stopMoving.current();
      const { box: size } = latest.current;
      const before = view.get();
      const bounds = element.getBoundingClientRect();
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? ROW_HEIGHT : 1;
      const dx = (event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
      const dy = event.shiftKey ? 0 : event.deltaY * unit;
      if (event.ctrlKey || event.metaKey) {
        const anchor = clamp((event.clientX - bounds.left - size.nameWidth) / (size.width - size.nameWidth), 0, 1);
        setView({ ...before, range: zoomed(before.range, full, 1.0018 ** (event.deltaY * unit), anchor) });
        event.preventDefault();
        return;
      }
      setView({
        range: panned(before.range, full, dx / (size.width - size.nameWidth)),
        topRow: before.topRow + dy / ROW_HEIGHT,
      });
      const after = view.get();
      if (after.topRow !== before.topRow || after.range.start !== before.range.start) event.preventDefault();
      hover.set(null);
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, [view, full, setView, hover]);

  const mapDrag = useRef<number | null>(null);
  const mapTime = (event: PointerEvent): Nanos => {
    const bounds = mapHost.current?.getBoundingClientRect();
    if (bounds === undefined) return full.start;
    return timeAt(
      { width: bounds.width - SCROLL_WIDTH, height: 0, nameWidth: nameWidthOf(bounds.width) },
      full,
      event.clientX - bounds.left,
    );
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new object makes the thumb measure itself again when rows or box have changed
  const scrollable = useMemo(
    () => ({
      watch: view.watch,
      position: () => {
        const { scene: now, box: size } = latest.current;
        const most = topRowMax(size, now.rows.length);
        return {
          fraction: most > 0 ? view.get().topRow / most : 0,
          seen: Math.min(1, (size.height - RULER_HEIGHT) / ROW_HEIGHT / Math.max(1, now.rows.length)),
        };
      },
      scrollTo: (fraction: number) =>
        setView({ ...view.get(), topRow: fraction * topRowMax(latest.current.box, latest.current.scene.rows.length) }),
    }),
    [view, setView, rows, box],
  );
  // Folding may leave the view below the last row.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the number of rows and the box decide how far one can scroll
  useEffect(() => setView(view.get()), [rows, box, setView, view]);

  return (
    <section className={css.trace} aria-label="Trace">
      <div className={css.bar}>
        <h2>Trace</h2>
        <p>
          {counted(tree.count, 'span')} of {counted(tree.services.length, 'service')}
          {rows.length < tree.count && `, ${counted(rows.length, 'row')} unfolded`}
        </p>
        <span className={css.spread} />
        <IconButton label="Fold all" shortcut="[" onClick={() => actions.setFold(ALL_FOLDED)}>
          <FoldIcon />
        </IconButton>
        <IconButton label="Unfold all" shortcut="]" onClick={() => actions.setFold(NOTHING_FOLDED)}>
          <UnfoldIcon />
        </IconButton>
        <IconButton label="Zoom in" shortcut="W" onClick={() => zoom(ZOOM_STEP)}>
          <ZoomInIcon />
        </IconButton>
        <IconButton label="Zoom out" shortcut="S" onClick={() => zoom(1 / ZOOM_STEP)}>
          <ZoomOutIcon />
        </IconButton>
        <IconButton label="Whole recording" shortcut="0" onClick={() => moveTo(full, null)}>
          <FitIcon />
        </IconButton>
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: for the mouse; W, S, A and D do the same from the keyboard */}
      <div
        className={css.minimap}
        ref={mapHost}
        title="operations in flight; drag to choose a range, double-click for the whole recording"
        onPointerDown={(event) => {
          mapDrag.current = mapTime(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          if (mapDrag.current === null) return;
          const time = mapTime(event);
          if (Math.abs(time - mapDrag.current) < (full.end - full.start) / 500) return;
          stopMoving.current();
          setView({
            ...view.get(),
            range: { start: Math.min(time, mapDrag.current) as Nanos, end: Math.max(time, mapDrag.current) as Nanos },
          });
        }}
        onPointerUp={() => {
          mapDrag.current = null;
        }}
        onDoubleClick={() => moveTo(full, null)}
      >
        <canvas ref={mapCanvas} aria-hidden="true" />
      </div>
      <div
        className={css.rows}
        ref={host}
        role="group"
        aria-label="Rows of the trace"
        aria-describedby={hintId}
        onKeyDown={onKeyDown}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerLeave={() => {
          pointer.set({ ...pointer.get(), row: null, x: null });
          hover.set(null);
        }}
        onClick={onClick}
        onDoubleClick={onDoubleClick}
      >
        <canvas ref={rowsCanvas} aria-hidden="true" />
        <canvas ref={pointerCanvas} aria-hidden="true" />
        <RowsMirror prepared={prepared} scene={scene} view={view} box={box} focused={focused} onFocus={setFocused} onActivate={select} />
        <ScrollThumb target={scrollable} top={RULER_HEIGHT} />
        <p id={hintId} className={parts.visuallyHidden}>
          Arrow keys move between rows, Enter selects, question mark lists all keys.
        </p>
      </div>
      <HoverCard atom={hover} />
      <Legend marked={marks.spans.length > 0} />
    </section>
  );
}
