/** What a server has of the same spans elsewhere: the recordings of a trace, which have its code, and the received traces of a recording. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Recording } from '../../api/types.gen';
import { counted, shortCommand } from '../../logic/format';
import { isTrace, shortRecording } from '../../state/kept-trace';
import { recordingsOfTraceQuery, tracesOfRecordingQuery, useIsServer } from '../../state/queries';
import css from './recording.module.css';

/** Links that the head of a page shows. */
const SHOWN_MAX = 3;

/** The recordings with spans of a trace; none where the page is not one of a trace. */
function useRecordingsOfTrace(trace: string): readonly Recording[] {
  return useQuery({ ...recordingsOfTraceQuery(trace), enabled: isTrace(trace) }).data?.recordings ?? [];
}

/** The recording that has the code of a trace: the newest one with samples. */
function recordingWithCode(recordings: readonly Recording[]): Recording | undefined {
  return recordings.find(({ samples }) => samples > 0);
}

/** Where a span of a trace has its code, if a recording has it. */
export function CodeElsewhere({ trace, spanId }: { readonly trace: string; readonly spanId: string | null }) {
  const recording = recordingWithCode(useRecordingsOfTrace(trace));
  if (recording === undefined) return null;
  return (
    <p>
      <Link to="/r/$rec" params={{ rec: recording.recording }} search={spanId === null ? {} : { id: spanId }}>
        {spanId === null ? 'Code of this trace' : 'Code of this span'} in {recording.recording}
      </Link>
      , a recording of <code>{shortCommand(recording.command)}</code>
    </p>
  );
}

function OfTrace({ trace }: { readonly trace: string }) {
  const recordings = useRecordingsOfTrace(trace);
  if (recordings.length === 0) return null;
  const shown = recordings.slice(0, SHOWN_MAX);
  return (
    <ul className={css.facts} aria-label="Recordings of this trace">
      {shown.map(({ recording, command, samples }) => (
        <li key={recording}>
          {samples > 0 ? 'code in ' : 'without a profile in '}
          <Link to="/r/$rec" params={{ rec: recording }}>
            {recording}
          </Link>
          {samples > 0 && (
            <>
              {' '}
              <code>{shortCommand(command)}</code>
            </>
          )}
        </li>
      ))}
      {recordings.length > SHOWN_MAX && <li>and {recordings.length - SHOWN_MAX} more</li>}
    </ul>
  );
}

function OfRecording({ recording }: { readonly recording: string }) {
  const { data } = useQuery(tracesOfRecordingQuery(recording));
  const traces = data?.traces ?? [];
  if (traces.length === 0) return null;
  return (
    <ul className={css.facts} aria-label="Traces of this recording">
      {traces.slice(0, SHOWN_MAX).map(({ traceId, spans }) => (
        <li key={traceId}>
          <Link to="/r/$rec" params={{ rec: traceId }}>
            trace {shortRecording(traceId)}
          </Link>{' '}
          with the spans of all services ({counted(spans, 'span')})
        </li>
      ))}
      {traces.length > SHOWN_MAX && <li>and {traces.length - SHOWN_MAX} more</li>}
    </ul>
  );
}

/** Links to the same spans elsewhere on this server. */
export function Linked({ recording }: { readonly recording: string }) {
  const isServer = useIsServer();
  if (!isServer) return null;
  return isTrace(recording) ? <OfTrace trace={recording} /> : <OfRecording recording={recording} />;
}
