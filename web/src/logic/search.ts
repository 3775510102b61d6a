/** The filter of the list of recordings. */
import type { Recording } from '../api/types.gen';
import { formatCommand } from './format';

/** The recordings in whose handle, command or answer every word of the query occurs. */
export function matchingRecordings(recordings: readonly Recording[], query: string): readonly Recording[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return recordings.filter((recording) => {
    const { answer } = recording;
    const text = [recording.recording, formatCommand(recording.command), answer?.service, answer?.name, answer?.context, answer?.function]
      .join('\n')
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
