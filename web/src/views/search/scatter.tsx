import { memo, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import type { TraceRow } from '../../api/types.gen';
import { counted, formatCount, formatDuration } from '../../logic/format';
import {
  boxOfRectangle,
  type Dot,
  type Drag,
  dotAt,
  dotsOf,
  durationsInWords,
  durationTicks,
  extentOf,
  formatClock,
  formatDay,
  MARGIN,
  type PlotSize,
  rectangleOf,
  scatterOf,
  startsInWords,
  type Tick,
  timeTicks,
} from '../../logic/scatter';
import { startOf, type TracesBox } from '../../logic/traces-search';
import { createAtom, useAtom } from '../../state/store';
import { zoneOf } from '../parts/clock';
import { createHover, HoverCard } from '../parts/hover-card';
import { TimeAxis } from '../parts/time-axis';
import { useWidth } from '../parts/use-width';
import css from './search.module.css';

const HEIGHT = 190;
/** A click that wandered further is a drag. */
const CLICK_PIXELS = 4;

function TraceCard({ trace }: { readonly trace: TraceRow }) {
  const start = startOf(trace);
  const zone = zoneOf(start);
  return (
    <>
      <strong>
        {trace.service} · {trace.name}
      </strong>
      <dl>
        <dt>duration</dt>
        <dd>{formatDuration(trace.wallNanos)}</dd>
        <dt>started</dt>
        <dd>
          {formatDay(start, zone)} {formatClock(start, zone, 1)}
        </dd>
        <dt>spans</dt>
        <dd>{formatCount(trace.spans)}</dd>
        {trace.errors > 0 && (
          <>
            <dt>errors</dt>
            <dd>{formatCount(trace.errors)}</dd>
          </>
        )}
      </dl>
    </>
  );
}

/** A dot; a cross if spans failed, so that the colour is not the only sign. */
function Mark({
  x,
  y,
  radius,
  hasErrors,
}: {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
  readonly hasErrors: boolean;
}) {
  if (!hasErrors) return <circle className={css.dot} cx={x} cy={y} r={radius} />;
  const arm = radius + 0.5;
  return <path className={css.cross} d={`M${x - arm} ${y - arm}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`} />;
}

/** What the marks of the plot mean. */
const Legend = memo(function Legend({ isLog }: { readonly isLog: boolean }) {
  return (
    <figcaption className={css.legend}>
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <Mark x={6} y={6} radius={4} hasErrors={false} />
        </svg>
        trace, larger with more spans
      </span>
      <span>
        <svg width="12" height="12" aria-hidden="true">
          <Mark x={6} y={6} radius={3.5} hasErrors />
        </svg>
        with errors
      </span>
      <span>duration by start{isLog && ', log scale'}</span>
      <span className={css.hint}>drag to select times and durations</span>
    </figcaption>
  );
});

const Dots = memo(function Dots({ dots }: { readonly dots: readonly Dot[] }) {
  return dots.map(({ trace, x, y, radius }) => <Mark key={trace.traceId} x={x} y={y} radius={radius} hasErrors={trace.errors > 0} />);
});

const Axes = memo(function Axes(props: { readonly size: PlotSize; readonly times: readonly Tick[]; readonly durations: readonly Tick[] }) {
  const { size, times, durations } = props;
  const right = size.width - MARGIN.right;
  return (
    <g className={css.axes}>
      {durations.map(({ place, label }) => (
        <g key={label}>
          <line x1={MARGIN.left} x2={right} y1={place} y2={place} />
          <text x={MARGIN.left - 8} y={place} textAnchor="end" dominantBaseline="central">
            {label}
          </text>
        </g>
      ))}
      <TimeAxis size={size} ticks={times} frame={css.frame} />
    </g>
  );
});

/** A ring around the dot under the pointer. */
function Ring({ atom }: { readonly atom: ReturnType<typeof createPointed> }) {
  const dot = useAtom(atom, (value) => value);
  return dot === null ? null : <circle className={css.ring} cx={dot.x} cy={dot.y} r={dot.radius + 3.5} />;
}

const createPointed = () => createAtom<Dot | null>(null);

/** What the picture shows, for those who do not see it. */
function inWords(traces: readonly TraceRow[], zone: number): string {
  const failed = traces.filter(({ errors }) => errors > 0).length;
  const extent = extentOf(traces);
  return [
    `Plot of ${counted(traces.length, 'trace')} by start and duration`,
    failed > 0 ? `${formatCount(failed)} with errors` : 'none with errors',
    `started ${startsInWords(extent, zone)}`,
    `took ${durationsInWords(extent)}`,
  ].join(', ');
}

/** Start and duration of the listed traces. A drag selects a rectangle; the table below is the same list for the keyboard. */
export function ScatterPlot({
  traces,
  box,
  select,
  open,
  point,
}: {
  readonly traces: readonly TraceRow[];
  readonly box: TracesBox;
  readonly select: (box: TracesBox) => void;
  readonly open: (traceId: string, inNewTab: boolean) => void;
  /** Reports whether the pointer holds something that must not move. */
  readonly point: (isHolding: boolean) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host);
  const [hover] = useState(createHover);
  const [pointed] = useState(createPointed);
  const [drag, setDrag] = useState<Drag | null>(null);
  const press = useRef<{ readonly x: number; readonly y: number } | null>(null);

  const size = useMemo(() => ({ width, height: HEIGHT }), [width]);
  const plot = useMemo(() => scatterOf(traces, box), [traces, box]);
  const dots = useMemo(() => dotsOf(traces, plot, size), [traces, plot, size]);
  const zone = zoneOf(plot.to);
  const times = useMemo(() => timeTicks(plot, size, zone), [plot, size, zone]);
  const durations = useMemo(() => durationTicks(plot, size), [plot, size]);
  const label = useMemo(() => inWords(traces, zone), [traces, zone]);
  const rectangle = drag === null ? null : rectangleOf(drag, size);

  const pointAt = (dot: Dot | null, event?: PointerEvent): void => {
    pointed.set(dot);
    host.current?.toggleAttribute('data-on-dot', dot !== null);
    hover.set(
      dot === null || event === undefined ? null : { x: event.clientX, y: event.clientY, content: <TraceCard trace={dot.trace} /> },
    );
    point(dot !== null);
  };
  const letGo = (): void => {
    press.current = null;
    setDrag(null);
    pointAt(null);
  };
  useEffect(() => {
    if (drag === null) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      // The page would take back the selection before this one.
      event.stopImmediatePropagation();
      press.current = null;
      setDrag(null);
      point(false);
    };
    window.addEventListener('keydown', onKey, { capture: true });
    return () => window.removeEventListener('keydown', onKey, { capture: true });
  }, [drag, point]);
  useEffect(() => () => point(false), [point]);
  // Under a pointer that rests, another answer or another size may have put another dot.
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever the dots change
  useEffect(() => {
    if (pointed.get() === null) return;
    pointed.set(null);
    hover.set(null);
    host.current?.removeAttribute('data-on-dot');
    point(false);
  }, [dots, pointed, hover, point]);

  const place = (event: PointerEvent): readonly [number, number] => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return [event.clientX - bounds.left, event.clientY - bounds.top];
  };
  return (
    <figure className={css.figure}>
      <Legend isLog={plot.isLog} />
      <div
        ref={host}
        className={css.plot}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          const [x, y] = place(event);
          press.current = { x, y };
        }}
        onPointerMove={(event) => {
          const [x, y] = place(event);
          // The button may have been let go outside of the window.
          if (event.buttons === 0 && (press.current !== null || drag !== null)) letGo();
          const from = event.buttons === 0 ? null : press.current;
          if (from === null || (drag === null && Math.hypot(x - from.x, y - from.y) <= CLICK_PIXELS)) {
            pointAt(dotAt(dots, x, y), event);
            return;
          }
          if (drag === null) {
            event.currentTarget.setPointerCapture(event.pointerId);
            pointAt(null);
            point(true);
          }
          setDrag({ x0: from.x, y0: from.y, x1: x, y1: y });
        }}
        onPointerUp={(event) => {
          const [x, y] = place(event);
          const dot = press.current !== null && drag === null ? dotAt(dots, x, y) : null;
          letGo();
          if (rectangle !== null) select(boxOfRectangle(rectangle, plot, size, box));
          else if (dot !== null) open(dot.trace.traceId, event.ctrlKey || event.metaKey);
        }}
        onPointerCancel={letGo}
        onPointerLeave={() => {
          if (drag === null) pointAt(null);
        }}
      >
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={label}>
            <Axes size={size} times={times} durations={durations} />
            <Dots dots={dots} />
            <Ring atom={pointed} />
            {rectangle !== null && (
              <rect
                className={css.selection}
                x={rectangle.x0}
                y={rectangle.y0}
                width={rectangle.x1 - rectangle.x0}
                height={rectangle.y1 - rectangle.y0}
              />
            )}
          </svg>
        )}
        <HoverCard atom={hover} />
      </div>
    </figure>
  );
}
