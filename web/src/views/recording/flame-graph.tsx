import { type KeyboardEvent, type MouseEvent, type PointerEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { NodeIndex } from '../../base/brand';
import { at } from '../../base/column';
import { ratio } from '../../base/math';
import { createFlameEngine } from '../../canvas/flame-engine';
import type { DrawnFlame } from '../../logic/drawn-flame';
import { callerBox, type FlameStep, LEVEL_HEIGHT, levelsOf, neighbour, titleOfBox } from '../../logic/flame-graph';
import { boxesOf, type Unfolded } from '../../logic/foreign-runs';
import { shortName } from '../../logic/function-name';
import { useAtom } from '../../state/store';
import { createHover, HoverCard } from '../parts/hover-card';
import parts from '../parts/parts.module.css';
import { ScrollThumb } from '../parts/scroll-thumb';
import { usePalette } from '../parts/use-palette';
import { BoxCard, BoxesMirror } from './flame-boxes';
import { FlameLegend } from './flame-legend';
import { FlameTools } from './flame-tools';
import css from './recording.module.css';

/** Width of the scroll bar, if there is one. */
const SCROLL_WIDTH = 12;

const NOTHING_FOUND: ReadonlySet<number> = new Set();

const STEPS: Readonly<Record<string, FlameStep>> = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

/** What a click on a box does; with Shift, or as a double click, the other. */
export type FlameClick = 'select' | 'zoom';

/**
 * A flame graph, callers on top. A click selects a function or unfolds a run of foreign frames, a double click zooms into a box; where a click zooms,
 * Shift and a click select.
 */
export function FlameGraph({
  flame,
  selectedHandle,
  found = NOTHING_FOUND,
  zoomedNode,
  click = 'select',
  unfolded,
  onSelect,
  onZoom,
  onToggleRun,
  onFoldForeign,
}: {
  readonly flame: DrawnFlame;
  readonly selectedHandle: string | null;
  /** Functions that were searched for: highlighted, too. */
  readonly found?: ReadonlySet<number>;
  readonly zoomedNode: number;
  readonly click?: FlameClick;
  readonly unfolded: Unfolded;
  readonly onSelect: (handle: string | null) => void;
  readonly onZoom: (node: number) => void;
  /** Unfolds the run that begins at a node, or folds it again. */
  readonly onToggleRun: (first: number) => void;
  readonly onFoldForeign: (isFolded: boolean) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const boxesCanvas = useRef<HTMLCanvasElement>(null);
  const pointerCanvas = useRef<HTMLCanvasElement>(null);
  const wanted = useMemo(() => levelsOf(flame, boxesOf(flame, unfolded)), [flame, unfolded]);
  const zoomedOrRoot = (zoomedNode < flame.nodes.parent.length ? zoomedNode : 0) as NodeIndex;
  // One engine per flame graph; later changes go through its setters.
  const first = useRef({ wanted, zoomedOrRoot });
  first.current = { wanted, zoomedOrRoot };
  // biome-ignore lint/correctness/useExhaustiveDependencies: of a new flame graph
  const engine = useMemo(() => createFlameEngine(first.current.wanted, first.current.zoomedOrRoot), [flame]);
  useLayoutEffect(() => engine.setGraph(wanted), [engine, wanted]);
  const { pointer } = engine;
  const { graph, height, topMax } = useAtom(engine.layout, (layout) => layout);
  const zoomed = at(graph.boxes.boxOf, zoomedOrRoot) as NodeIndex;
  const selected = useMemo(() => {
    const frame = flame.frames.findIndex(({ handle }) => handle === selectedHandle);
    return frame < 0 ? found : new Set([...found, frame]);
  }, [flame, selectedHandle, found]);
  const [tabNode, setTabNode] = useState<NodeIndex>(0 as NodeIndex);
  const hover = useMemo(createHover, []);
  const palette = usePalette(host, engine.redraw);

  useEffect(() => {
    if (boxesCanvas.current === null || pointerCanvas.current === null) return undefined;
    return engine.mount(boxesCanvas.current, pointerCanvas.current, palette);
  }, [engine, palette]);
  useEffect(() => engine.highlight(selected), [engine, selected]);
  useEffect(() => engine.zoomTo(zoomed), [engine, zoomed]);

  // React adds wheel listeners as passive, which would let the panel scroll too.
  useEffect(() => {
    const element = host.current;
    if (element === null || topMax === 0) return undefined;
    const onWheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.metaKey) return;
      const before = engine.view.get().top;
      engine.setTop(before + event.deltaY);
      if (engine.view.get().top !== before) event.preventDefault();
      hover.set(null);
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, [engine, topMax, hover]);

  const select = (node: NodeIndex): void => {
    if (graph.boxes.folded.has(node)) {
      onToggleRun(node);
      return;
    }
    const handle = flame.frames[at(flame.nodes.frame, node)]?.handle ?? null;
    onSelect(handle === selectedHandle ? null : handle);
  };
  const zoom = (node: NodeIndex): void => onZoom(node === zoomed ? Math.max(0, callerBox(graph, node)) : node);
  const activate = click === 'zoom' ? zoom : select;
  const activateOther = click === 'zoom' ? select : zoom;
  const nodeAt = (event: { readonly clientX: number; readonly clientY: number }): NodeIndex | null => {
    const bounds = host.current?.getBoundingClientRect();
    return bounds === undefined ? null : engine.hit(event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const onPointerMove = (event: PointerEvent): void => {
    const node = nodeAt(event);
    pointer.set({ ...pointer.get(), hovered: node });
    hover.set(node === null ? null : { x: event.clientX, y: event.clientY, content: <BoxCard graph={graph} node={node} /> });
  };
  const onPointerLeave = (): void => {
    pointer.set({ ...pointer.get(), hovered: null });
    hover.set(null);
  };
  const onClick = (event: MouseEvent): void => {
    const node = nodeAt(event);
    // The second click of a double click would undo the first.
    if (node !== null && event.detail === 1) (event.shiftKey ? activateOther : activate)(node);
  };
  const onDoubleClick = (event: MouseEvent): void => {
    const node = nodeAt(event);
    if (node !== null && click === 'select') zoom(node);
  };

  const focusNode = (node: NodeIndex): void => {
    engine.show(node);
    setTabNode(node);
    requestAnimationFrame(() => host.current?.querySelector<HTMLElement>(`[data-node="${node}"]`)?.focus({ preventScroll: true }));
  };
  const toggleRunAt = (node: NodeIndex): void => {
    const run = at(graph.boxes.runOf, node) as NodeIndex;
    if (run < 0) return;
    focusNode(run);
    onToggleRun(run);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { focused } = pointer.get();
    if (focused === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    if (step !== undefined) focusNode(neighbour(graph, focused, step));
    else if (event.key === 'Enter' && event.shiftKey) activateOther(focused);
    else if (event.key.toLowerCase() === 'c') toggleRunAt(focused);
    else if (event.key === 'Backspace') onZoom(Math.max(0, callerBox(graph, zoomed)));
    else return;
    event.preventDefault();
  };

  const scrollable = useMemo(
    () => ({
      watch: engine.view.watch,
      position: () => ({ fraction: ratio(engine.view.get().top, topMax), seen: ratio(height, graph.levels * LEVEL_HEIGHT) }),
      scrollTo: (fraction: number) => engine.setTop(fraction * topMax),
    }),
    [engine, height, topMax, graph],
  );

  return (
    <>
      <FlameTools engine={engine} unfolded={unfolded} onFoldForeign={onFoldForeign} />
      {zoomed > 0 && (
        <div className={css.zoomPath}>
          <button type="button" className={parts.button} onClick={() => onZoom(0)}>
            Whole graph
          </button>
          <span className={css.muted}>zoomed to</span> <code>{shortName(titleOfBox(graph, zoomed))}</code>
        </div>
      )}
      <div
        ref={host}
        className={css.flame}
        style={{ height }}
        role="group"
        aria-label={`Flame graph of ${flame.title}`}
        onPointerMove={onPointerMove}
        onPointerLeave={onPointerLeave}
        onClick={onClick}
        onDoubleClick={onDoubleClick}
        onKeyDown={onKeyDown}
      >
        <div className={css.flameInner} style={{ right: topMax > 0 ? SCROLL_WIDTH : 0 }}>
          <canvas ref={boxesCanvas} aria-hidden="true" />
          <canvas ref={pointerCanvas} aria-hidden="true" />
          <BoxesMirror engine={engine} selected={selected} tabNode={tabNode} onActivate={activate} />
        </div>
        <ScrollThumb target={scrollable} top={0} />
      </div>
      <HoverCard atom={hover} />
      <FlameLegend flame={flame} />
    </>
  );
}
