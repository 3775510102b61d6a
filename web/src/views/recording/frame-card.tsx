import { Toggle } from '@base-ui/react/toggle';
import { useQuery } from '@tanstack/react-query';
import { counted, formatDuration, formatShare } from '../../logic/format';
import { namedService } from '../../logic/span-words';
import { frameQuery } from '../../state/queries';
import type { SelectionActions } from '../../state/selection';
import { CloseIcon } from '../parts/icons';
import { Failure, Skeleton } from '../parts/notice';
import parts from '../parts/parts.module.css';
import { IconButton } from '../parts/tip';
import css from './recording.module.css';

/** The selected function and the spans that it ran in. */
export function FrameCard({
  recording,
  handle,
  whole,
  selectedSpan,
  showsSource,
  actions,
}: {
  readonly recording: string;
  readonly handle: string;
  /** What the recording is of: the word after `whole`. */
  readonly whole: string;
  readonly selectedSpan: string | null;
  /** Whether the page shows its source. */
  readonly showsSource: boolean;
  readonly actions: SelectionActions;
}) {
  const { data, error, refetch } = useQuery(frameQuery(recording, handle));
  if (error !== null) return <Failure error={error} retry={() => refetch()} />;
  if (data === undefined) return <Skeleton lines={3} label="Loading the function" />;
  return (
    <section className={css.frameCard} aria-label="Selected function">
      <div className={css.frameHead}>
        <h3>
          <code>{data.function}</code>
          <small>
            {data.handle}
            {data.file !== '' && ` · ${data.file}`} ·{' '}
            {data.samples === 0
              ? 'no on-CPU samples'
              : `on-CPU in the whole ${whole}: ${formatDuration(data.totalNanos)} total, ${formatDuration(data.selfNanos)} self, ${counted(data.samples, 'sample')}`}
            {data.waits > 0 && ` · blocked ${formatDuration(data.waitedNanos)}, ${counted(data.waits, 'wait')}`}
          </small>
        </h3>
        <IconButton label="Deselect the function" shortcut="Esc" onClick={() => actions.selectFrame(null)}>
          <CloseIcon />
        </IconButton>
      </div>
      <p>
        {data.spans.length === 0
          ? 'No sample or wait of a span or process contains this function.'
          : `It ran or waited in ${counted(data.spans.length + data.truncated.spans, 'span or process', 'spans and processes')}; each share is of its own samples, or of its own waits:`}
      </p>
      <ul className={css.frameSpans} aria-label="Spans with the function">
        {data.spans.map((span) => (
          <li key={span.handle}>
            <button
              type="button"
              aria-current={span.handle === selectedSpan}
              data-span-link={span.handle}
              onClick={() => actions.selectSpan(span.handle)}
            >
              <span className={css.muted}>{span.handle}</span>
              <span className={css.ellipsis} title={[namedService(span.service), span.name].filter((text) => text !== '').join(' · ')}>
                {span.name} <span className={css.muted}>{namedService(span.service)}</span>
              </span>
              <span className={css.meter} aria-hidden="true">
                <span style={{ width: `${(span.samples === 0 ? span.waitedShare : span.share) * 100}%` }} />
              </span>
              <span className={css.right}>
                {span.samples === 0 ? `blocked, ${formatShare(span.waitedShare)}` : formatShare(span.share)}{' '}
                <span className={css.muted}>{formatDuration(span.samples === 0 ? span.waitedNanos : span.totalNanos)}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {(data.truncated.spans > 0 || data.unlinkedSamples > 0) && (
        <p>
          {data.truncated.spans > 0 && `${counted(data.truncated.spans, 'more span')} not listed. `}
          {data.unlinkedSamples > 0 && `${counted(data.unlinkedSamples, 'sample')} of this function matched no span.`}
        </p>
      )}
      {data.file !== '' && (
        <div className={css.frameTools}>
          <Toggle
            className={parts.button}
            pressed={showsSource}
            onPressedChange={actions.showSource}
            title="show the time of each line below"
          >
            Source
          </Toggle>
        </div>
      )}
    </section>
  );
}
