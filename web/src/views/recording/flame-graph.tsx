import { type KeyboardEvent, type MouseEvent, type PointerEvent, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Flame } from '../../api/types';
import type { NodeIndex } from '../../base/brand';
import { at } from '../../base/column';
import { clamp, ratio } from '../../base/math';
import { animate } from '../../canvas/animate';
import { drawFlameGraph, drawFlamePointer, type FlameScene } from '../../canvas/draw-flame-graph';
import { hueOf } from '../../canvas/palette';
import { createSurface, type Surface, type SurfaceSize } from '../../canvas/surface';
import {
  boxesOnScreen,
  type FlameLevels,
  type FlameStep,
  type FlameView,
  hitFlame,
  LEVEL_HEIGHT,
  levelsOf,
  neighbour,
  originShares,
  samplesOf,
  viewOfNode,
} from '../../logic/flame-graph';
import { counted, formatDuration, formatPlace, formatShare } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import { createAtom, useAtom } from '../../state/store';
import { createHover, HoverCard } from '../parts/hover-card';
import parts from '../parts/parts.module.css';
import { ScrollThumb } from '../parts/scroll-thumb';
import { usePalette } from '../parts/use-palette';
import css from './recording.module.css';

const HEIGHT_MAX = 24 * LEVEL_HEIGHT;
/** Boxes read aloud and reached by the keyboard: those wide enough to be pointed at, and not more than can be drawn at once. */
const MIRRORED_WIDTH_MIN = 6;
const MIRRORED_MAX = 300;

function titleOf(flame: Flame, node: NodeIndex): string {
  return flame.frames[at(flame.frame, node)]?.function ?? flame.title;
}

function NodeCard({ flame, node }: { readonly flame: Flame; readonly node: NodeIndex }) {
  const frame = flame.frames[at(flame.frame, node)];
  const total = at(flame.total, node);
  const self = at(flame.self, node);
  return (
    <>
      <strong>{titleOf(flame, node)}</strong>
      {frame !== undefined && frame.file !== '' && <p>{formatPlace(frame.file, frame.line)}</p>}
      {frame?.reason !== null && frame?.reason !== undefined && <p>no function name: {frame.reason}</p>}
      <dl>
        <dt>total</dt>
        <dd>
          {formatDuration(total)} · {formatShare(ratio(total, flame.weightNanos))} · {counted(samplesOf(flame, total), 'sample')}
        </dd>
        <dt>self</dt>
        <dd>
          {formatDuration(self)} · {formatShare(ratio(self, flame.weightNanos))}
        </dd>
      </dl>
    </>
  );
}

function labelOf(flame: Flame, node: NodeIndex): string {
  const total = at(flame.total, node);
  const share = formatShare(ratio(total, flame.weightNanos));
  return `${titleOf(flame, node)}, ${share}, ${formatDuration(total)} total, ${formatDuration(at(flame.self, node))} self, ${counted(samplesOf(flame, total), 'sample')}`;
}

/** The boxes on the screen as buttons, for the keyboard, for screen readers and for tests. */
function BoxesMirror({
  graph,
  view,
  size,
  selectedFrame,
  tabNode,
  onFocus,
  onActivate,
}: {
  readonly graph: FlameLevels;
  readonly view: ReturnType<typeof createAtom<FlameView>>;
  readonly size: SurfaceSize;
  readonly selectedFrame: number;
  readonly tabNode: NodeIndex;
  readonly onFocus: (node: NodeIndex | null) => void;
  readonly onActivate: (node: NodeIndex) => void;
}) {
  const now = useAtom(view, (value) => value);
  const boxes = boxesOnScreen(graph, now, size.width, size.height, MIRRORED_WIDTH_MIN, MIRRORED_MAX);
  const tabStop = boxes.some(({ node }) => node === tabNode) ? tabNode : boxes[0]?.node;
  return (
    <ul className={css.flameBoxes} aria-label="Functions of the flame graph, callers first">
      {boxes.map(({ node, x, y, width }) => (
        <li key={node} style={{ left: x, top: y, width, height: LEVEL_HEIGHT }}>
          <button
            type="button"
            data-node={node}
            tabIndex={node === tabStop ? 0 : -1}
            aria-label={labelOf(graph.flame, node)}
            aria-pressed={at(graph.flame.frame, node) === selectedFrame && selectedFrame >= 0}
            onFocus={() => onFocus(node)}
            onBlur={() => onFocus(null)}
            onClick={(event) => {
              if (event.detail === 0 && !event.shiftKey) onActivate(node);
            }}
          />
        </li>
      ))}
    </ul>
  );
}

/** Whose code it is: the colours of the graph, with their shares. */
function Origins({ flame }: { readonly flame: Flame }) {
  const shares = useMemo(() => originShares(flame), [flame]);
  return (
    <ul className={css.origins} aria-label="Self time by origin of the code">
      {shares.map(({ name, kind, share }) => (
        <li key={`${kind} ${name}`}>
          <svg width="11" height="11" aria-hidden="true">
            <rect width="11" height="11" fill={kind === 'crate' ? `var(--tint-${hueOf(name)})` : 'var(--neutral-tint)'} />
          </svg>
          {name} {formatShare(share)}
        </li>
      ))}
    </ul>
  );
}

/** A flame graph, callers on top. A click selects a function, a double click zooms into a box. */
export function FlameGraph({
  flame,
  selectedHandle,
  zoomedNode,
  onSelect,
  onZoom,
}: {
  readonly flame: Flame;
  readonly selectedHandle: string | null;
  readonly zoomedNode: number;
  readonly onSelect: (handle: string | null) => void;
  readonly onZoom: (node: number) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const boxesCanvas = useRef<HTMLCanvasElement>(null);
  const pointerCanvas = useRef<HTMLCanvasElement>(null);
  const surfaces = useRef<{ readonly boxes: Surface; readonly pointer: Surface } | null>(null);
  const graph = useMemo(() => levelsOf(flame), [flame]);
  const zoomed = (zoomedNode < flame.count ? zoomedNode : 0) as NodeIndex;
  const selectedFrame = useMemo(() => flame.frames.findIndex((frame) => frame.handle === selectedHandle), [flame, selectedHandle]);
  const height = Math.min(HEIGHT_MAX, graph.levels * LEVEL_HEIGHT);
  const [size, setSize] = useState<SurfaceSize>({ width: 0, height: 0 });
  const [focused, setFocused] = useState<NodeIndex | null>(null);
  const [tabNode, setTabNode] = useState<NodeIndex>(0 as NodeIndex);
  const view = useMemo(() => createAtom(viewOfNode(flame, 0 as NodeIndex, 0)), [flame]);
  const hovered = useMemo(() => createAtom<NodeIndex | null>(null), []);
  const hover = useMemo(createHover, []);
  const stopMoving = useRef<() => void>(() => undefined);

  const scene = useMemo<FlameScene>(() => ({ graph, zoomed, selectedFrame }), [graph, zoomed, selectedFrame]);
  const latest = useRef({ scene, size, focused });
  latest.current = { scene, size: latest.current.size, focused };

  const redraw = useCallback((): void => {
    surfaces.current?.boxes.invalidate();
    surfaces.current?.pointer.invalidate();
  }, []);
  const palette = usePalette(host, redraw);

  useEffect(() => {
    if (boxesCanvas.current === null || pointerCanvas.current === null) return undefined;
    const created = {
      boxes: createSurface(
        boxesCanvas.current,
        (c, now) => drawFlameGraph(c, latest.current.scene, view.get(), now, palette()),
        (next) => {
          latest.current = { ...latest.current, size: next };
          setSize(next);
        },
      ),
      pointer: createSurface(pointerCanvas.current, (c, now) =>
        drawFlamePointer(c, latest.current.scene, view.get(), hovered.get(), latest.current.focused, now, palette()),
      ),
    };
    surfaces.current = created;
    const ends = [view.watch(redraw), hovered.watch(created.pointer.invalidate)];
    return () => {
      for (const end of ends) end();
      for (const surface of Object.values(created)) surface.dispose();
      surfaces.current = null;
    };
  }, [view, hovered, palette, redraw]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the canvas reads scene and focus through `latest`
  useEffect(redraw, [scene, focused, redraw]);

  const topMax = Math.max(0, graph.levels * LEVEL_HEIGHT - height);
  const setTop = useCallback((top: number) => view.set({ ...view.get(), top: clamp(top, 0, topMax) }), [view, topMax]);

  // The zoomed box grows to the width, and moves up so far that its callees are seen.
  useEffect(() => {
    stopMoving.current();
    const from = view.get();
    const level = at(flame.depth, zoomed);
    const top =
      level === 0
        ? clamp(from.top, 0, topMax)
        : clamp(from.top, Math.max(0, (level - 3) * LEVEL_HEIGHT - 4 * LEVEL_HEIGHT), level * LEVEL_HEIGHT);
    const to = viewOfNode(flame, zoomed, clamp(top, 0, topMax));
    if (from.startNanos === to.startNanos && from.endNanos === to.endNanos) return;
    const between = (a: number, b: number, t: number) => a + (b - a) * t;
    stopMoving.current = animate((t) =>
      view.set({
        startNanos: between(from.startNanos, to.startNanos, t),
        endNanos: between(from.endNanos, to.endNanos, t),
        top: between(from.top, to.top, t),
      }),
    );
  }, [flame, zoomed, topMax, view]);
  useEffect(() => () => stopMoving.current(), []);

  useEffect(() => {
    const element = host.current;
    if (element === null || topMax === 0) return undefined;
    const onWheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.metaKey) return;
      const before = view.get().top;
      setTop(before + event.deltaY);
      if (view.get().top !== before) event.preventDefault();
      hover.set(null);
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, [view, topMax, setTop, hover]);

  const selectNode = (node: NodeIndex): void => {
    const handle = flame.frames[at(flame.frame, node)]?.handle ?? null;
    onSelect(handle === selectedHandle ? null : handle);
  };
  const nodeAt = (event: { readonly clientX: number; readonly clientY: number }): NodeIndex | null => {
    const bounds = host.current?.getBoundingClientRect();
    if (bounds === undefined) return null;
    return hitFlame(graph, view.get(), bounds.width, event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const onPointerMove = (event: PointerEvent): void => {
    const node = nodeAt(event);
    hovered.set(node);
    hover.set(node === null ? null : { x: event.clientX, y: event.clientY, content: <NodeCard flame={flame} node={node} /> });
  };
  const onClick = (event: MouseEvent): void => {
    if (event.detail === 0) return;
    const node = nodeAt(event);
    // The second click of a double click would undo the first.
    if (node !== null && event.detail === 1) selectNode(node);
  };
  const onDoubleClick = (event: MouseEvent): void => {
    const node = nodeAt(event);
    if (node !== null) onZoom(node === zoomed ? Math.max(0, at(flame.parent, node)) : node);
  };

  const focusNode = (node: NodeIndex): void => {
    const y = at(flame.depth, node) * LEVEL_HEIGHT;
    setTop(clamp(view.get().top, y + LEVEL_HEIGHT - size.height, y));
    setTabNode(node);
    requestAnimationFrame(() => host.current?.querySelector<HTMLElement>(`[data-node="${node}"]`)?.focus({ preventScroll: true }));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (focused === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps: Readonly<Record<string, FlameStep>> = {
      ArrowUp: 'up',
      ArrowDown: 'down',
      ArrowLeft: 'left',
      ArrowRight: 'right',
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      focusNode(neighbour(graph, focused, step));
    } else if (event.key === 'Enter' && event.shiftKey) {
      event.preventDefault();
      onZoom(focused);
    } else if (event.key === 'Backspace') {
      event.preventDefault();
      onZoom(Math.max(0, at(flame.parent, zoomed)));
    }
  };

  const scrollable = useMemo(
    () => ({
      watch: view.watch,
      position: () => ({
        fraction: topMax > 0 ? view.get().top / topMax : 0,
        seen: height / (graph.levels * LEVEL_HEIGHT),
      }),
      scrollTo: (fraction: number) => setTop(fraction * topMax),
    }),
    [view, topMax, height, graph, setTop],
  );

  return (
    <>
      {zoomed > 0 && (
        <div className={css.zoomPath}>
          <button type="button" className={parts.button} onClick={() => onZoom(0)}>
            Whole graph
          </button>
          <span className={css.muted}>zoomed to</span> <code>{shortName(titleOf(flame, zoomed))}</code>
        </div>
      )}
      <div
        ref={host}
        className={css.flame}
        style={{ height }}
        role="group"
        aria-label={`Flame graph of ${flame.title}`}
        onPointerMove={onPointerMove}
        onPointerLeave={() => {
          hovered.set(null);
          hover.set(null);
        }}
        onClick={onClick}
        onDoubleClick={onDoubleClick}
        onKeyDown={onKeyDown}
      >
        <canvas ref={boxesCanvas} aria-hidden="true" />
        <canvas ref={pointerCanvas} aria-hidden="true" />
        <BoxesMirror
          graph={graph}
          view={view}
          size={size}
          selectedFrame={selectedFrame}
          tabNode={tabNode}
          onFocus={setFocused}
          onActivate={selectNode}
        />
        <ScrollThumb target={scrollable} top={0} />
      </div>
      <HoverCard atom={hover} />
      <Origins flame={flame} />
    </>
  );
}
