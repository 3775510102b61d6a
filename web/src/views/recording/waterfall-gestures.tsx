/** What the mouse does on the rows: point, click, drag, wheel. */
import { type MouseEvent, type PointerEvent, type RefObject, useEffect, useRef } from 'react';
import type { Pole, Tree } from '../../api/types.gen';
import type { Nanos, SpanIndex } from '../../base/brand';
import { at } from '../../base/column';
import { clamp } from '../../base/math';
import type { WaterfallEngine } from '../../canvas/waterfall-engine';
import { counted, formatDuration } from '../../logic/format';
import { spanHandle } from '../../logic/handles';
import { nameOfSpan, poleOfSpanInWords, remarksOf, serviceOfSpan } from '../../logic/span-words';
import { panned, ROW_HEIGHT, rangeOfSpan, type TimeRange, type WaterfallView } from '../../logic/waterfall';
import type { createHover } from '../parts/hover-card';

/** A click that wandered further is a drag. */
export const CLICK_PIXELS = 4;
/** Zoom for one pixel of the wheel. */
const WHEEL_ZOOM = 1.0018;

function SpanCard({
  tree,
  span,
  pole,
  whole,
}: {
  readonly tree: Tree;
  readonly span: SpanIndex;
  readonly pole: Pole | undefined;
  readonly whole: string;
}) {
  const onPath = at(tree.spans.onPathNanos, span);
  const samples = at(tree.spans.samples, span);
  const service = serviceOfSpan(tree, span);
  return (
    <>
      <strong>{nameOfSpan(tree, span)}</strong>
      <p>
        {spanHandle(span)}
        {service !== '' && ` · ${service}`}
        {pole !== undefined && ` · ${poleOfSpanInWords(pole)}`}
      </p>
      <dl>
        <dt>duration</dt>
        <dd>{formatDuration(at(tree.spans.durationNanos, span))}</dd>
        <dt>starts</dt>
        <dd>
          {formatDuration(at(tree.spans.startNanos, span))} into the {whole}
        </dd>
        <dt>on path</dt>
        <dd>{onPath > 0 ? formatDuration(onPath) : 'not on the critical path'}</dd>
        <dt>samples</dt>
        <dd>{samples > 0 ? `${counted(samples, 'sample')} of its own` : 'none'}</dd>
      </dl>
      {remarksOf(tree, span).map((remark) => (
        <p key={remark}>{remark}</p>
      ))}
    </>
  );
}

/** A pressed pointer: it draws up a range on the ruler, or moves the view. */
interface Press {
  readonly x: number;
  readonly y: number;
  readonly onRuler: boolean;
  readonly from: WaterfallView;
  readonly moved: boolean;
}

interface Client {
  readonly clientX: number;
  readonly clientY: number;
}

export interface WaterfallGestures {
  readonly onPointerDown: (event: PointerEvent) => void;
  readonly onPointerMove: (event: PointerEvent) => void;
  readonly onPointerUp: () => void;
  readonly onPointerLeave: () => void;
  readonly onClick: (event: MouseEvent) => void;
  readonly onDoubleClick: (event: MouseEvent) => void;
}

/** The times between two places of the axis. */
export function rangeOfPixels(engine: WaterfallEngine, pixels: readonly [number, number]): TimeRange {
  const [start, end] = [engine.timeAt(Math.min(...pixels)), engine.timeAt(Math.max(...pixels))];
  return { start, end: Math.max(end, start + 1) as Nanos };
}

export function useWaterfallGestures(
  engine: WaterfallEngine,
  host: RefObject<HTMLDivElement | null>,
  hover: ReturnType<typeof createHover>,
  select: (span: SpanIndex) => void,
  toggle: (span: SpanIndex) => void,
  choose: (range: TimeRange) => void,
  whole: string,
): WaterfallGestures {
  const { view, box, pointer, full } = engine;
  const press = useRef<Press | null>(null);

  // React listens to wheels passively, and then the page would scroll along.
  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const onWheel = (event: WheelEvent): void => {
      const { width, nameWidth } = box.get();
      const axis = width - nameWidth;
      const before = view.get();
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? ROW_HEIGHT : 1;
      hover.set(null);
      if (event.ctrlKey || event.metaKey) {
        const x = event.clientX - element.getBoundingClientRect().left - nameWidth;
        engine.zoom(WHEEL_ZOOM ** (event.deltaY * unit), x / axis);
        event.preventDefault();
        return;
      }
      const dx = (event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
      const dy = event.shiftKey ? 0 : event.deltaY * unit;
      engine.setView({ range: panned(before.range, full, dx / axis), topRow: before.topRow + dy / ROW_HEIGHT });
      const after = view.get();
      // At the end of the rows the wheel belongs to the page again.
      if (after.topRow !== before.topRow || after.range.start !== before.range.start) event.preventDefault();
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  }, [engine, host, hover, view, box, full]);

  const place = (event: Client): readonly [number, number] => {
    const bounds = host.current?.getBoundingClientRect();
    return bounds === undefined ? [0, 0] : [event.clientX - bounds.left, event.clientY - bounds.top];
  };

  const drag = (current: Press, x: number, y: number): void => {
    const { width, nameWidth } = box.get();
    if (current.onRuler) {
      const range = [clamp(current.x, nameWidth, width), clamp(x, nameWidth, width)] as const;
      pointer.set({ ...pointer.get(), row: null, x: null, drag: range });
      return;
    }
    engine.setView({
      range: panned(current.from.range, full, (current.x - x) / (width - nameWidth)),
      topRow: current.from.topRow + (current.y - y) / ROW_HEIGHT,
    });
  };

  const point = (event: Client, x: number, y: number): void => {
    const found = engine.hit(x, y);
    const isOnAxis = found.zone === 'ruler' || found.zone === 'timeline';
    pointer.set({ ...pointer.get(), row: 'row' in found ? found.row : null, x: isOnAxis ? x : null });
    const { tree, poleOf } = engine.scene();
    const content =
      'span' in found && found.zone !== 'fold' ? (
        <SpanCard tree={tree} span={found.span} pole={poleOf.get(found.span)} whole={whole} />
      ) : null;
    hover.set(content === null ? null : { x: event.clientX, y: event.clientY, content });
  };

  return {
    onPointerDown: (event) => {
      if (event.button !== 0) return;
      const [x, y] = place(event);
      engine.halt();
      press.current = { x, y, onRuler: engine.hit(x, y).zone === 'ruler', from: view.get(), moved: false };
    },
    onPointerMove: (event) => {
      const [x, y] = place(event);
      // The button may have been let go outside of the window.
      if (event.buttons === 0) press.current = null;
      const { current } = press;
      if (current === null || (!current.moved && Math.hypot(x - current.x, y - current.y) <= CLICK_PIXELS)) {
        point(event, x, y);
        return;
      }
      if (!current.moved) {
        // Only now, so that a plain click still reaches the row it fell on.
        host.current?.setPointerCapture(event.pointerId);
        press.current = { ...current, moved: true };
        hover.set(null);
      }
      drag(current, x, y);
    },
    onPointerUp: () => {
      const range = pointer.get().drag;
      if (range === null) return;
      pointer.set({ ...pointer.get(), drag: null });
      choose(rangeOfPixels(engine, range));
    },
    onPointerLeave: () => {
      pointer.set({ ...pointer.get(), row: null, x: null });
      hover.set(null);
    },
    onClick: (event) => {
      const moved = press.current?.moved === true;
      press.current = null;
      // A click without a mouse is answered by the row itself.
      if (moved || event.detail === 0) return;
      const found = engine.hit(...place(event));
      if (found.zone === 'fold') toggle(found.span);
      else if ('span' in found) select(found.span);
    },
    onDoubleClick: (event) => {
      const found = engine.hit(...place(event));
      if (found.zone === 'timeline') engine.moveTo(rangeOfSpan(engine.scene().tree, found.span, full), null);
      if (found.zone === 'ruler') engine.moveTo(full, null);
    },
  };
}
