import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { Service, TraceRow } from '../../api/types.gen';
import { ratio } from '../../base/math';
import { counted, formatAge, formatDuration, unixMillis } from '../../logic/format';
import { requestOf, type TracesSearch } from '../../logic/traces-search';
import { servicesQuery, tracesQuery } from '../../state/queries';
import list from '../parts/list.module.css';
import { Command, Failure, Skeleton } from '../parts/notice';
import { Topbar } from '../parts/topbar';
import css from './search.module.css';

const route = getRouteApi('/search');

function Choice(props: {
  readonly label: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly onChange: (value: string) => void;
}) {
  return (
    <label className={css.field}>
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.target.value)}>
        <option value="">any</option>
        {props.options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}

function Words(props: {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly wide?: boolean;
  readonly onChange: (value: string) => void;
}) {
  return (
    <label className={`${css.field} ${props.wide === true ? css.wide : ''}`}>
      <span>{props.label}</span>
      <input value={props.value} placeholder={props.placeholder} onChange={(event) => props.onChange(event.target.value)} />
    </label>
  );
}

function Filters({ services }: { readonly services: readonly Service[] }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const change = (part: TracesSearch): void => {
    const next = Object.fromEntries(Object.entries({ ...search, ...part }).filter(([, value]) => value !== ''));
    void navigate({ search: next, replace: true });
  };
  const service = services.find(({ name }) => name === search.service);
  return (
    <form className={css.filters} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Choice
        label="Service"
        value={search.service ?? ''}
        options={services.map(({ name }) => name)}
        onChange={(value) => change({ service: value, operation: '' })}
      />
      <Choice
        label="Operation"
        value={search.operation ?? ''}
        options={service?.operations ?? []}
        onChange={(value) => change({ operation: value })}
      />
      <Words
        label="Attributes"
        wide
        value={search.tags ?? ''}
        placeholder="http.status_code=500 error=true"
        onChange={(value) => change({ tags: value })}
      />
      <Words label="At least" value={search.minDuration ?? ''} placeholder="100ms" onChange={(value) => change({ minDuration: value })} />
      <Words label="At most" value={search.maxDuration ?? ''} placeholder="1.5s" onChange={(value) => change({ maxDuration: value })} />
      <label className={css.field}>
        <span>Order</span>
        <select value={search.sort ?? ''} onChange={(event) => change({ sort: event.target.value === 'longest' ? 'longest' : '' })}>
          <option value="">newest first</option>
          <option value="longest">longest first</option>
        </select>
      </label>
    </form>
  );
}

function Row({ trace, longest, nowMillis }: { readonly trace: TraceRow; readonly longest: number; readonly nowMillis: number }) {
  const started = unixMillis(trace.startUnixNano);
  const share = ratio(trace.wallNanos, longest) * 100;
  return (
    <tr>
      <td className={css.trace}>
        <a href={`/trace/${trace.traceId}`} className={list.link}>
          <strong>{trace.service}</strong> {trace.name}
        </a>
        {trace.errors > 0 && <span className={css.error}>{counted(trace.errors, 'error')}</span>}
        <p className={css.services}>{trace.services.map(({ name, spans }) => `${name} ${spans}`).join(' · ')}</p>
      </td>
      <td className={list.number}>
        {formatDuration(trace.wallNanos)}
        <span className={css.bar} aria-hidden="true">
          <span className={trace.errors > 0 ? css.barError : css.barFill} style={{ width: `${Math.max(share, 0.5)}%` }} />
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
}

/** What to do before the first span has come. */
function First() {
  const host = window.location.hostname;
  return (
    <div className={css.empty} role="status">
      <h2>Waiting for the first span</h2>
      <p>Any OpenTelemetry SDK sends its spans here when this is set for the program; this page shows them as soon as they come.</p>
      <Command text={`OTEL_EXPORTER_OTLP_ENDPOINT=http://${host}:4318 OTEL_SERVICE_NAME=my-service`} />
      <p>
        OTLP over gRPC goes to port 4317, Zipkin’s spans to <code>http://{host}:9411/api/v2/spans</code>. A program without any
        instrumentation: <code>longpole run -- COMMAND</code>.
      </p>
    </div>
  );
}

/** The traces of a server: filters, which are the address, and a list. */
export function SearchPage() {
  const search = route.useSearch();
  const services = useQuery(servicesQuery());
  const request = requestOf(search);
  const traces = useQuery({ ...tracesQuery(request.parameters), enabled: request.wrong === null });
  useEffect(() => {
    document.title = search.service === undefined ? 'longpole: traces' : `longpole: ${search.service}`;
  }, [search.service]);
  const found = traces.data?.traces ?? [];
  const rows = search.sort === 'longest' ? [...found].sort((a, b) => b.wallNanos - a.wallNanos) : found;
  const longest = found.reduce((most, { wallNanos }) => Math.max(most, wallNanos), 1);
  const isNew = services.data !== undefined && services.data.services.length === 0;
  return (
    <div className={list.page}>
      <Topbar />
      <main className={list.main}>
        <h1 className={css.title}>Traces</h1>
        {services.data !== undefined && !isNew && <Filters services={services.data.services} />}
        <div className={list.list}>
          {isNew && <First />}
          {request.wrong !== null && <p className={css.wrong}>{request.wrong}</p>}
          {services.error !== null && services.data === undefined && <Failure error={services.error} retry={() => services.refetch()} />}
          {traces.error !== null && <Failure error={traces.error} retry={() => traces.refetch()} />}
          {traces.error === null && traces.data === undefined && request.wrong === null && <Skeleton lines={8} label="Loading traces" />}
          {!isNew && traces.data !== undefined && rows.length === 0 && (
            <div className={css.empty}>
              <p>No trace of the last two days matches these filters.</p>
            </div>
          )}
          {rows.length > 0 && (
            <table className={list.table}>
              <thead>
                <tr>
                  <th>Trace</th>
                  <th className={`${list.number} ${css.columnDuration}`}>Duration</th>
                  <th className={`${list.number} ${css.columnSpans}`}>Spans</th>
                  <th className={`${list.number} ${css.columnWhen}`}>When</th>
                </tr>
              </thead>
              <tbody>
                {rows.map((trace) => (
                  <Row key={trace.traceId} trace={trace} longest={longest} nowMillis={traces.dataUpdatedAt} />
                ))}
              </tbody>
            </table>
          )}
        </div>
        {traces.data?.truncated === true && (
          <p className={css.muted}>
            These are the newest {found.length}
            {search.sort === 'longest' ? ', longest first' : ''}; a filter finds older ones.
          </p>
        )}
      </main>
    </div>
  );
}
