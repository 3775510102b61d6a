import { Link } from '@tanstack/react-router';
import { type KeyboardEvent, memo, type PointerEvent, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { ServiceMap } from '../../api/types.gen';
import { counted, formatCount, formatDuration } from '../../logic/format';
import { errorShare, requestsInWords } from '../../logic/service-map';
import {
  BOX,
  type CallLine,
  firstPlace,
  fitted,
  headOf,
  isFailing,
  LABEL_LINE_HEIGHT,
  labelTexts,
  layoutOf,
  type MapLayout,
  type Place,
  pathOf,
  type ServiceBox,
  stepFrom,
  textWidth,
} from '../../logic/service-map-layout';
import css from './services.module.css';

const NAME_SIZE = 13;
const NUMBER_SIZE = 11.5;
/** A line that is thinner than this is hard to hit. */
const REACH = 14;

/** How a thing stands to the place that the reader points at. */
type Standing = 'near' | 'far' | 'usual';

const printPlace = ({ kind, index }: Place): string => `${kind} ${index}`;

/** The place of an element of the picture. */
function placeOf(target: EventTarget): Place | null {
  const text = target instanceof Element ? target.closest('[data-place]')?.getAttribute('data-place') : null;
  const [kind, index] = text?.split(' ') ?? [];
  return kind === 'box' || kind === 'line' ? { kind, index: Number(index) } : null;
}

const isSame = (a: Place | null, b: Place | null): boolean => a?.kind === b?.kind && a?.index === b?.index;

const Box = memo(function Box(props: {
  readonly box: ServiceBox;
  readonly place: string;
  readonly isStop: boolean;
  readonly standing: Standing;
}) {
  const { box, place, isStop, standing } = props;
  const { name, requests } = box.service;
  const count = counted(requests.count, 'request');
  const room = BOX.width - 2 * BOX.padding;
  const failed = requests.errors === 0 ? '' : `${errorShare(requests)} failed`;
  return (
    <Link
      to="/search"
      search={{ service: name }}
      className={css.box}
      data-place={place}
      data-standing={standing}
      tabIndex={isStop ? 0 : -1}
    >
      <title>{`${name}: ${requestsInWords(requests, 'request')}`}</title>
      <rect x={box.x} y={box.y} width={BOX.width} height={BOX.height} rx={8} />
      <text className={css.name} x={box.x + BOX.padding} y={box.y + 21}>
        {fitted(name, NAME_SIZE, room)}
      </text>
      <text className={css.number} x={box.x + BOX.padding} y={box.y + 37}>
        {textWidth(`${count} · ${failed}`, NUMBER_SIZE) <= room ? count : formatCount(requests.count)}
        {failed !== '' && (
          <>
            {' · '}
            <tspan className={css.failed}>{failed}</tspan>
          </>
        )}
      </text>
      <text className={css.number} x={box.x + BOX.padding} y={box.y + 52}>
        p50 {formatDuration(requests.medianNanos)} · p99 {formatDuration(requests.p99Nanos)}
      </text>
    </Link>
  );
});

const Line = memo(function Line(props: {
  readonly line: CallLine;
  readonly place: string;
  readonly isStop: boolean;
  readonly standing: Standing;
}) {
  const { line, place, isStop, standing } = props;
  const { calls } = line;
  const path = pathOf(line);
  return (
    <Link
      to="/search"
      search={{ service: calls.callee }}
      className={isFailing(calls) ? `${css.line} ${css.failing}` : css.line}
      data-place={place}
      data-standing={standing}
      tabIndex={isStop ? 0 : -1}
    >
      <title>{`${calls.caller} calls ${calls.callee}: ${requestsInWords(calls.requests, 'call')}`}</title>
      <path className={css.reach} d={path} strokeWidth={Math.max(REACH, line.width)} />
      <path className={css.stroke} d={path} strokeWidth={line.width} />
      <path className={css.head} d={headOf(line)} />
    </Link>
  );
});

/** What stands on a line; the line has the same in its title. */
const Label = memo(function Label({ line: { calls, label }, standing }: { readonly line: CallLine; readonly standing: Standing }) {
  if (!label.fits && standing !== 'near') return null;
  const [figures, failed] = labelTexts(calls);
  const x = label.x + label.width / 2;
  return (
    <g className={css.label} data-standing={standing} aria-hidden="true">
      <rect x={label.x} y={label.y} width={label.width} height={label.height} rx={3} />
      <text x={x} y={label.y + LABEL_LINE_HEIGHT - 2} textAnchor="middle">
        {figures}
        {failed !== '' && (
          <tspan className={css.failed} x={x} dy={LABEL_LINE_HEIGHT}>
            {failed}
          </tspan>
        )}
      </text>
    </g>
  );
});

function Legend() {
  return (
    <figcaption className={css.legend}>
      <span>callers to the left of callees</span>
      <span>
        <svg width="30" height="12" aria-hidden="true">
          <path className={css.stroke} d="M1 3H29" strokeWidth="1.25" />
          <path className={css.stroke} d="M1 9H29" strokeWidth="4.5" />
        </svg>
        calls · p99; line width: number of calls
      </span>
      <span className={css.failing}>
        <svg width="30" height="12" aria-hidden="true">
          <path className={css.stroke} d="M1 6H29" strokeWidth="2.5" />
        </svg>
        1% or more failed
      </span>
    </figcaption>
  );
}

/** What touches the place that the reader points at. */
function standings(
  { lines }: MapLayout,
  at: Place | null,
): { readonly box: (index: number) => Standing; readonly line: (index: number) => Standing } {
  if (at === null) return { box: () => 'usual', line: () => 'usual' };
  const touches = ({ left, right }: CallLine) => left === at.index || right === at.index;
  const near = new Set(lines.flatMap((line, index) => ((at.kind === 'line' ? index === at.index : touches(line)) ? [index] : [])));
  const boxes = new Set(lines.flatMap(({ left, right }, index) => (near.has(index) ? [left, right] : [])));
  if (at.kind === 'box') boxes.add(at.index);
  return { box: (index) => (boxes.has(index) ? 'near' : 'far'), line: (index) => (near.has(index) ? 'near' : 'far') };
}

/** Services as boxes, calls as lines between them; each leads to its traces. The tables below have the same numbers. */
export function ServiceMapPicture({ map }: { readonly map: ServiceMap }) {
  const layout = useMemo(() => layoutOf(map), [map]);
  const host = useRef<SVGSVGElement>(null);
  const room = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<Place | null>(null);
  /** The one place of the picture that Tab stops at. */
  const [stop, setStop] = useState<Place | null>(null);
  const isThere = (place: Place) => (place.kind === 'box' ? layout.boxes : layout.lines).length > place.index;
  const current = stop !== null && isThere(stop) ? stop : firstPlace(layout);
  const isPlaced = useRef(false);
  // A tall map begins at its first service. A later answer leaves it where the reader is.
  useLayoutEffect(() => {
    const first = firstPlace(layout);
    const box = first === null ? undefined : layout.boxes[first.index];
    if (isPlaced.current || box === undefined || room.current === null) return;
    isPlaced.current = true;
    room.current.scrollTop = box.y + BOX.height / 2 - room.current.clientHeight / 2;
  }, [layout]);
  const standing = useMemo(() => standings(layout, pointed), [layout, pointed]);

  const point = (event: PointerEvent): void => {
    const place = placeOf(event.target);
    if (!isSame(place, pointed)) setPointed(place);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const place = placeOf(event.target);
    const next = place === null ? null : stepFrom(layout, place, event.key);
    if (next === null) return;
    event.preventDefault();
    host.current?.querySelector<SVGElement>(`[data-place="${printPlace(next)}"]`)?.focus();
  };
  return (
    <figure className={css.figure}>
      <Legend />
      <div ref={room} className={css.map}>
        <svg
          ref={host}
          width={layout.width}
          height={layout.height}
          role="group"
          aria-label={`Map of ${counted(layout.boxes.length, 'service')} and ${counted(layout.lines.length, 'line')} of calls; arrow keys follow the lines`}
          onPointerOver={point}
          onPointerLeave={() => setPointed(null)}
          onKeyDown={onKey}
          onFocus={(event) => {
            const place = placeOf(event.target);
            setStop(place);
            if (event.target.matches(':focus-visible')) setPointed(place);
          }}
          onBlur={() => setPointed(null)}
        >
          {layout.lines.map((line, index) => {
            const place: Place = { kind: 'line', index };
            return (
              <Line
                key={`${line.calls.caller}\n${line.calls.callee}`}
                line={line}
                place={printPlace(place)}
                isStop={isSame(place, current)}
                standing={standing.line(index)}
              />
            );
          })}
          {layout.lines.map((line, index) => (
            <Label key={`${line.calls.caller}\n${line.calls.callee}`} line={line} standing={standing.line(index)} />
          ))}
          {layout.boxes.map((box, index) => {
            const place: Place = { kind: 'box', index };
            return (
              <Box
                key={box.service.name}
                box={box}
                place={printPlace(place)}
                isStop={isSame(place, current)}
                standing={standing.box(index)}
              />
            );
          })}
        </svg>
      </div>
      {layout.omitted > 0 && (
        <p className={css.omitted}>
          The map shows the {formatCount(layout.boxes.length)} services with the most requests; the table has {formatCount(layout.omitted)}{' '}
          more.
        </p>
      )}
    </figure>
  );
}
