import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { CodeDiff, Diff, OperationDiff, Recording } from '../../api/types.gen';
import {
  changeInWords,
  differenceInWords,
  fateInWords,
  largestChange,
  nameOfOperation,
  placeAmongRuns,
  runsOfCommand,
  sampledInWords,
  signedDuration,
  stateInWords,
} from '../../logic/compare';
import { counted, formatAge, formatDuration, shortCommand, unixMillis } from '../../logic/format';
import { diffQuery, recordingsQuery } from '../../state/queries';
import { ChangeAxis, ChangeBar } from '../parts/change-bar';
import list from '../parts/list.module.css';
import { Name } from '../parts/name';
import { Command, Failure, Notice, Skeleton } from '../parts/notice';
import parts from '../parts/parts.module.css';
import { Topbar } from '../parts/topbar';
import { ChangesTable } from '../profiles/tables';
import css from './compare.module.css';

const route = getRouteApi('/compare');

/** Time on the path in one of the runs, which leads to its longest span. */
function Side({ recording, side }: { readonly recording: string; readonly side: OperationDiff['a'] }) {
  if (side.handle === null) return <span className={parts.muted}>–</span>;
  return (
    <Link to="/r/$rec" params={{ rec: recording }} search={{ span: side.handle }} title={`${side.handle} of ${recording}`}>
      {formatDuration(side.onPathNanos)}
    </Link>
  );
}

function Operations({ diff }: { readonly diff: Diff }) {
  const largest = largestChange(diff);
  return (
    <table className={list.table}>
      <thead>
        <tr>
          <th>Operation</th>
          <th
            className={`${css.columnChange} ${list.number}`}
            title="change of the time on the critical path; all changes add up to the difference"
          >
            Change on path
          </th>
          <th className={css.columnBar}>
            <ChangeAxis less="shorter" more="longer" />
          </th>
          <th className={`${css.columnTime} ${list.number}`}>{diff.a.recording}</th>
          <th className={`${css.columnTime} ${list.number}`}>{diff.b.recording}</th>
        </tr>
      </thead>
      <tbody>
        {diff.operations.map((operation) => (
          <tr key={`${operation.service} ${operation.name} ${operation.resource}`}>
            <td>
              <strong className={css.name}>
                <Name text={nameOfOperation(operation, diff.operations)} />
              </strong>{' '}
              <span className={parts.muted}>{fateInWords(operation)}</span>
              <p className={css.narrow}>
                {formatDuration(operation.a.onPathNanos)} → {formatDuration(operation.b.onPathNanos)}
              </p>
              {operation.states.length > 0 && <p className={css.why}>{operation.states.map(stateInWords).join(', ')}</p>}
            </td>
            <td className={list.number}>
              <b>{signedDuration(operation.deltaNanos)}</b>
            </td>
            <td className={css.wide}>
              <ChangeBar change={operation.deltaNanos} largest={largest} />
            </td>
            <td className={`${css.wide} ${list.number}`}>
              <Side recording={diff.a.recording} side={operation.a} />
            </td>
            <td className={`${css.wide} ${list.number}`}>
              <Side recording={diff.b.recording} side={operation.b} />
            </td>
          </tr>
        ))}
        {diff.truncated.operations > 0 && (
          <tr>
            <td className={parts.muted}>{counted(diff.truncated.operations, 'smaller change')}, together</td>
            <td className={list.number}>
              <b>{signedDuration(diff.truncated.deltaNanos)}</b>
            </td>
            <td className={css.wide}>
              <ChangeBar change={diff.truncated.deltaNanos} largest={largest} />
            </td>
            <td className={css.wide} />
            <td className={css.wide} />
          </tr>
        )}
        <tr className={css.sum}>
          <td>The run</td>
          <td className={list.number}>
            <b>{signedDuration(diff.deltaNanos)}</b>
          </td>
          <td className={css.wide} />
          <td className={`${css.wide} ${list.number}`}>{formatDuration(diff.a.wallNanos)}</td>
          <td className={`${css.wide} ${list.number}`}>{formatDuration(diff.b.wallNanos)}</td>
        </tr>
      </tbody>
    </table>
  );
}

/** The second recording beside the first, in a sentence. */
function Headline({
  diff: { a, b },
  verb,
  nanos: [before, after],
  of = '',
  inWords,
}: {
  readonly diff: Diff;
  readonly verb: string;
  readonly nanos: readonly [number, number];
  readonly of?: string;
  readonly inWords: (delta: number) => string;
}) {
  const delta = after - before;
  return (
    <h1>
      <Link to="/r/$rec" params={{ rec: b.recording }}>
        {b.recording}
      </Link>{' '}
      {verb} <strong>{formatDuration(after)}</strong>
      {of}: <em className={delta > 0 ? css.isLonger : css.isShorter}>{inWords(delta)}</em>{' '}
      <Link to="/r/$rec" params={{ rec: a.recording }}>
        {a.recording}
      </Link>
      {delta !== 0 && before > 0 && ` (${changeInWords(delta, before)})`}
    </h1>
  );
}

/** What changed in the samples of two recordings, if one of them is a profile. */
function CodeComparison({ diff, code }: { readonly diff: Diff; readonly code: CodeDiff }) {
  const { a, b, notes } = diff;
  return (
    <>
      <div className={css.head}>
        <Headline diff={diff} verb="has" nanos={code.sampledNanos} of=" in samples" inWords={sampledInWords} />
        {notes.map((note) => (
          <Notice key={note} title={note} />
        ))}
      </div>
      {code.functions.length === 0 ? (
        <p className={css.same}>No function differs.</p>
      ) : (
        <ChangesTable
          diff={{ functions: code.functions, truncated: code.truncated, unit: 'nanoseconds' }}
          names={[a.recording, b.recording]}
          selected={null}
          select={null}
          matches={() => true}
        />
      )}
      <p className={`${parts.muted} ${css.below}`}>The same comparison in the terminal:</p>
      <Command text={`longpole diff ${a.recording} ${b.recording}`} />
    </>
  );
}

/** Another recording to compare with. */
function Choice({ recordings, a, b }: { readonly recordings: readonly Recording[]; readonly a: string; readonly b: string }) {
  const navigate = useNavigate();
  const others = recordings.filter(({ recording, wallNanos }) => recording !== b && wallNanos > 0);
  if (others.length < 2) return null;
  return (
    <label className={parts.muted}>
      compare with{' '}
      <select className={css.choice} value={a} onChange={(event) => navigate({ to: '/compare', search: { a: event.target.value, b } })}>
        {others.map(({ recording, command, wallNanos }) => (
          <option key={recording} value={recording}>
            {recording} {shortCommand(command).slice(0, 60)} ({formatDuration(wallNanos)})
          </option>
        ))}
      </select>
    </label>
  );
}

/** The wall times of all runs of the command: whether a difference is more than chance. */
function Runs({ runs, a, b }: { readonly runs: readonly Recording[]; readonly a: string; readonly b: string }) {
  const navigate = useNavigate();
  if (runs.length < 3) return null;
  const most = Math.max(...runs.map(({ wallNanos }) => wallNanos as number));
  const now = Date.now();
  return (
    <section className={css.runs} aria-label="Runs of this command">
      <h2>{counted(runs.length, 'run')} of this command</h2>
      <p className={parts.muted}>
        {placeAmongRuns(runs, b)}. Select one to compare {b} with it.
      </p>
      <ol className={css.strip}>
        {runs.map(({ recording, wallNanos, startUnixNano }) => (
          <li key={recording}>
            <button
              type="button"
              className={css.run}
              aria-current={recording === a || recording === b}
              disabled={recording === b}
              title={`${recording}, ${formatAge(unixMillis(startUnixNano), now)}: ${formatDuration(wallNanos)}`}
              onClick={() => navigate({ to: '/compare', search: { a: recording, b } })}
            >
              <span
                className={css.column}
                style={{ height: `${most > 0 ? Math.max(6, (wallNanos / most) * 100) : 6}%` }}
                aria-hidden="true"
              />
              <span>{recording}</span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Comparison({ diff, recordings }: { readonly diff: Diff; readonly recordings: readonly Recording[] }) {
  const { a, b, code } = diff;
  if (code !== null) return <CodeComparison diff={diff} code={code} />;
  const runs = runsOfCommand(recordings, b.recording);
  return (
    <>
      <div className={css.head}>
        <Headline diff={diff} verb="took" nanos={[a.wallNanos, b.wallNanos]} inWords={differenceInWords} />
        <p className={parts.muted}>
          <code>{shortCommand(b.command)}</code>
        </p>
        {diff.verdict !== null && <p>{diff.verdict}</p>}
        <Choice recordings={recordings} a={a.recording} b={b.recording} />
        {diff.notes.map((note) => (
          <Notice key={note} title={note} />
        ))}
      </div>
      <Runs runs={runs} a={a.recording} b={b.recording} />
      <div className={list.list}>
        {diff.operations.length === 0 && diff.truncated.operations === 0 ? (
          <p className={css.same}>No operation on the critical paths differs.</p>
        ) : (
          <Operations diff={diff} />
        )}
      </div>
      <p className={`${parts.muted} ${css.below}`}>
        All changes add up to the difference between the runs.
        {runs.length < 3 && ' Two runs of one command also differ by chance; record another run to see by how much.'} The same comparison in
        the terminal:
      </p>
      <Command text={`longpole diff ${a.recording} ${b.recording}`} />
    </>
  );
}

/** Why one run took longer than another one of the same command, or shorter. */
export function ComparePage() {
  const { a = '', b = '' } = route.useSearch();
  const { data: diff, error, refetch } = useQuery(diffQuery(a, b));
  const recordings = useQuery(recordingsQuery()).data?.recordings ?? [];
  useEffect(() => {
    document.title = `${b} compared with ${a} – longpole`;
  }, [a, b]);
  return (
    <div className={list.page}>
      <Topbar>
        <span aria-hidden="true">›</span>
        <strong>
          {a} → {b}
        </strong>
      </Topbar>
      <main className={list.main}>
        {error !== null && diff === undefined && <Failure error={error} retry={() => refetch()} isPage />}
        {error === null && diff === undefined && <Skeleton lines={12} label="Comparing the recordings" />}
        {diff !== undefined && <Comparison diff={diff} recordings={recordings} />}
      </main>
    </div>
  );
}
