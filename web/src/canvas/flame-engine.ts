/** The engine of a flame graph, without a framework: it keeps the visible part, and draws. */
import type { Flame } from '../api/types.gen';
import type { NodeIndex } from '../base/brand';
import { at } from '../base/column';
import { clamp } from '../base/math';
import {
  type FlameLevels,
  type FlameView,
  hitFlame,
  LEVEL_HEIGHT,
  levelsOf,
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

export interface FlameEngine {
  readonly flame: Flame;
  readonly graph: FlameLevels;
  /** Height of the graph's box. */
  readonly height: number;
  readonly view: Atom<FlameView>;
  readonly size: Atom<SurfaceSize>;
  readonly pointer: Atom<FlamePointer>;
  /** The largest scroll offset. */
  readonly topMax: number;
  setTop(top: number): void;
  /** Scrolls so that the level of a node is on the screen. */
  show(node: NodeIndex): void;
  /** Zooms until a node fills the width. */
  zoomTo(node: NodeIndex): void;
  /** Highlights the boxes of a function, and scrolls to the widest; -1 for none. */
  highlight(frame: number): void;
  hit(x: number, y: number): NodeIndex | null;
  mount(boxes: HTMLCanvasElement, pointer: HTMLCanvasElement, palette: () => Palette): () => void;
  redraw(): void;
}

export function createFlameEngine(flame: Flame): FlameEngine {
  const graph = levelsOf(flame);
  const whole = graph.levels * LEVEL_HEIGHT;
  const worth = levelsWorthShowing(graph) + 1;
  // The start of threads shows nothing: a graph that does not fit opens where its stacks diverge, with the height of the levels worth showing.
  const callersHidden = worth > LEVELS_MAX ? Math.max(0, trunkLevels(flame) - CALLERS_SHOWN) : 0;
  const height = Math.min(whole, clamp(worth - callersHidden, LEVELS_MIN, LEVELS_MAX) * LEVEL_HEIGHT);
  const topMax = whole - height;
  const firstTop = clamp(callersHidden * LEVEL_HEIGHT, 0, topMax);
  const view = createAtom<FlameView>(viewOfNode(flame, 0 as NodeIndex, firstTop));
  const size = createAtom<SurfaceSize>({ width: 0, height: 0 });
  const pointer = createAtom<FlamePointer>({ hovered: null, focused: null });
  const surfaces = new Set<Surface>();
  let zoomed = 0 as NodeIndex;
  let selectedFrame = -1;
  let stop: () => void = () => undefined;

  const redraw = (): void => {
    for (const surface of surfaces) surface.invalidate();
  };
  const scene = () => ({ graph, zoomed, selectedFrame });
  const setTop = (top: number): void => view.set({ ...view.get(), top: clamp(top, 0, topMax) });
  const show = (node: NodeIndex): void => {
    const y = at(flame.nodes.depth, node) * LEVEL_HEIGHT;
    setTop(clamp(view.get().top, y + LEVEL_HEIGHT - height, y));
  };

  return {
    flame,
    graph,
    height,
    view,
    size,
    pointer,
    topMax,
    redraw,
    setTop,
    show,
    zoomTo: (node) => {
      stop();
      zoomed = node;
      const from = view.get();
      const level = at(flame.nodes.depth, node);
      const highest = Math.max(0, level - CALLERS_SHOWN) * LEVEL_HEIGHT;
      const to = viewOfNode(flame, node, clamp(level === 0 ? from.top : Math.max(from.top, highest), 0, topMax));
      const between = (a: number, b: number, t: number) => a + (b - a) * t;
      stop = animate((t) =>
        view.set({
          startNanos: between(from.startNanos, to.startNanos, t),
          endNanos: between(from.endNanos, to.endNanos, t),
          top: between(from.top, to.top, t),
        }),
      );
    },
    highlight: (frame) => {
      selectedFrame = frame;
      const widest = widestNodeOf(flame, frame);
      if (widest !== null) show(widest);
      redraw();
    },
    hit: (x, y) => hitFlame(graph, view.get(), size.get().width, x, y),
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
