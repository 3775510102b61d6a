import { memo, useEffect, useState } from 'react';
import type { TraceRow } from '../../api/types.gen';
import { ratio } from '../../base/math';
import { counted, formatAge, formatDuration, unixMillis } from '../../logic/format';
import list from '../parts/list.module.css';
import parts from '../parts/parts.module.css';
import css from './search.module.css';

/** Rows before a click: a table of a thousand rows takes longer to lay out than a second. */
const ROWS_FIRST = 200;
/** Services that a row names. */
const SERVICES_MAX = 6;
/** Ages are in minutes; rows need no new time more often. */
const AGE_MILLIS = 10_000;

const Row = memo(function Row(props: {
  readonly trace: TraceRow;
  readonly longest: number;
  readonly nowMillis: number;
  readonly isFresh: boolean;
}) {
  const { trace, longest, nowMillis, isFresh } = props;
  const started = unixMillis(trace.startUnixNano);
  const share = ratio(trace.wallNanos, longest) * 100;
  return (
    <tr className={isFresh ? css.fresh : undefined}>
      <td className={css.trace}>
        <a href={`/trace/${trace.traceId}`} className={list.link}>
          <strong>{trace.service}</strong> {trace.name}
        </a>
        {trace.errors > 0 && <span className={css.error}>{counted(trace.errors, 'error')}</span>}
        <p
          className={css.services}
          title={trace.services.length > SERVICES_MAX ? trace.services.map(({ name }) => name).join(', ') : undefined}
        >
          {trace.services
            .slice(0, SERVICES_MAX)
            .map(({ name, spans }) => `${name} ${spans}`)
            .join(' · ')}
          {trace.services.length > SERVICES_MAX && ` · ${trace.services.length - SERVICES_MAX} more`}
        </p>
      </td>
      <td className={list.number}>
        {formatDuration(trace.wallNanos)}
        <span className={`${list.meter} ${css.bar}`} aria-hidden="true">
          <span className={trace.errors > 0 ? css.barError : undefined} style={{ width: `${Math.max(share, 0.5)}%` }} />
        </span>
      </td>
      <td className={`${list.number} ${css.columnSpans}`}>{trace.spans}</td>
      <td className={list.number}>
        <time dateTime={new Date(started).toISOString()} title={new Date(started).toLocaleString()}>
          {formatAge(started, nowMillis)}
        </time>
      </td>
    </tr>
  );
});

/** The traces as rows. `point` reports whether the mouse is on one. */
export function TraceTable({
  traces,
  fresh,
  nowMillis,
  point,
}: {
  readonly traces: readonly TraceRow[];
  readonly fresh: ReadonlyMap<string, number>;
  readonly nowMillis: number;
  readonly point: (isOnRow: boolean) => void;
}) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? traces : traces.slice(0, ROWS_FIRST);
  const longest = traces.reduce((most, { wallNanos }) => Math.max(most, wallNanos), 1);
  const age = Math.floor(nowMillis / AGE_MILLIS) * AGE_MILLIS;
  // Rows that go away do not say that the mouse has left them.
  useEffect(() => () => point(false), [point]);
  return (
    <>
      <table className={list.table}>
        <thead>
          <tr>
            <th>Trace</th>
            <th className={`${list.number} ${css.columnDuration}`}>Duration</th>
            <th className={`${list.number} ${css.columnSpans}`}>Spans</th>
            <th className={`${list.number} ${css.columnWhen}`}>When</th>
          </tr>
        </thead>
        <tbody onPointerEnter={(event) => point(event.pointerType === 'mouse')} onPointerLeave={() => point(false)}>
          {shown.map((trace) => (
            <Row key={trace.traceId} trace={trace} longest={longest} nowMillis={age} isFresh={fresh.has(trace.traceId)} />
          ))}
        </tbody>
      </table>
      {shown.length < traces.length && (
        <p className={list.more}>
          <button type="button" className={parts.button} onClick={() => setWhole(true)}>
            Show all {counted(traces.length, 'trace')}
          </button>
        </p>
      )}
    </>
  );
}
