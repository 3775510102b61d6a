import { useQuery } from '@tanstack/react-query';
import { type CSSProperties, useEffect, useMemo, useRef } from 'react';
import type { Source } from '../../api/types.gen';
import { counted, formatDuration, formatPlace } from '../../logic/format';
import { type CostedLine, costedLines, hottestLine } from '../../logic/source-lines';
import { sourceQuery } from '../../state/queries';
import { CloseIcon } from '../parts/icons';
import { Failure, Skeleton } from '../parts/notice';
import { IconButton } from '../parts/tip';
import css from './source-dock.module.css';

/** A time in a column; a line without it is empty. */
function Time({ nanos }: { readonly nanos: number }) {
  return <td className={css.number}>{nanos > 0 && formatDuration(nanos)}</td>;
}

function Line({ line }: { readonly line: CostedLine }) {
  return (
    <tr data-line={line.line} className={line.followsGap ? css.gap : ''}>
      <td className={css.gutter} style={{ '--heat': line.heat } as CSSProperties}>
        {line.costNanos > 0 && formatDuration(line.costNanos)}
      </td>
      <Time nanos={line.selfNanos} />
      <Time nanos={line.totalNanos} />
      <Time nanos={line.waitedNanos} />
      <th scope="row" className={css.lineNumber}>
        {line.line}
      </th>
      <td>
        <code>{line.text}</code>
      </td>
    </tr>
  );
}

function Lines({ source }: { readonly source: Source }) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => costedLines(source), [source]);
  // The costliest line is what one comes for.
  useEffect(() => {
    const hottest = hottestLine(lines);
    const row = hottest === null ? null : box.current?.querySelector<HTMLElement>(`[data-line="${hottest}"]`);
    if (box.current === null || row === null || row === undefined) return;
    box.current.scrollTo({ top: row.offsetTop - box.current.clientHeight / 2, left: 0 });
  }, [lines]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach every scroll container
    <div ref={box} className={css.scroll} tabIndex={0} role="group" aria-label="Lines of the source">
      <table className={css.lines}>
        <thead>
          <tr>
            <th className={css.number} title="on a CPU there and in what it calls, and blocked there">
              Cost
            </th>
            <th className={css.number}>Self</th>
            <th className={css.number}>Total</th>
            <th className={css.number}>Blocked</th>
            <th className={css.number}>Line</th>
            <th>Source</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <Line key={line.line} line={line} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The source of the selected function with the cost of each line, over the whole width. It stays while another function is selected. */
export function SourceDock({
  recording,
  handle,
  onClose,
}: {
  readonly recording: string;
  readonly handle: string;
  readonly onClose: () => void;
}) {
  const { data, error, refetch } = useQuery(sourceQuery(recording, handle));
  const hasText = data?.lines.some(({ text }) => text !== null) === true;
  return (
    <section className={css.dock} aria-label="Source">
      <div className={css.head}>
        <h2>{data?.function ?? handle}</h2>
        {data !== undefined && <p title={data.path ?? undefined}>{formatPlace(data.file, 0)}</p>}
        <span className={css.spread} />
        <IconButton label="Close the source" onClick={onClose}>
          <CloseIcon />
        </IconButton>
      </div>
      {error !== null && <Failure error={error} retry={() => refetch()} />}
      {error === null && data === undefined && <Skeleton lines={6} label="Loading the source" />}
      {data !== undefined && data.detail !== null && <p className={css.detail}>{data.detail}</p>}
      {data !== undefined && data.lines.length > 0 && <Lines source={data} />}
      {data !== undefined && data.lines.length === 0 && data.detail === null && (
        <p className={css.detail}>No line of this function has time.</p>
      )}
      {data !== undefined && hasText && data.truncated > 0 && (
        <p className={css.detail}>{counted(data.truncated, 'line')} with less time not listed.</p>
      )}
    </section>
  );
}
