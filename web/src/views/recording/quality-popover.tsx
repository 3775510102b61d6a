import { Popover } from '@base-ui/react/popover';
import type { Quality, Summary } from '../../api/types.gen';
import { counted, formatBytes, formatDuration } from '../../logic/format';
import { linksInWords } from '../../logic/quality';
import { CheckIcon, WarnIcon } from '../parts/icons';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/** What is missing or uncertain in this recording, each with its cause. */
export function QualityPopover({ summary, notes }: { readonly summary: Summary; readonly notes: readonly Quality[] }) {
  // Without a profile there is a lot that nobody knows, and nothing that was lost.
  const good = notes.length === 0;
  const isProfiled = summary.samples > 0;
  return (
    <Popover.Root>
      <Popover.Trigger className={`${parts.button} ${good ? css.qualityGood : css.qualityButton}`}>
        {good ? isProfiled && <CheckIcon /> : <WarnIcon />}
        <span className={parts.toolLabel}>Data quality{good ? '' : `: ${counted(notes.length, 'note')}`}</span>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Positioner sideOffset={6} align="end">
          <Popover.Popup className={parts.popover}>
            <Popover.Title>Data quality</Popover.Title>
            {good && <p>No known gaps{isProfiled ? '' : ' in the spans; there are no samples of code'}.</p>}
            <ul>
              {notes.map((note) => (
                <li key={`${note.code} ${note.detail}`}>
                  <strong>{note.title}</strong>
                  {note.detail !== '' && <p>{note.detail}</p>}
                </li>
              ))}
            </ul>
            <h3>How samples are matched to spans</h3>
            <p>{linksInWords(summary.links, summary.spans)}</p>
            {summary.recorder !== null && (
              <>
                <h3>Cost of recording</h3>
                <p>
                  {formatDuration(summary.recorder.cpuNanos)} of CPU time, at most {formatBytes(summary.recorder.rssBytesMax)} of memory
                </p>
              </>
            )}
          </Popover.Popup>
        </Popover.Positioner>
      </Popover.Portal>
    </Popover.Root>
  );
}
