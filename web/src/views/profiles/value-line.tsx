import { memo, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import type { ProfileValues } from '../../api/types.gen';
import type { Micros } from '../../base/brand';
import { boxOfRectangle, type Drag, MARGIN, type PlotSize, type Scatter, timeTicks, xOf, yOf } from '../../logic/scatter';
import {
  axesOf,
  finished,
  lineInWords,
  piecesOf,
  pointAt,
  pointInWords,
  stripeOf,
  type ValuePoint,
  valueWords,
  versionMarks,
} from '../../logic/value-line';
import { zoneOf } from '../parts/clock';
import parts from '../parts/parts.module.css';
import { TimeAxis } from '../parts/time-axis';
import { useWidth } from '../parts/use-width';
import css from './profiles.module.css';

const HEIGHT = 92;

const Axes = memo(function Axes({
  values,
  plot,
  size,
}: {
  readonly values: ProfileValues;
  readonly plot: Scatter;
  readonly size: PlotSize;
}) {
  const right = size.width - MARGIN.right;
  const { short } = valueWords(values);
  return (
    <g className={css.axes}>
      {[plot.high, plot.low].map((value) => (
        <text key={value} x={MARGIN.left - 8} y={yOf(plot, size, value)} textAnchor="end" dominantBaseline="central">
          {value === 0 ? '0' : short(value)}
        </text>
      ))}
      <line x1={MARGIN.left} x2={right} y1={MARGIN.top} y2={MARGIN.top} />
      <TimeAxis size={size} ticks={timeTicks(plot, size, zoneOf(plot.to))} frame={css.frame} />
    </g>
  );
});

const Versions = memo(function Versions(props: { readonly values: ProfileValues; readonly plot: Scatter; readonly size: PlotSize }) {
  const { values, plot, size } = props;
  return versionMarks(values.versions, plot, size).map(({ x, label, side }, index) => (
    <g key={values.versions[index]?.label} className={css.version}>
      <line x1={x} x2={x} y1={0} y2={size.height - MARGIN.bottom} />
      <text x={side === 'right' ? x + 5 : x - 5} y={MARGIN.top - 3} textAnchor={side === 'right' ? 'start' : 'end'}>
        {label}
      </text>
    </g>
  ));
});

const Pieces = memo(function Pieces(props: {
  readonly pieces: readonly (readonly ValuePoint[])[];
  readonly plot: Scatter;
  readonly size: PlotSize;
}) {
  const { pieces, plot, size } = props;
  const bottom = size.height - MARGIN.bottom;
  return pieces.map((piece) => {
    const places = piece.map(({ middle, value }) => [xOf(plot, size, middle), yOf(plot, size, value)] as const);
    const [x, y] = places[0] ?? [0, 0];
    if (places.length === 1) return <circle key={x} className={css.lonely} cx={x} cy={y} r={2.5} />;
    const line = places.map((place) => place.join(' ')).join('L');
    return (
      <g key={x}>
        {plot.low === 0 && <path className={css.area} d={`M${line}V${bottom}H${x}Z`} />}
        <path className={css.line} d={`M${line}`} />
      </g>
    );
  });
});

/** The values of the profiles over time. A drag selects a range; the arrow keys go from value to value. */
export function ValueLine({
  values: all,
  endsNow,
  what,
  service,
  select,
}: {
  /** `undefined` before there is an answer. */
  readonly values: ProfileValues | undefined;
  readonly endsNow: boolean;
  readonly what: string;
  readonly service: string;
  readonly select: (start: Micros, end: Micros) => void;
}) {
  const values = useMemo(() => (all === undefined ? undefined : finished(all, endsNow)), [all, endsNow]);
  if (values !== undefined && values.step.length < 2) return null;
  return (
    <figure className={css.figure}>
      <figcaption className={css.bandHead}>
        <span>
          {what}
          {values !== undefined && valueWords(values).behind}
        </span>
        <span className={css.hint}>drag to select a time</span>
      </figcaption>
      {values === undefined ? <div className={css.plot} /> : <Plot values={values} label={`${what} of ${service}`} select={select} />}
    </figure>
  );
}

function Plot({
  values,
  label,
  select,
}: {
  readonly values: ProfileValues;
  readonly label: string;
  readonly select: (start: Micros, end: Micros) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host);
  const [pointed, setPointed] = useState<number | null>(null);
  const [drag, setDrag] = useState<readonly [from: number, to: number] | null>(null);
  const size = useMemo(() => ({ width, height: HEIGHT }), [width]);
  const plot = useMemo(() => axesOf(values), [values]);
  const pieces = useMemo(() => piecesOf(values), [values]);
  const points = useMemo(() => pieces.flat(), [pieces]);
  const zone = zoneOf(plot.to);
  const stripe: Drag | null = drag === null ? null : stripeOf(...drag, size);
  const last = points.length - 1;
  const point = pointed === null || stripe !== null ? undefined : points[Math.min(pointed, last)];
  const words = (place: number): string => {
    const at = points[Math.min(place, last)];
    return at === undefined ? '' : pointInWords(at, values, zone);
  };

  const isDragging = drag !== null;
  useEffect(() => {
    if (!isDragging) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      // The page would take back the selection before this one.
      event.stopImmediatePropagation();
      setDrag(null);
    };
    window.addEventListener('keydown', onKey, { capture: true });
    return () => window.removeEventListener('keydown', onKey, { capture: true });
  }, [isDragging]);

  const place = (event: PointerEvent): number => event.clientX - event.currentTarget.getBoundingClientRect().left;
  return (
    <div
      ref={host}
      className={css.plot}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const x = place(event);
        setDrag([x, x]);
        // A finger that does not move reads a value.
        setPointed(pointAt(points, plot, size, x));
      }}
      onPointerMove={(event) => {
        const x = place(event);
        setPointed(pointAt(points, plot, size, x));
        if (drag !== null) setDrag(event.buttons === 0 ? null : [drag[0], x]);
      }}
      onPointerUp={() => {
        setDrag(null);
        if (stripe === null) return;
        const whole = { start: plot.from, end: plot.to, min: null, max: null };
        const { start, end } = boxOfRectangle(stripe, plot, size, whole);
        if (start !== null && end !== null) select(start, end);
      }}
      onPointerCancel={() => setDrag(null)}
      onPointerLeave={() => setPointed(null)}
    >
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={lineInWords(label, points, values, zone)}>
          <Axes values={values} plot={plot} size={size} />
          <Pieces pieces={pieces} plot={plot} size={size} />
          <Versions values={values} plot={plot} size={size} />
          {stripe !== null && (
            <rect className={css.selection} x={stripe.x0} y={stripe.y0} width={stripe.x1 - stripe.x0} height={stripe.y1 - stripe.y0} />
          )}
          {point !== undefined && (
            <g className={css.pointed}>
              <path d={`M${xOf(plot, size, point.middle)} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}`} />
              <circle cx={xOf(plot, size, point.middle)} cy={yOf(plot, size, point.value)} r={3.5} />
            </g>
          )}
        </svg>
      )}
      {point !== undefined && <Readout x={xOf(plot, size, point.middle)} width={width} text={pointInWords(point, values, zone)} />}
      <input
        type="range"
        className={parts.visuallyHidden}
        aria-label={`${label} at a time`}
        aria-valuetext={words(pointed ?? last)}
        min={0}
        max={last}
        value={Math.min(pointed ?? last, last)}
        onChange={({ target }) => setPointed(Number(target.value))}
        onFocus={() => setPointed(pointed ?? last)}
        onBlur={() => setPointed(null)}
      />
    </div>
  );
}

/** Time and value beside the point, on the side with more room. */
function Readout({ x, width, text }: { readonly x: number; readonly width: number; readonly text: string }) {
  return (
    <span className={css.readout} style={x > width / 2 ? { right: width - x + 8 } : { left: x + 8 }} aria-hidden="true">
      {text}
    </span>
  );
}
