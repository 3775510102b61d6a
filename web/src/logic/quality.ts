/** Words for what is missing or uncertain in a recording. */
import type { Links, Quality, Summary } from '../api/types.gen';
import { counted, formatCount } from './format';

/** All notes of a recording, each once: those of the summary, then those that only the tree has. */
export function allNotes(summary: Summary, treeNotes: readonly Quality[]): readonly Quality[] {
  const known = new Set(summary.quality.map((note) => note.code));
  return [...summary.quality, ...treeNotes.filter((note) => !known.has(note.code))];
}

const GRAVE: ReadonlySet<string> = new Set([
  'recorder_killed',
  'profiling_refused',
  'wal_torn',
  'wal_damaged',
  'not_written',
  'runs_apart',
]);

/** Notes that affect every number of the page; the page shows them without a click. */
export function graveNotes(notes: readonly Quality[]): readonly Quality[] {
  return notes.filter((note) => GRAVE.has(note.code));
}

/** The number of forks that count as their parent: they are processes, and no rows of the trace. */
export function foldedForks(summary: Summary): number {
  return summary.quality.find((note) => note.code === 'forks_folded')?.count ?? 0;
}

/** Number of samples in `links`. */
export function linkedSamples(links: Links): number {
  return links.record + links.journal + links.label + links.inferred + links.ambiguous + links.none;
}

/**
 * How samples are matched to spans: `2,104 samples: 2,100 matched exactly (the thread named its span), 4 matched by process, thread and time (inferred)`. `spans` is
 * the number of spans in the recording: without any, samples belong to processes.
 */
export function linksInWords(links: Links, spans: number): string {
  const total = linkedSamples(links);
  if (total === 0) return 'no samples';
  if (spans === 0) return `${counted(total, 'sample')}, linked to processes: there are no spans`;
  const parts: string[] = [];
  if (links.record > 0) parts.push(`${formatCount(links.record)} matched exactly (the thread named its span)`);
  if (links.journal > 0) parts.push(`${formatCount(links.journal)} matched exactly (the thread’s journal of spans)`);
  if (links.label > 0) parts.push(`${formatCount(links.label)} matched by profile labels`);
  if (links.inferred > 0) parts.push(`${formatCount(links.inferred)} matched by process, thread and time (inferred)`);
  if (links.ambiguous > 0) parts.push(`${formatCount(links.ambiguous)} ambiguous`);
  if (links.none > 0) parts.push(`${formatCount(links.none)} not matched`);
  return `${counted(total, 'sample')}: ${parts.join(', ')}`;
}
