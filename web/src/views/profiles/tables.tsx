import { type ReactNode, useState } from 'react';
import type { FunctionChange, Profile, ProfileDiff, ProfileFunction } from '../../api/types.gen';
import { ratio } from '../../base/math';
import { counted, formatShare } from '../../logic/format';
import { changedFunctions, changeOfValue, formatOfUnit, formatPoints, pointsOf, shownFunctions } from '../../logic/profile-words';
import { ChangeAxis, ChangeBar } from '../parts/change-bar';
import list from '../parts/list.module.css';
import { Breakable } from '../parts/name';
import parts from '../parts/parts.module.css';
import css from './profiles.module.css';

/** Rows before a click. */
const ROWS_FIRST = 30;

/** What both tables need to select a function, and to show only what was searched for. */
interface Selecting {
  readonly selected: string | null;
  /** `null` where nothing can be selected. */
  readonly select: ((name: string | null) => void) | null;
  readonly matches: (name: string) => boolean;
}

function NameCell({
  name,
  selected,
  select,
  children,
}: { readonly name: string; readonly children?: ReactNode } & Omit<Selecting, 'matches'>) {
  const isSelected = name === selected;
  if (select === null) {
    return (
      <td title={name}>
        <Breakable text={name} />
        {children}
      </td>
    );
  }
  return (
    <td>
      <button
        type="button"
        className={css.function}
        aria-pressed={isSelected}
        title={name}
        onClick={() => select(isSelected ? null : name)}
      >
        <Breakable text={name} />
      </button>
      {children}
    </td>
  );
}

function Bar({ share }: { readonly share: number }) {
  return (
    <span className={`${list.meter} ${css.bar}`} aria-hidden="true">
      <span style={{ width: `${Math.min(1, Math.max(0, share)) * 100}%` }} />
    </span>
  );
}

/** The first rows, a button for the rest, and how many the server left out. */
function Rows<Row>({
  rows,
  omitted,
  columns,
  render,
}: {
  readonly rows: readonly Row[];
  readonly omitted: number;
  readonly columns: number;
  readonly render: (row: Row) => ReactNode;
}) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? rows : rows.slice(0, ROWS_FIRST);
  const rest = rows.length - shown.length;
  return (
    <tbody>
      {shown.map(render)}
      {rows.length === 0 && (
        <tr>
          <td colSpan={columns} className={parts.muted}>
            No function matches.
          </td>
        </tr>
      )}
      {(rest > 0 || omitted > 0) && (
        <tr>
          <td colSpan={columns} className={parts.muted}>
            {rest > 0 ? (
              <button type="button" className={parts.button} onClick={() => setWhole(true)}>
                Show all {counted(rows.length, 'function')}
              </button>
            ) : (
              `The server omits ${counted(omitted, 'more function')} with smaller values.`
            )}
          </td>
        </tr>
      )}
    </tbody>
  );
}

function Value({ value, profile }: { readonly value: number; readonly profile: Profile }) {
  const share = ratio(value, profile.total);
  if (value === 0) return <td className={`${list.number} ${parts.muted}`}>–</td>;
  return (
    <td className={list.number}>
      {formatOfUnit(profile.unit)(value)} <span className={css.share}>{formatShare(share)}</span>
      <Bar share={share} />
    </td>
  );
}

/** The functions, by what they had themselves or with what they called. */
export function FunctionsTable({
  profile,
  sort,
  order,
  ...selecting
}: {
  readonly profile: Profile;
  readonly sort: 'own' | 'total';
  readonly order: (sort: 'own' | 'total') => void;
} & Selecting) {
  const { selected, select, matches } = selecting;
  const columns = [
    ['own', 'Self', 'in the function itself'],
    ['total', 'Total', 'in the function and in what it called'],
  ] as const;
  return (
    <section className={css.section} aria-label="Functions">
      <h2>Functions</h2>
      <div className={list.list}>
        <table className={`${list.table} ${css.table}`}>
          <thead>
            <tr>
              <th>Function</th>
              {columns.map(([column, title, hint]) => (
                <th
                  key={column}
                  className={`${list.number} ${css.columnNumber}`}
                  aria-sort={column === sort ? 'descending' : undefined}
                  title={hint}
                >
                  <button type="button" className={list.sort} onClick={() => order(column)}>
                    {title}
                    <span aria-hidden="true">{column === sort ? ' ▼' : ''}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <Rows
            rows={shownFunctions(profile.functions, sort, matches)}
            omitted={profile.truncated}
            columns={3}
            render={(row: ProfileFunction) => (
              <tr key={row.function} aria-current={row.function === selected}>
                <NameCell name={row.function} selected={selected} select={select} />
                <Value value={row.own} profile={profile} />
                <Value value={row.total} profile={profile} />
              </tr>
            )}
          />
        </table>
      </div>
    </section>
  );
}

/** The self share of a function on one side, and its value. */
function Side({ change, side, unit }: { readonly change: FunctionChange; readonly side: 0 | 1; readonly unit: string }) {
  return (
    <td className={`${list.number} ${css.roomy}`}>
      {formatShare(change.ownShare[side])} <span className={css.value}>{formatOfUnit(unit)(change.own[side])}</span>
    </td>
  );
}

/** The functions whose self share changed, the largest change first. */
export function ChangesTable({
  diff,
  names,
  ...selecting
}: {
  readonly diff: Pick<ProfileDiff, 'functions' | 'truncated' | 'unit'>;
  readonly names: readonly [string, string];
} & Selecting) {
  const { selected, select, matches } = selecting;
  const largest = Math.max(0, ...diff.functions.map((change) => Math.abs(pointsOf(change))));
  return (
    <section className={css.section} aria-label="Changes">
      <h2>What changed</h2>
      <p className={css.note}>
        How much each function’s self share changed, in percentage points. If a service only has more to do, the shares stay the same.
      </p>
      <div className={list.list}>
        <table className={`${list.table} ${css.table}`}>
          <thead>
            <tr>
              <th>Function</th>
              <th className={`${list.number} ${css.columnPoints}`}>Change</th>
              <th className={css.columnBar}>
                <ChangeAxis less="less" more="more" />
              </th>
              {names.map((name) => (
                <th key={name} className={`${list.number} ${css.columnNumber} ${css.roomy}`}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <Rows
            rows={changedFunctions(diff.functions, matches)}
            omitted={diff.truncated}
            columns={5}
            render={(change: FunctionChange) => (
              <tr key={change.function} aria-current={change.function === selected}>
                <NameCell name={change.function} selected={selected} select={select}>
                  <p className={css.narrow}>
                    {formatShare(change.ownShare[0])} → {formatShare(change.ownShare[1])}
                  </p>
                </NameCell>
                <td className={list.number}>
                  <b>{formatPoints(pointsOf(change))}</b> <span className={css.value}>{changeOfValue(...change.own, diff.unit)}</span>
                </td>
                <td className={css.columnBar}>
                  <ChangeBar change={pointsOf(change)} largest={largest} />
                </td>
                <Side change={change} side={0} unit={diff.unit} />
                <Side change={change} side={1} unit={diff.unit} />
              </tr>
            )}
          />
        </table>
      </div>
    </section>
  );
}
