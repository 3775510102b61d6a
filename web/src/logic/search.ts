/** Filters of lists. */
import type { Recording } from '../api/types.gen';
import { formatCommand } from './format';

/** Whether a text has all words of a search, in any case. */
export function matcherOf(query: string): (text: string) => boolean {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}

/** The recordings in whose handle, command or answer every word of the query occurs. */
export function matchingRecordings(recordings: readonly Recording[], query: string): readonly Recording[] {
  const matches = matcherOf(query);
  return recordings.filter((recording) => {
    const { answer } = recording;
    const texts = [recording.recording, formatCommand(recording.command), answer?.service, answer?.name, answer?.context, answer?.function];
    return matches(texts.join('\n'));
  });
}
