import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { Requests, ServiceMap } from '../../api/types.gen';
import { counted, formatCount, formatDuration } from '../../logic/format';
import {
  clickedSort,
  errorsInColumn,
  isAscending,
  type Sort,
  type SortOrder,
  sortedCalls,
  sortedServices,
  sortOf,
} from '../../logic/service-map';
import list from '../parts/list.module.css';
import parts from '../parts/parts.module.css';
import css from './services.module.css';

/** Rows before a click. */
const ROWS_FIRST = 100;

const TITLES: Readonly<Record<Sort, string>> = {
  service: 'Service',
  caller: 'Caller',
  callee: 'Callee',
  count: 'Requests',
  errors: 'Errors',
  median: 'Median',
  p95: 'p95',
  p99: 'p99',
};
const NUMBERS = ['count', 'errors', 'median', 'p95', 'p99'] as const;

function Numbers({ requests }: { readonly requests: Requests }) {
  return (
    <>
      <td className={list.number}>{formatCount(requests.count)}</td>
      <td className={requests.errors > 0 ? `${list.number} ${css.failed}` : list.number}>{errorsInColumn(requests)}</td>
      <td className={list.number}>{formatDuration(requests.medianNanos)}</td>
      <td className={list.number}>{formatDuration(requests.p95Nanos)}</td>
      <td className={list.number}>{formatDuration(requests.p99Nanos)}</td>
    </>
  );
}

function Sorted<Row>(props: {
  readonly title: string;
  readonly count: string;
  readonly names: readonly Sort[];
  readonly order: SortOrder | undefined;
  readonly sort: (order: SortOrder) => void;
  readonly rows: readonly Row[];
  readonly render: (row: Row) => ReactNode;
}) {
  const { title, count, names, order, sort, rows, render } = props;
  const [isWhole, setWhole] = useState(false);
  const current = sortOf(order, names);
  const shown = isWhole ? rows : rows.slice(0, ROWS_FIRST);
  return (
    <section className={css.section} aria-label={title}>
      <h2>{title}</h2>
      <div className={`${list.list} ${css.scroll}`}>
        <table className={`${list.table} ${css.table}`}>
          <thead>
            <tr>
              {[...names, ...NUMBERS].map((column) => (
                <th
                  key={column}
                  className={names.includes(column) ? undefined : `${list.number} ${css.columnNumber}`}
                  aria-sort={column !== current.sort ? undefined : isAscending(current) ? 'ascending' : 'descending'}
                >
                  <button type="button" className={list.sort} onClick={() => sort(clickedSort(column, current))}>
                    {column === 'count' ? count : TITLES[column]}
                    <span aria-hidden="true">{column !== current.sort ? '' : isAscending(current) ? ' ▲' : ' ▼'}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{shown.map(render)}</tbody>
        </table>
        {shown.length < rows.length && (
          <p className={list.more}>
            <button type="button" className={parts.button} onClick={() => setWhole(true)}>
              Show all {counted(rows.length, 'row')}
            </button>
          </p>
        )}
      </div>
    </section>
  );
}

/** The numbers of the map. */
export function MapTables({
  map,
  order,
  sort,
}: {
  readonly map: ServiceMap;
  readonly order: SortOrder | undefined;
  readonly sort: (order: SortOrder) => void;
}) {
  return (
    <>
      {map.calls.length > 0 && (
        <Sorted
          title="Calls"
          count="Calls"
          names={['caller', 'callee']}
          order={order}
          sort={sort}
          rows={sortedCalls(map.calls, order)}
          render={({ caller, callee, requests }) => (
            <tr key={`${caller}\n${callee}`}>
              <td className={css.cell}>{caller}</td>
              <td className={css.cell}>
                <Link to="/search" search={{ service: callee }} className={list.link}>
                  {callee}
                </Link>
              </td>
              <Numbers requests={requests} />
            </tr>
          )}
        />
      )}
      <Sorted
        title="Services"
        count="Requests"
        names={['service']}
        order={order}
        sort={sort}
        rows={sortedServices(map.services, order)}
        render={({ name, requests }) => (
          <tr key={name}>
            <td className={css.cell}>
              <Link to="/search" search={{ service: name }} className={list.link}>
                {name}
              </Link>
            </td>
            <Numbers requests={requests} />
          </tr>
        )}
      />
    </>
  );
}
