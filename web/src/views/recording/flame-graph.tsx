import { type KeyboardEvent, type MouseEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import type { Flame } from '../../api/types.gen';
import type { NodeIndex } from '../../base/brand';
import { at } from '../../base/column';
import { ratio } from '../../base/math';
import { createFlameEngine, type FlameEngine } from '../../canvas/flame-engine';
import { hueOf } from '../../canvas/palette';
import {
  boxesOnScreen,
  type FlameStep,
  LEVEL_HEIGHT,
  neighbour,
  nodeInWords,
  originShares,
  samplesOf,
  titleOfNode,
} from '../../logic/flame-graph';
import { counted, formatDuration, formatPlace, formatShare } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import { useAtom } from '../../state/store';
import { createHover, HoverCard } from '../parts/hover-card';
import parts from '../parts/parts.module.css';
import { ScrollThumb } from '../parts/scroll-thumb';
import { usePalette } from '../parts/use-palette';
import css from './recording.module.css';

/** Limits of the boxes for keyboard and screen reader: the least width in pixels, and the number of boxes. */
const MIRRORED_WIDTH_MIN = 6;
const MIRRORED_MAX = 300;

/** Width of the scroll bar, if there is one. */
const SCROLL_WIDTH = 12;

const STEPS: Readonly<Record<string, FlameStep>> = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

function NodeCard({ flame, node }: { readonly flame: Flame; readonly node: NodeIndex }) {
  const frame = flame.frames[at(flame.nodes.frame, node)];
  const total = at(flame.nodes.totalNanos, node);
  const self = at(flame.nodes.selfNanos, node);
  const samples = samplesOf(flame, total);
  return (
    <>
      <strong>{titleOfNode(flame, node)}</strong>
      {frame !== undefined && frame.file !== '' && <p>{formatPlace(frame.file, at(flame.nodes.line, node))}</p>}
      {frame?.reason !== null && frame?.reason !== undefined && <p>no function name: {frame.reason}</p>}
      <dl>
        <dt>total</dt>
        <dd>
          {formatDuration(total)} · {formatShare(ratio(total, flame.weightNanos))}
          {samples !== null && ` · ${counted(samples, 'sample')}`}
        </dd>
        <dt>self</dt>
        <dd>
          {formatDuration(self)} · {formatShare(ratio(self, flame.weightNanos))}
        </dd>
      </dl>
    </>
  );
}

/** The boxes on the screen as buttons over the canvas, for the keyboard, screen readers and tests. */
function BoxesMirror({
  engine,
  selectedFrame,
  tabNode,
  onActivate,
}: {
  readonly engine: FlameEngine;
  readonly selectedFrame: number;
  readonly tabNode: NodeIndex;
  readonly onActivate: (node: NodeIndex) => void;
}) {
  const { flame, graph, pointer } = engine;
  const view = useAtom(engine.view, (value) => value);
  const { width, height } = useAtom(engine.size, (value) => value);
  const boxes = boxesOnScreen(graph, view, width, height, MIRRORED_WIDTH_MIN, MIRRORED_MAX);
  const tabStop = boxes.some(({ node }) => node === tabNode) ? tabNode : boxes[0]?.node;
  const focus = (focused: NodeIndex | null) => pointer.set({ ...pointer.get(), focused });
  return (
    <ul className={css.flameBoxes} aria-label="Functions of the flame graph, callers first">
      {boxes.map((box) => (
        <li key={box.node} style={{ left: box.x, top: box.y, width: box.width, height: LEVEL_HEIGHT }}>
          <button
            type="button"
            data-node={box.node}
            tabIndex={box.node === tabStop ? 0 : -1}
            aria-label={nodeInWords(flame, box.node)}
            aria-pressed={selectedFrame >= 0 && at(flame.nodes.frame, box.node) === selectedFrame}
            onFocus={() => focus(box.node)}
            onBlur={() => focus(null)}
            // The container handles mouse clicks; this click comes from the keyboard or a screen reader.
            onClick={(event) => {
              if (event.detail === 0 && !event.shiftKey) onActivate(box.node);
            }}
          />
        </li>
      ))}
    </ul>
  );
}

/** The colours of the graph, by origin of the code, with their shares. */
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
  const engine = useMemo(() => createFlameEngine(flame), [flame]);
  const { graph, pointer, topMax } = engine;
  const zoomed = (zoomedNode < flame.nodes.parent.length ? zoomedNode : 0) as NodeIndex;
  const selectedFrame = useMemo(() => flame.frames.findIndex((frame) => frame.handle === selectedHandle), [flame, selectedHandle]);
  const [tabNode, setTabNode] = useState<NodeIndex>(0 as NodeIndex);
  const hover = useMemo(createHover, []);
  const palette = usePalette(host, engine.redraw);

  useEffect(() => {
    if (boxesCanvas.current === null || pointerCanvas.current === null) return undefined;
    return engine.mount(boxesCanvas.current, pointerCanvas.current, palette);
  }, [engine, palette]);
  useEffect(() => engine.highlight(selectedFrame), [engine, selectedFrame]);
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

  const selectNode = (node: NodeIndex): void => {
    const handle = flame.frames[at(flame.nodes.frame, node)]?.handle ?? null;
    onSelect(handle === selectedHandle ? null : handle);
  };
  const nodeAt = (event: { readonly clientX: number; readonly clientY: number }): NodeIndex | null => {
    const bounds = host.current?.getBoundingClientRect();
    return bounds === undefined ? null : engine.hit(event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const onPointerMove = (event: PointerEvent): void => {
    const node = nodeAt(event);
    pointer.set({ ...pointer.get(), hovered: node });
    hover.set(node === null ? null : { x: event.clientX, y: event.clientY, content: <NodeCard flame={flame} node={node} /> });
  };
  const onPointerLeave = (): void => {
    pointer.set({ ...pointer.get(), hovered: null });
    hover.set(null);
  };
  const onClick = (event: MouseEvent): void => {
    const node = nodeAt(event);
    // The second click of a double click would undo the first.
    if (node !== null && event.detail === 1) selectNode(node);
  };
  const onDoubleClick = (event: MouseEvent): void => {
    const node = nodeAt(event);
    if (node !== null) onZoom(node === zoomed ? Math.max(0, at(flame.nodes.parent, node)) : node);
  };

  const focusNode = (node: NodeIndex): void => {
    engine.show(node);
    setTabNode(node);
    requestAnimationFrame(() => host.current?.querySelector<HTMLElement>(`[data-node="${node}"]`)?.focus({ preventScroll: true }));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { focused } = pointer.get();
    if (focused === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    if (step !== undefined) focusNode(neighbour(graph, focused, step));
    else if (event.key === 'Enter' && event.shiftKey) onZoom(focused);
    else if (event.key === 'Backspace') onZoom(Math.max(0, at(flame.nodes.parent, zoomed)));
    else return;
    event.preventDefault();
  };

  const scrollable = useMemo(
    () => ({
      watch: engine.view.watch,
      position: () => ({ fraction: ratio(engine.view.get().top, topMax), seen: ratio(engine.height, graph.levels * LEVEL_HEIGHT) }),
      scrollTo: (fraction: number) => engine.setTop(fraction * topMax),
    }),
    [engine, topMax, graph],
  );

  return (
    <>
      {zoomed > 0 && (
        <div className={css.zoomPath}>
          <button type="button" className={parts.button} onClick={() => onZoom(0)}>
            Whole graph
          </button>
          <span className={css.muted}>zoomed to</span> <code>{shortName(titleOfNode(flame, zoomed))}</code>
        </div>
      )}
      <div
        ref={host}
        className={css.flame}
        style={{ height: engine.height }}
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
          <BoxesMirror engine={engine} selectedFrame={selectedFrame} tabNode={tabNode} onActivate={selectNode} />
        </div>
        <ScrollThumb target={scrollable} top={0} />
      </div>
      <HoverCard atom={hover} />
      <Origins flame={flame} />
    </>
  );
}
