/** The engine of a flame graph, without a framework: it keeps the visible part, and draws. */
import type { NodeIndex } from '../base/brand';
import { at } from '../base/column';
import { clamp } from '../base/math';
import {
  boxesOfFrames,
  type FlameLevels,
  type FlameView,
  hitFlame,
  LEVEL_HEIGHT,
  levelOf,
  levelsWorthShowing,
  trunkLevels,
  viewOfNode,
  widestNodeOf,
} from '../logic/flame-graph';
import { type Atom, createAtom } from '../state/store';
import { animate } from './animate';
import { drawFlameGraph, drawFlamePointer } from './draw-flame-graph';
import type { Palette } from './palette';
import { createSurface, type Surface, type SurfaceSize } from './surface';

/** Limits of the box: taller graphs scroll inside it, and the least height leaves room for a tooltip. */
const LEVELS_MAX = 24;
const LEVELS_MIN = 8;
/** The number of callers that stay visible above the zoomed box. */
const CALLERS_SHOWN = 6;

export interface FlamePointer {
  readonly hovered: NodeIndex | null;
  /** Box with the keyboard focus. */
  readonly focused: NodeIndex | null;
}

/** A graph and the room it takes. */
export interface FlameLayout {
  readonly graph: FlameLevels;
  /** Height of the graph's box. */
  readonly height: number;
  /** The largest scroll offset. */
  readonly topMax: number;
}

export interface FlameEngine {
  readonly layout: Atom<FlameLayout>;
  readonly view: Atom<FlameView>;
  readonly size: Atom<SurfaceSize>;
  readonly pointer: Atom<FlamePointer>;
  /** Sets other boxes of the same flame graph. The view stays where it is if levels come, and goes up if levels go. */
  setGraph(graph: FlameLevels): void;
  setTop(top: number): void;
  /** Scrolls so that the box of a node is on the screen. */
  show(node: NodeIndex): void;
  /** Zooms until the box of a node fills the width. */
  zoomTo(node: NodeIndex): void;
  /** Highlights the boxes of these functions, and scrolls to the widest. */
  highlight(frames: ReadonlySet<number>): void;
  hit(x: number, y: number): NodeIndex | null;
  mount(boxes: HTMLCanvasElement, pointer: HTMLCanvasElement, palette: () => Palette): () => void;
  redraw(): void;
}

/** Levels that hide above the box when a graph opens: the start of threads shows nothing if the graph does not fit. */
function callersHidden(graph: FlameLevels): number {
  return levelsWorthShowing(graph) + 1 > LEVELS_MAX ? Math.max(0, trunkLevels(graph) - CALLERS_SHOWN) : 0;
}

/** A graph has the height of the levels worth showing. */
function layoutOf(graph: FlameLevels): FlameLayout {
  const whole = graph.levels * LEVEL_HEIGHT;
  const worth = levelsWorthShowing(graph) + 1 - callersHidden(graph);
  const height = Math.min(whole, clamp(worth, LEVELS_MIN, LEVELS_MAX) * LEVEL_HEIGHT);
  return { graph, height, topMax: whole - height };
}

/** How far a graph is scrolled when it opens. */
function firstTopOf({ graph, topMax }: FlameLayout): number {
  return clamp(callersHidden(graph) * LEVEL_HEIGHT, 0, topMax);
}

/** The engine of a graph that opens with a node filling the width. */
export function createFlameEngine(first: FlameLevels, firstNode: NodeIndex): FlameEngine {
  const { flame } = first;
  const layout = createAtom(layoutOf(first));
  const boxOf = (node: NodeIndex) => at(layout.get().graph.boxes.boxOf, node) as NodeIndex;
  const view = createAtom<FlameView>(viewOfNode(flame, firstNode, firstTopOf(layout.get())));
  const size = createAtom<SurfaceSize>({ width: 0, height: 0 });
  const pointer = createAtom<FlamePointer>({ hovered: null, focused: null });
  const surfaces = new Set<Surface>();
  let zoomed = firstNode;
  let selectedFrames: ReadonlySet<number> = new Set();
  let selected: ReadonlySet<number> = new Set();
  let stop: () => void = () => undefined;

  const redraw = (): void => {
    for (const surface of surfaces) surface.invalidate();
  };
  const scene = () => ({ graph: layout.get().graph, zoomed: boxOf(zoomed), selected });
  const setTop = (top: number): void => view.set({ ...view.get(), top: clamp(top, 0, layout.get().topMax) });
  const show = (node: NodeIndex): void => {
    const { graph, height } = layout.get();
    const y = levelOf(graph, node) * LEVEL_HEIGHT;
    setTop(clamp(view.get().top, y + LEVEL_HEIGHT - height, y));
  };

  return {
    layout,
    view,
    size,
    pointer,
    redraw,
    setTop,
    show,
    setGraph: (graph) => {
      const before = layout.get().graph;
      if (graph === before) return;
      layout.set(layoutOf(graph));
      selected = boxesOfFrames(graph, selectedFrames);
      const { focused } = pointer.get();
      pointer.set({ focused, hovered: null });
      const { top } = view.get();
      setTop(graph.levels < before.levels ? Math.min(top, firstTopOf(layout.get())) : top);
      if (focused !== null) show(boxOf(focused));
      redraw();
    },
    zoomTo: (node) => {
      stop();
      zoomed = node;
      const { graph, topMax } = layout.get();
      const from = view.get();
      const level = levelOf(graph, node);
      const highest = Math.max(0, level - CALLERS_SHOWN) * LEVEL_HEIGHT;
      const to = viewOfNode(flame, boxOf(node), clamp(level === 0 ? from.top : Math.max(from.top, highest), 0, topMax));
      const between = (a: number, b: number, t: number) => a + (b - a) * t;
      stop = animate((t) =>
        view.set({
          startNanos: between(from.startNanos, to.startNanos, t),
          endNanos: between(from.endNanos, to.endNanos, t),
          top: between(from.top, to.top, t),
        }),
      );
    },
    highlight: (frames) => {
      selectedFrames = frames;
      selected = boxesOfFrames(layout.get().graph, frames);
      const widest = widestNodeOf(flame, frames);
      if (widest !== null) show(widest);
      redraw();
    },
    hit: (x, y) => hitFlame(layout.get().graph, view.get(), size.get().width, x, y),
    mount: (boxesCanvas, pointerCanvas, palette) => {
      const created = [
        createSurface(
          boxesCanvas,
          (c, now) => drawFlameGraph(c, scene(), view.get(), now, palette()),
          (now) => size.set(now),
        ),
        createSurface(pointerCanvas, (c, now) => {
          const { hovered, focused } = pointer.get();
          drawFlamePointer(c, scene(), view.get(), hovered, focused, now, palette());
        }),
      ] as const;
      for (const surface of created) surfaces.add(surface);
      const ends = [view.watch(redraw), pointer.watch(created[1].invalidate)];
      return () => {
        stop();
        for (const end of ends) end();
        for (const surface of created) {
          surfaces.delete(surface);
          surface.dispose();
        }
      };
    },
  };
}
