import { type KeyboardEvent, memo, useMemo, useState } from 'react';
import { ratio } from '../../base/math';
import { hueOfService } from '../../canvas/palette';
import { counted, formatCount, formatDuration, formatShare } from '../../logic/format';
import { type Bins, barsPath, commonBins, countsOf } from '../../logic/histogram';
import { searchOf } from '../../logic/operation-search';
import {
  clickedOrder,
  isAscendingOrder,
  missingQuantileInWords,
  NUMBER_OF,
  type Operation,
  type OperationSort,
  type Operations,
  operationInWords,
  type ReadOrder,
  titleOfOperation,
} from '../../logic/operations';
import { namedService } from '../../logic/span-words';
import type { SelectionActions } from '../../state/selection';
import list from '../parts/list.module.css';
import { Breakable } from '../parts/name';
import parts from '../parts/parts.module.css';
import css from './operations.module.css';

/** Rows before a click, and with each click: a table of ten thousand rows takes longer to lay out than a second. */
const ROWS_STEP = 200;
/** The small histogram of a row. */
const BARS = { width: 96, height: 22, count: 24 } as const;

type NumberSort = Exclude<OperationSort, 'name'>;

const COLUMNS: readonly { readonly sort: NumberSort; readonly title: string; readonly hint: string }[] = [
  { sort: 'count', title: 'Count', hint: 'number of spans' },
  { sort: 'errors', title: 'Errors', hint: 'spans that failed' },
  { sort: 'total', title: 'Total', hint: 'sum of the durations; a span inside another of the same row counts once' },
  { sort: 'p50', title: 'p50', hint: 'the median: half of the spans take at most this long' },
  { sort: 'p95', title: 'p95', hint: '95% of the spans take at most this long' },
  { sort: 'p99', title: 'p99', hint: '99% of the spans take at most this long' },
  { sort: 'max', title: 'Max', hint: 'the longest span' },
  { sort: 'path', title: 'On path', hint: 'time on the critical path in the spans themselves, not in their children' },
];

const isCount = (sort: NumberSort): boolean => sort === 'count' || sort === 'errors';

/** Why a row has no such number. */
function missingInWords(operation: Operation, sort: NumberSort): string {
  return missingQuantileInWords(operation, sort === 'p95' ? 95 : sort === 'p99' ? 99 : 50);
}

function NumberCell({
  operation,
  sort,
  most,
}: {
  readonly operation: Operation;
  readonly sort: NumberSort;
  /** The largest number of the column, if the table is in its order. */
  readonly most: number | null;
}) {
  const number = NUMBER_OF[sort](operation);
  if (number === null) {
    return (
      <td className={`${list.number} ${parts.muted}`} title={missingInWords(operation, sort)}>
        –
      </td>
    );
  }
  const hasFailed = sort === 'errors' && number > 0;
  return (
    <td
      className={hasFailed ? `${list.number} ${css.failed}` : list.number}
      title={hasFailed ? `${formatShare(ratio(number, operation.count))} of ${counted(operation.count, 'span')}` : undefined}
    >
      {isCount(sort) ? formatCount(number) : number === 0 ? '0' : formatDuration(number)}
      {most !== null && (
        <span className={list.meter} aria-hidden="true">
          <span style={{ width: `${ratio(number, most) * 100}%` }} />
        </span>
      )}
    </td>
  );
}

const Row = memo(function Row({
  operation,
  bins,
  sort,
  most,
  isDrawn,
  isFocused,
  actions,
}: {
  readonly operation: Operation;
  readonly bins: Bins;
  readonly sort: OperationSort;
  readonly most: number;
  readonly isDrawn: boolean;
  /** Whether the Tab key goes to this row; arrow keys go to the others. */
  readonly isFocused: boolean;
  readonly actions: SelectionActions;
}) {
  const { name, service, serviceNumber, durations } = operation;
  const words = operationInWords(operation);
  const named = service === null ? '' : namedService(service);
  const path = useMemo(() => barsPath(countsOf(durations, bins), BARS.width, BARS.height, 1), [durations, bins]);
  const show = (): void => actions.showSpans(searchOf(operation));
  const tabIndex = isFocused ? 0 : -1;
  const swatch = serviceNumber >= 0 && named !== '' && (
    <span className={css.swatch} style={{ background: `var(--hue-${hueOfService(serviceNumber)})` }} aria-hidden="true" />
  );
  return (
    // Keyboard and screen readers use the buttons in the row; the mouse can click anywhere.
    <tr data-drawn={isDrawn || undefined} onClick={show}>
      <th scope="row" className={css.cellName}>
        <button
          type="button"
          className={css.name}
          data-cell="name"
          tabIndex={tabIndex}
          aria-label={`Show the spans: ${words}`}
          title={`${words}: show only these spans in the trace`}
        >
          {name === null && swatch}
          <span className={css.text}>
            <Breakable text={titleOfOperation(operation)} />
          </span>
        </button>
        {name !== null && named !== '' && (
          <small className={css.service}>
            {swatch}
            {named}
          </small>
        )}
      </th>
      {COLUMNS.map((column) => (
        <NumberCell key={column.sort} operation={operation} sort={column.sort} most={column.sort === sort ? most : null} />
      ))}
      <td className={css.cellBars}>
        <button
          type="button"
          className={css.bars}
          data-cell="durations"
          tabIndex={tabIndex}
          aria-pressed={isDrawn}
          aria-label={`Durations: ${words}`}
          title="draw these durations large"
          onClick={(event) => {
            event.stopPropagation();
            actions.selectOperation(operation.key);
          }}
        >
          <svg width={BARS.width} height={BARS.height} aria-hidden="true">
            <path d={path} />
          </svg>
        </button>
      </td>
    </tr>
  );
});

/** Moves the focus between rows, in the column where it is. */
function onRowKeys(event: KeyboardEvent<HTMLTableSectionElement>, focus: (row: number) => void): void {
  const cell = (event.target as HTMLElement).closest<HTMLElement>('[data-cell]');
  const row = cell?.closest('tr');
  if (cell === null || row === null || row === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...event.currentTarget.rows];
  const place = rows.indexOf(row);
  const targets: Readonly<Record<string, number>> = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 };
  const target = targets[event.key];
  if (target === undefined) return;
  event.preventDefault();
  const next = rows[target]?.querySelector<HTMLElement>(`[data-cell="${cell.dataset['cell']}"]`);
  if (next === null || next === undefined) return;
  focus(target);
  next.focus();
}

/** The operations as rows. */
export function OperationsTable({
  operations,
  rows,
  order,
  drawn,
  actions,
}: {
  readonly operations: Operations;
  /** The same rows in the order of the table. */
  readonly rows: readonly Operation[];
  readonly order: ReadOrder;
  /** Key of the row with the large histogram. */
  readonly drawn: string | null;
  readonly actions: SelectionActions;
}) {
  const [limit, setLimit] = useState(ROWS_STEP);
  const [focused, setFocused] = useState(0);
  const bins = useMemo(() => commonBins(operations.rows, BARS.count), [operations]);
  const { sort } = order;
  const most = useMemo(
    () => (sort === 'name' ? 0 : operations.rows.reduce((largest, row) => Math.max(largest, NUMBER_OF[sort](row) ?? 0), 0)),
    [operations, sort],
  );
  const shown = rows.slice(0, limit);
  const heading = (column: OperationSort, title: string) => (
    <button type="button" className={`${list.sort} ${css.sort}`} onClick={() => actions.sortOperations(clickedOrder(column, order))}>
      {title}
      <span aria-hidden="true">{column !== sort ? '' : isAscendingOrder(order) ? ' ▲' : ' ▼'}</span>
    </button>
  );
  const sortOf = (column: OperationSort) => (column !== sort ? undefined : isAscendingOrder(order) ? 'ascending' : 'descending');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach every scroll container
    <div className={css.scroll} tabIndex={0} role="group" aria-label="Table of operations">
      <table className={`${list.table} ${css.table}`}>
        <thead>
          <tr>
            <th className={css.cellName} aria-sort={sortOf('name')}>
              {heading('name', operations.grouping === 'service' ? 'Service' : 'Operation')}
            </th>
            {COLUMNS.map(({ sort: column, title, hint }) => (
              <th
                key={column}
                className={isCount(column) ? `${list.number} ${css.columnCount}` : list.number}
                aria-sort={sortOf(column)}
                title={hint}
              >
                {heading(column, title)}
              </th>
            ))}
            <th
              className={css.cellBars}
              title="how many spans have which duration; from the shortest to the longest span of the table, log scale"
            >
              Durations
            </th>
          </tr>
        </thead>
        <tbody onKeyDown={(event) => onRowKeys(event, setFocused)}>
          {shown.map((operation, index) => (
            <Row
              key={operation.key}
              operation={operation}
              bins={bins}
              sort={sort}
              most={most}
              isDrawn={operation.key === drawn}
              isFocused={index === Math.min(focused, shown.length - 1)}
              actions={actions}
            />
          ))}
        </tbody>
      </table>
      {shown.length < rows.length && (
        <p className={list.more}>
          <button type="button" className={parts.button} onClick={() => setLimit(limit + ROWS_STEP)}>
            Show {formatCount(Math.min(ROWS_STEP, rows.length - shown.length))} more of {counted(rows.length, 'row')}
          </button>
        </p>
      )}
    </div>
  );
}
