/**
 * The engine of the trace's rows, without a framework: it keeps the scene and its visible part, and draws. Views call it for each
 * action of the reader, and watch its atoms.
 */
import type { Nanos, RowIndex, SpanIndex } from '../base/brand';
import { clamp } from '../base/math';
import { formatTick } from '../logic/format';
import { rowOf } from '../logic/rows';
import {
  clampRange,
  hitWaterfall,
  operationsInFlight,
  panned,
  rangeShowing,
  type TimeRange,
  ticksOf,
  timeAt,
  topRowMax,
  topRowShowing,
  type WaterfallBox,
  type WaterfallHit,
  type WaterfallView,
  zoomed,
} from '../logic/waterfall';
import { type Atom, createAtom } from '../state/store';
import { animate } from './animate';
import { bandOf, drawBand, drawLanes, type LanesScene } from './draw-lanes';
import { drawMinimap } from './draw-minimap';
import { drawWaterfall, drawWaterfallPointer, type WaterfallPointer, type WaterfallScene } from './draw-waterfall';
import type { Palette } from './palette';
import { createSurface, type Surface } from './surface';

/** Width of the scroll bar, right of the time axis. */
const SCROLL_WIDTH = 12;
const NAME_SHARE = 0.36;
const NAME_WIDTH_MIN = 150;
const NAME_WIDTH_MAX = 380;

export interface WaterfallEngine {
  readonly full: TimeRange;
  readonly view: Atom<WaterfallView>;
  readonly box: Atom<WaterfallBox>;
  readonly pointer: Atom<WaterfallPointer>;
  /** The selected range of time. */
  readonly chosen: Atom<TimeRange | null>;
  scene(): WaterfallScene;
  /** Sets the scene, and keeps the view inside it. */
  setScene(scene: WaterfallScene): void;
  /** Shows this part without animation. */
  setView(view: WaterfallView): void;
  /** Moves to another part with a short animation; `null` keeps the range or the rows. */
  moveTo(range: TimeRange | null, topRow: number | null): void;
  /** Stops the current animation. */
  halt(): void;
  /** Zooms about a place between the left (0) and right edge (1) of the axis; without a place, about the pointer if it is over the axis. */
  zoom(factor: number, anchor?: number): void;
  pan(fraction: number): void;
  /** The top row that makes a row visible. */
  topRowFor(row: RowIndex): number;
  /** Makes the row of a span visible, and keeps it so while the box changes size, until the reader scrolls; its bar as well if asked. */
  bringIntoSight(span: SpanIndex, withBar: boolean): void;
  hit(x: number, y: number): WaterfallHit;
  /** The time at a place of the axis. */
  timeAt(x: number): Nanos;
  /** The selected range, or the one that the reader draws up, in pixels of the axis; `null` if it is not on the screen. */
  band(): readonly [number, number] | null;
  /** Draws what threads did into a canvas beside the same axis, until the caller calls the returned function. */
  mountLanes(canvas: HTMLCanvasElement, scene: () => LanesScene | null, palette: () => Palette): () => void;
  /** Draws into these canvases until the caller calls the returned function. */
  mount(rows: HTMLCanvasElement, pointer: HTMLCanvasElement, palette: () => Palette): () => void;
  /** Draws the whole recording into a strip until the caller calls the returned function. */
  mountMinimap(canvas: HTMLCanvasElement, palette: () => Palette): () => void;
  /** The time at a place of the strip of this width. */
  minimapTimeAt(x: number, width: number): Nanos;
  redraw(): void;
}

function boxOf(width: number, height: number): WaterfallBox {
  const nameWidth = Math.round(clamp(width * NAME_SHARE, NAME_WIDTH_MIN, NAME_WIDTH_MAX));
  return { width: Math.max(nameWidth + 1, width - SCROLL_WIDTH), height, nameWidth };
}

export function createWaterfallEngine(first: WaterfallScene, full: TimeRange, range: TimeRange | null): WaterfallEngine {
  let scene = first;
  let stop: () => void = () => undefined;
  // The target of the current animation, and the span to keep visible.
  let goal: WaterfallView | null = null;
  let sought: SpanIndex | null = null;
  const surfaces = new Set<Surface>();
  const view = createAtom<WaterfallView>({ range: clampRange(range ?? full, full), topRow: 0 });
  const box = createAtom<WaterfallBox>({ width: 0, height: 0, nameWidth: 0 });
  const pointer = createAtom<WaterfallPointer>({ row: null, x: null, focus: null, drag: null });
  const chosen = createAtom<TimeRange | null>(null);

  const put = (next: WaterfallView): void => {
    view.set({ range: clampRange(next.range, full), topRow: clamp(next.topRow, 0, topRowMax(box.get(), scene.rows.length)) });
  };
  const halt = (): void => {
    stop();
    goal = null;
  };
  const topRowFor = (row: RowIndex): number => topRowShowing(view.get(), box.get(), scene.rows.length, row);
  const resize = (width: number, height: number): void => {
    box.set(boxOf(width, height));
    const wanted = goal ?? view.get();
    halt();
    put(wanted);
    if (sought !== null) put({ ...view.get(), topRow: topRowFor(rowOf(scene.rows, sought)) });
  };
  const redraw = (): void => {
    for (const surface of surfaces) surface.invalidate();
  };
  /** Draws a surface while it is mounted. */
  const keep = (created: Surface, watched: readonly { watch: Atom<unknown>['watch'] }[]): (() => void) => {
    surfaces.add(created);
    const ends = watched.map((atom) => atom.watch(created.invalidate));
    return () => {
      for (const end of ends) end();
      surfaces.delete(created);
      created.dispose();
    };
  };
  /** The time under the pointer, one digit finer than the axis: a pixel is about a hundredth of a tick. */
  const pointerTime = (): string | null => {
    const { x } = pointer.get();
    const size = box.get();
    if (x === null) return null;
    const step = (ticksOf(view.get().range, size.width - size.nameWidth).step / 100) as Nanos;
    return formatTick(Math.round(timeAt(size, view.get().range, x) / step) * step, step);
  };

  const engine: WaterfallEngine = {
    full,
    view,
    box,
    pointer,
    chosen,
    redraw,
    scene: () => scene,
    setScene: (next) => {
      scene = next;
      put(view.get());
      redraw();
    },
    setView: (next) => {
      halt();
      sought = null;
      put(next);
    },
    moveTo: (toRange, toRow) => {
      const from = view.get();
      const to = { range: toRange ?? goal?.range ?? from.range, topRow: toRow ?? goal?.topRow ?? from.topRow };
      halt();
      goal = to;
      const between = (a: number, b: number, t: number) => a + (b - a) * t;
      stop = animate((t) => {
        if (t === 1) goal = null;
        put({
          range: {
            start: between(from.range.start, to.range.start, t) as Nanos,
            end: between(from.range.end, to.range.end, t) as Nanos,
          },
          topRow: between(from.topRow, to.topRow, t),
        });
      });
    },
    halt,
    zoom: (factor, anchor) => {
      const { x } = pointer.get();
      const size = box.get();
      const place = anchor ?? (x === null ? 0.5 : (x - size.nameWidth) / (size.width - size.nameWidth));
      engine.setView({ ...view.get(), range: zoomed(view.get().range, full, factor, clamp(place, 0, 1)) });
    },
    pan: (fraction) => engine.setView({ ...view.get(), range: panned(view.get().range, full, fraction) }),
    topRowFor,
    bringIntoSight: (span, withBar) => {
      sought = span;
      const topRow = topRowFor(rowOf(scene.rows, span));
      const range = withBar ? rangeShowing(scene.tree, span, goal?.range ?? view.get().range, full) : null;
      if (range !== null || topRow !== view.get().topRow) engine.moveTo(range, topRow);
    },
    hit: (x, y) => hitWaterfall(scene.tree, scene.rows, view.get(), box.get(), x, y),
    timeAt: (x) => timeAt(box.get(), view.get().range, x),
    band: () => {
      const { drag } = pointer.get();
      if (drag !== null) return [Math.min(...drag), Math.max(...drag)];
      const range = chosen.get();
      return range === null ? null : bandOf(box.get(), view.get().range, range);
    },
    mountLanes: (canvas, lanes, palette) => {
      const draw = (c: CanvasRenderingContext2D, size: { readonly height: number }): void => {
        const shown = lanes();
        if (shown !== null) drawLanes(c, shown, view.get().range, box.get(), engine.band(), size.height, palette());
      };
      return keep(createSurface(canvas, draw), [view, box, pointer, chosen]);
    },
    mount: (rowsCanvas, pointerCanvas, palette) => {
      const ends = [
        keep(
          createSurface(
            rowsCanvas,
            (c) => drawWaterfall(c, scene, view.get(), box.get(), palette()),
            ({ width, height }) => resize(width, height),
          ),
          [view],
        ),
        keep(
          createSurface(pointerCanvas, (c) =>
            drawWaterfallPointer(c, pointer.get(), engine.band(), view.get(), box.get(), pointerTime(), palette()),
          ),
          [view, pointer, chosen],
        ),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
    mountMinimap: (canvas, palette) => {
      let inFlight: Float64Array = new Float64Array(0);
      const draw = (c: CanvasRenderingContext2D, size: { readonly width: number; readonly height: number }): void => {
        const { width, nameWidth } = boxOf(size.width, size.height);
        const slices = Math.max(1, width - nameWidth);
        if (inFlight.length !== slices) inFlight = operationsInFlight(scene.tree, full, slices);
        const map = { inFlight, path: scene.tree.criticalPath, full };
        drawMinimap(c, map, view.get().range, nameWidth, size.height, palette());
        const range = chosen.get();
        const band = range === null ? null : bandOf({ width, height: size.height, nameWidth }, full, range);
        if (band !== null) drawBand(c, band[0], band[1], size.height, palette());
      };
      return keep(createSurface(canvas, draw), [view, chosen]);
    },
    minimapTimeAt: (x, width) => timeAt(boxOf(width, 0), full, x),
  };
  return engine;
}
