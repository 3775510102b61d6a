import { useQuery } from '@tanstack/react-query';
import type { Summary, Thread } from '../../api/types.gen';
import { subjectInWords } from '../../logic/answer';
import { codeOfThread, nameOfThread, rangeInWords, threadsInWords, WHOLE } from '../../logic/excerpt';
import { counted, formatDuration } from '../../logic/format';
import { whyExcerptHasNoSamples } from '../../logic/no-samples';
import { longestWait, sumOfBlocked } from '../../logic/thread-words';
import { threadsQuery } from '../../state/queries';
import type { Selection } from '../../state/selection';
import { CloseIcon } from '../parts/icons';
import { Failure, Skeleton } from '../parts/notice';
import { IconButton } from '../parts/tip';
import { Code } from './code';
import css from './recording.module.css';

/** Threads in the table; the sentence above it counts all. */
const THREADS_MAX = 8;

/** A part of the selection, which a press takes away. */
function Chip({ text, label, onRemove }: { readonly text: string; readonly label: string; readonly onRemove: () => void }) {
  return (
    <button type="button" className={css.chip} title={label} onClick={onRemove}>
      {text} <span aria-hidden="true">✕</span>
    </button>
  );
}

function ThreadRow({ thread, selection }: { readonly thread: Thread; readonly selection: Selection }) {
  const { excerpt, actions } = selection;
  const isSelected = excerpt.thread === thread.tid;
  const wait = longestWait(thread);
  const code = codeOfThread(thread);
  return (
    <tr aria-current={isSelected}>
      <td>
        <button
          type="button"
          className={css.frameButton}
          aria-pressed={isSelected}
          title={`thread ${thread.tid} of ${thread.process} (${thread.pid})`}
          onClick={() => actions.selectExcerpt({ thread: isSelected ? null : thread.tid })}
        >
          {nameOfThread(thread)}
        </button>
        {code !== null && thread.function !== null && (
          <span className={css.sub}>
            mostly in{' '}
            <button
              type="button"
              className={css.codeLink}
              title={thread.function.function}
              onClick={() => actions.selectFrame(thread.function?.handle ?? null)}
            >
              {code}
            </button>
          </span>
        )}
      </td>
      <td className={css.number}>{formatDuration(thread.onCpuNanos)}</td>
      <td className={css.number}>{formatDuration(thread.readyNanos)}</td>
      <td className={css.number}>
        {formatDuration(sumOfBlocked(thread))}
        {wait !== null && <span className={css.sub}>{wait}</span>}
      </td>
    </tr>
  );
}

/** What happened in a selected range of time, or on a selected thread: the threads, and their code. */
export function ExcerptPanel({ selection, summary }: { readonly selection: Selection; readonly summary: Summary }) {
  const { recording, search, excerpt, actions } = selection;
  const { data, error, refetch } = useQuery(threadsQuery(recording, excerpt.range));
  const own = data?.threads.find(({ tid }) => tid === excerpt.thread);
  const title = own === undefined ? (excerpt.thread === null ? '' : `thread ${excerpt.thread}`) : nameOfThread(own);
  const shown = data?.threads.filter(({ rank, tid }) => rank < THREADS_MAX || tid === excerpt.thread) ?? [];
  const span = search.span ?? null;
  return (
    <>
      <div className={css.panelHead}>
        <div className={css.panelTitle}>
          <h2>{[excerpt.range === null ? '' : rangeInWords(excerpt.range), title].filter((word) => word !== '').join(' · ')}</h2>
          {data !== undefined && <p aria-live="polite">{threadsInWords(own === undefined ? data : { ...data, threads: [own] })}</p>}
          <p className={css.chips}>
            {excerpt.range !== null && (
              <Chip
                text={rangeInWords(excerpt.range)}
                label={`Show the whole ${subjectInWords(summary.of)}`}
                onRemove={() => actions.selectExcerpt({ range: null })}
              />
            )}
            {excerpt.thread !== null && (
              <Chip text={title} label="Show all threads" onRemove={() => actions.selectExcerpt({ thread: null })} />
            )}
            {span !== null && <Chip text={`in ${span}`} label="Show all spans" onRemove={() => actions.selectSpan(null)} />}
          </p>
        </div>
        <IconButton label="Deselect range and thread" shortcut="Esc" onClick={() => actions.selectExcerpt(WHOLE)}>
          <CloseIcon />
        </IconButton>
      </div>
      {error !== null && <Failure error={error} retry={() => refetch()} />}
      {error === null && data === undefined && <Skeleton lines={8} label="Loading the threads" />}
      {shown.length > 0 && (
        <section className={css.section} aria-label="Threads of the range">
          <table className={css.topFrames} aria-label="Threads, most CPU time first">
            <thead>
              <tr>
                <th>Thread</th>
                <th className={css.number} title="running on a CPU">
                  On-CPU
                </th>
                <th className={css.number} title="ready to run while others had the CPUs">
                  Runnable
                </th>
                <th className={css.number}>Blocked</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((thread) => (
                <ThreadRow key={`${thread.pid} ${thread.tid} ${thread.name}`} thread={thread} selection={selection} />
              ))}
            </tbody>
          </table>
          {data !== undefined && data.threads.length > shown.length && (
            <p className={css.remark}>{counted(data.threads.length - shown.length, 'more thread')}</p>
          )}
        </section>
      )}
      <Code
        selection={selection}
        span={span}
        spanId={null}
        spans={summary.spans}
        whole={subjectInWords(summary.of)}
        named={() => null}
        noSamples={(time) => whyExcerptHasNoSamples(summary, time, excerpt.thread !== null)}
      />
    </>
  );
}
