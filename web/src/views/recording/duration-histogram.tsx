import { type KeyboardEvent, type PointerEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { at } from '../../base/column';
import { clamp } from '../../base/math';
import { printDuration } from '../../logic/duration';
import { counted, formatDuration } from '../../logic/format';
import { barsPath, binAt, binCount, binsInWords, binsOf, countsOf, placeOf, rangeOf, searchOfBins } from '../../logic/histogram';
import { type Operation, operationInWords } from '../../logic/operations';
import type { SelectionActions } from '../../state/selection';
import { Breakable } from '../parts/name';
import parts from '../parts/parts.module.css';
import { useWidth } from '../parts/use-width';
import css from './operations.module.css';

const HEIGHT = 52;
/** The room for the names of quantiles above the bars, and for durations below them. */
const ABOVE = 14;
const BELOW = 16;
const BIN_PIXELS = 11;
const BINS = { least: 8, most: 64 } as const;
/** The room for a duration on the axis, and for the name of a quantile. */
const TICK_PIXELS = 64;
const MARK_PIXELS = 26;

/** Two bins: where a selection began, and where it is now. */
interface Ends {
  readonly anchor: number;
  readonly head: number;
}

/** The quantiles that the operation has, with their places; a name that would lie on another is left out. */
function marksOf(operation: Operation, placeAt: (nanos: number) => number) {
  const { p50Nanos, p95Nanos, p99Nanos } = operation;
  let free = Number.NEGATIVE_INFINITY;
  return (
    [
      ['p50', p50Nanos],
      ['p95', p95Nanos],
      ['p99', p99Nanos],
    ] as const
  ).flatMap(([name, nanos]) => {
    if (nanos === null) return [];
    const place = placeAt(nanos);
    const isNamed = place >= free;
    if (isNamed) free = place + MARK_PIXELS;
    return [{ name, nanos, place, isNamed }];
  });
}

/** The durations of an operation. A drag, or arrow keys and Enter, show the spans of some durations in the trace. */
export function DurationHistogram({ operation, actions }: { readonly operation: Operation; readonly actions: SelectionActions }) {
  const { durations } = operation;
  const hint = useId();
  const host = useRef<HTMLDivElement>(null);
  const width = useWidth(host);
  const [drag, setDrag] = useState<Ends | null>(null);
  const [keys, setKeys] = useState<Ends | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);

  const bins = useMemo(
    () => binsOf(at(durations, 0), at(durations, durations.length - 1), clamp(Math.floor(width / BIN_PIXELS), BINS.least, BINS.most)),
    [durations, width],
  );
  const counts = useMemo(() => countsOf(durations, bins), [durations, bins]);
  const count = binCount(bins);
  const path = useMemo(() => barsPath(counts, width, HEIGHT, 1), [counts, width]);
  const marks = useMemo(() => marksOf(operation, (nanos) => placeOf(bins, width, nanos)), [operation, bins, width]);
  const every = Math.max(1, Math.ceil((TICK_PIXELS * count) / Math.max(1, width)));
  const ticks = Array.from({ length: Math.floor(count / every) + 1 }, (_, index) => index * every);

  useEffect(() => {
    if (drag === null) return undefined;
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      // The page would take back a selection.
      event.stopImmediatePropagation();
      setDrag(null);
    };
    window.addEventListener('keydown', onKey, { capture: true });
    return () => window.removeEventListener('keydown', onKey, { capture: true });
  }, [drag]);

  const show = ({ anchor, head }: Ends): void => actions.showSpans(searchOfBins(operation, bins, rangeOf(anchor, head)));
  const middle = binAt(bins, width, placeOf(bins, width, operation.p50Nanos ?? 0));
  const ends = keys ?? { anchor: middle, head: middle };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter') {
      show(ends);
      return;
    }
    const targets: Readonly<Record<string, number>> = { ArrowLeft: ends.head - 1, ArrowRight: ends.head + 1, Home: 0, End: count - 1 };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const head = clamp(target, 0, count - 1);
    setKeys({ anchor: event.shiftKey ? ends.anchor : head, head });
  };
  const binOf = (event: PointerEvent): number => binAt(bins, width, event.clientX - event.currentTarget.getBoundingClientRect().left);

  const shown = drag ?? keys ?? (pointed === null ? null : { anchor: pointed, head: pointed });
  const range = shown === null ? null : rangeOf(shown.anchor, shown.head);
  return (
    <figure className={css.figure}>
      <figcaption className={css.caption}>
        <strong>
          <Breakable text={operationInWords(operation)} />
        </strong>
        <span>{range === null ? `${counted(durations.length, 'span')} by duration, log scale` : binsInWords(bins, counts, range)}</span>
        <span id={hint} className={css.hint}>
          drag to show the spans of some durations<span className={parts.visuallyHidden}>, or arrow keys, Shift to extend, Enter</span>
        </span>
      </figcaption>
      <div
        ref={host}
        className={css.plot}
        role="slider"
        tabIndex={0}
        aria-label={`Durations of ${operationInWords(operation)}`}
        aria-describedby={hint}
        aria-valuemin={0}
        aria-valuemax={count - 1}
        aria-valuenow={ends.head}
        aria-valuetext={binsInWords(bins, counts, rangeOf(ends.anchor, ends.head))}
        onKeyDown={onKeyDown}
        onFocus={(event) => {
          if (event.currentTarget.matches(':focus-visible')) setKeys(ends);
        }}
        onBlur={() => setKeys(null)}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setKeys(null);
          setDrag({ anchor: binOf(event), head: binOf(event) });
        }}
        onPointerMove={(event) => {
          setPointed(binOf(event));
          if (drag !== null) setDrag({ ...drag, head: binOf(event) });
        }}
        onPointerUp={() => {
          setDrag(null);
          if (drag !== null) show(drag);
        }}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setPointed(null)}
      >
        {width > 0 && (
          <svg width={width} height={ABOVE + HEIGHT + BELOW} aria-hidden="true">
            {range !== null && (
              <rect
                className={css.chosen}
                x={(range.first / count) * width}
                y={ABOVE}
                width={((range.last - range.first + 1) / count) * width}
                height={HEIGHT}
              />
            )}
            <g transform={`translate(0 ${ABOVE})`}>
              <path className={css.columns} d={path} />
              <line className={css.ground} x1={0} x2={width} y1={HEIGHT + 0.5} y2={HEIGHT + 0.5} />
            </g>
            {marks.map(({ name, nanos, place, isNamed }) => (
              <g key={name}>
                <title>{`${name} ${formatDuration(nanos)}`}</title>
                <line className={css.mark} x1={place} x2={place} y1={ABOVE - 2} y2={ABOVE + HEIGHT} />
                {isNamed && (
                  <text
                    className={css.label}
                    x={place}
                    y={ABOVE - 4}
                    textAnchor={place < MARK_PIXELS / 2 ? 'start' : place > width - MARK_PIXELS / 2 ? 'end' : 'middle'}
                  >
                    {name}
                  </text>
                )}
              </g>
            ))}
            {ticks.map((edge) => (
              <text
                key={edge}
                className={css.label}
                x={(edge / count) * width}
                y={ABOVE + HEIGHT + 12}
                textAnchor={edge === 0 ? 'start' : edge > count - every / 2 ? 'end' : 'middle'}
              >
                {printDuration(at(bins.edges, edge), 'down')}
              </text>
            ))}
          </svg>
        )}
      </div>
    </figure>
  );
}
