import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Summary } from '../../api/types.gen';
import type { Nanos } from '../../base/brand';
import { changeInWords, differenceInWords, runBefore } from '../../logic/compare';
import { formatAge, unixMillis } from '../../logic/format';
import { recordingsQuery } from '../../state/queries';
import css from './recording.module.css';

/** How this run compares with the one of the same command before it, so that nobody has to search for that. */
export function RunBefore({ summary }: { readonly summary: Summary }) {
  const { recording, wallNanos, of } = summary;
  const isRun = of === 'command' || of === 'command_alone';
  // What ended before this run does not change.
  const { data } = useQuery({ ...recordingsQuery(), refetchInterval: false, enabled: isRun });
  const before = data === undefined || !isRun ? null : runBefore(data.recordings, recording);
  if (before === null) return null;
  const delta = (wallNanos - before.wallNanos) as Nanos;
  const percent = delta === 0 ? '' : ` (${changeInWords(delta, before.wallNanos)})`;
  return (
    <ul className={css.facts} aria-label="The run before">
      <li>
        <Link to="/compare" search={{ a: before.recording, b: recording }}>
          {differenceInWords(delta)} {before.recording}
          {percent}
        </Link>
        , the same command {formatAge(unixMillis(before.startUnixNano), Date.now())}
      </li>
    </ul>
  );
}
