import { useQuery } from '@tanstack/react-query';
import { Link, Navigate, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { ApiError } from '../../api/error';
import type { Exit, NanosRange, Recording } from '../../api/types.gen';
import type { Nanos } from '../../base/brand';
import { ratio } from '../../base/math';
import { contextOf, hasAnswer } from '../../logic/answer';
import {
  counted,
  formatAge,
  formatCommand,
  formatDuration,
  formatExit,
  formatRange,
  shortCommand,
  succeeded,
  unixMillis,
} from '../../logic/format';
import { shortName } from '../../logic/function-name';
import { matchingRecordings } from '../../logic/search';
import { recordingsQuery, useIsServer } from '../../state/queries';
import { CheckIcon, CloseIcon } from '../parts/icons';
import { isTyping } from '../parts/keyboard';
import list from '../parts/list.module.css';
import { Name } from '../parts/name';
import { Command, Failure, Notice, Skeleton } from '../parts/notice';
import { OpenFileButton } from '../parts/open-file';
import parts from '../parts/parts.module.css';
import { Topbar } from '../parts/topbar';
import css from './recordings.module.css';

/** The middle of a row: the answer, or why there is none. */
function AnswerLine({ recording }: { readonly recording: Recording }) {
  const { answer, wallNanos, notSealed } = recording;
  if (recording.state === 'recording') return <p className={css.answer}>still running: the answer appears when the run has ended</p>;
  if (notSealed !== null) return <p className={css.answer}>longpole could not finish this recording: {notSealed}. Open it to try again.</p>;
  if (answer === null && recording.state === 'killed')
    return <p className={css.answer}>longpole was killed while recording: open this recording to see what was saved</p>;
  if (answer === null) return <p className={css.answer}>no long pole: no operation spent time of its own on the critical path</p>;
  if (!hasAnswer(answer, wallNanos)) return <p className={css.answer}>speeding up one operation alone would not shorten this run</p>;
  const context = contextOf(answer);
  return (
    <p className={css.answer}>
      <strong>{answer.part === null ? answer.name : `${answer.name} › ${answer.part}`}</strong>
      {context !== null && ` in ${context}`} · <em>saves {formatRange(answer.savesIfZeroNanos)}</em>
      {answer.part === null && answer.wait !== null && ` · ${answer.wait}`}
      {answer.part === null && answer.wait === null && answer.function !== null && (
        <>
          {' '}
          · in <code title={answer.function}>{shortName(answer.function)}</code>
        </>
      )}
    </p>
  );
}

function ExitCell({ exit, state }: { readonly exit: Exit | null; readonly state: string }) {
  if (state === 'ended') return <span className={css.badge}>not finished</span>;
  if (state === 'killed') return <span className={css.badge}>longpole killed</span>;
  if (exit === null) return <span className={parts.muted}>{state === 'recording' ? 'running' : 'unknown'}</span>;
  const good = succeeded(exit);
  return (
    <span className={`${css.exit} ${good ? css.good : css.bad}`}>
      {good ? <CheckIcon /> : <CloseIcon />} {formatExit(exit)}
    </span>
  );
}

/** The share of the wall time that the answer would save: certain savings solid, possible ones hatched. */
function SavedPart({ saved, wallNanos }: { readonly saved: NanosRange; readonly wallNanos: Nanos }) {
  return (
    <span className={parts.savingBar} aria-hidden="true">
      <span className={parts.savingHigh} style={{ width: `${ratio(saved.high, wallNanos) * 100}%` }} />
      <span className={parts.savingLow} style={{ width: `${ratio(saved.low, wallNanos) * 100}%` }} />
    </span>
  );
}

function Row({ recording, nowMillis }: { readonly recording: Recording; readonly nowMillis: number }) {
  const started = unixMillis(recording.startUnixNano);
  return (
    <tr>
      <td>
        <Link to="/r/$rec" params={{ rec: recording.recording }} className={list.link}>
          {recording.recording}
        </Link>
      </td>
      <td>
        <code className={css.command} title={formatCommand(recording.command)}>
          <Name text={shortCommand(recording.command)} />
        </code>
        <AnswerLine recording={recording} />
      </td>
      <td className={list.number}>
        {recording.wallNanos > 0 ? formatDuration(recording.wallNanos) : '–'}
        {hasAnswer(recording.answer, recording.wallNanos) && (
          <SavedPart saved={recording.answer.savesIfZeroNanos} wallNanos={recording.wallNanos} />
        )}
      </td>
      <td className={css.columnExit}>
        <ExitCell exit={recording.exit} state={recording.state} />
      </td>
      <td className={`${list.number} ${css.columnSpans} ${parts.muted}`}>
        {recording.spans > 0 && counted(recording.spans, 'span')}
        {recording.spans > 0 && recording.samples > 0 && <br />}
        {recording.samples > 0 && counted(recording.samples, 'sample')}
        {recording.spans + recording.samples === 0 && '–'}
      </td>
      <td className={`${list.number} ${css.columnWhen} ${parts.muted}`}>
        <time dateTime={new Date(started).toISOString()} title={new Date(started).toLocaleString()}>
          {formatAge(started, nowMillis)}
        </time>
      </td>
    </tr>
  );
}

function Empty({ isServer }: { readonly isServer: boolean }) {
  if (isServer) {
    return (
      <div className={css.empty}>
        <h2>No recordings yet</h2>
        <p>
          Drop a trace, a profile or a <code>.lpole</code> file on this page, keep a trace with the button on its page, or send a run with
          its code from any machine:
        </p>
        <Command text={`longpole run --to ${window.location.origin} -- cargo build`} />
      </div>
    );
  }
  return (
    <div className={css.empty}>
      <h2>No recordings yet</h2>
      <p>
        Put <code>longpole run --</code> before any command. longpole records the spans of everything the command starts and samples its
        code, and says which operation holds up the rest, what fixing it saves, and which function is behind it.
      </p>
      <Command text="longpole run -- cargo build" />
      <p>It also reads traces and profiles of other tools: OpenTelemetry, Jaeger, Zipkin, pprof, perf.data, Pulumi.</p>
      <Command text="longpole import trace.json" />
      <p>What longpole can record on this machine, and how to make it record more:</p>
      <Command text="longpole doctor ./program" />
    </div>
  );
}

/** All recordings, each with its answer. */
export function RecordingsPage() {
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const { data: all, error, refetch, dataUpdatedAt } = useQuery(recordingsQuery());
  const isServer = useIsServer();
  const data = all?.recordings;
  const filter = useRef<HTMLInputElement>(null);

  useEffect(() => {
    document.title = 'longpole: recordings';
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || isTyping(event)) return;
      event.preventDefault();
      filter.current?.focus();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);

  // `longpole serve` has traces.
  if (error instanceof ApiError && error.code === 'traces_only') return <Navigate to="/search" replace />;
  const shown = data === undefined ? [] : matchingRecordings(data, q);
  return (
    <div className={list.page}>
      <Topbar />
      <main className={list.main}>
        <div className={css.head}>
          <h1>Recordings</h1>
          {data !== undefined && data.length > 0 && <p className={parts.muted}>{counted(data.length, 'recording')}, newest first</p>}
          <span className={css.spread} />
          {isServer && <OpenFileButton />}
          {data !== undefined && data.length > 0 && (
            <input
              ref={filter}
              className={css.filter}
              type="search"
              aria-label="Filter by handle, command or answer"
              placeholder="Filter   /"
              value={q}
              onChange={(event) => navigate({ to: '.', search: event.target.value === '' ? {} : { q: event.target.value }, replace: true })}
            />
          )}
        </div>
        {all !== undefined && all.damaged.length > 0 && (
          <Notice title={`${counted(all.damaged.length, 'recording')} cannot be listed:`}>{all.damaged.join('; ')}</Notice>
        )}
        <div className={list.list}>
          {error !== null && data === undefined && <Failure error={error} retry={() => refetch()} />}
          {error === null && data === undefined && <Skeleton lines={8} label="Loading recordings" />}
          {data !== undefined && data.length === 0 && <Empty isServer={isServer} />}
          {data !== undefined && data.length > 0 && shown.length === 0 && (
            <div className={css.empty}>
              <p>
                {data.length === 1 ? 'The only recording does not have' : `None of the ${counted(data.length, 'recording')} has`} “{q}” in
                its handle, command or answer.
              </p>
            </div>
          )}
          {shown.length > 0 && (
            <table className={list.table}>
              <thead>
                <tr>
                  <th className={css.columnHandle}>Handle</th>
                  <th>Command and long pole</th>
                  <th className={`${css.columnNumber} ${list.number}`}>Wall time</th>
                  <th className={css.columnExit}>Ended</th>
                  <th className={`${css.columnNumber} ${css.columnSpans} ${list.number}`}>Contents</th>
                  <th className={`${css.columnWhen} ${list.number}`}>When</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((recording) => (
                  <Row key={recording.recording} recording={recording} nowMillis={dataUpdatedAt} />
                ))}
              </tbody>
            </table>
          )}
        </div>
      </main>
    </div>
  );
}
