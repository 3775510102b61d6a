/** Words for what is missing or uncertain in a recording. */
import type { Links, Quality, Summary } from '../api/types.gen';
import { counted, formatCount } from './format';

const TITLES: Readonly<Record<string, string>> = {
  samples_lost: 'samples lost by the kernel',
  samples_throttled: 'times the kernel lowered the sampling rate',
  stacks_truncated: 'stacks deeper than the copied part',
  stacks_unwind_failed: 'stacks that failed to unwind',
  context_not_seen: 'samples whose context record is out of reach or of an unknown kind',
  context_torn: 'context records read during a write',
  context_disagrees: 'samples whose context record and journal name different spans',
  journal_gaps: 'journal entries overwritten before they were read',
  journals_refused: 'thread journals read in part or not at all',
  symbols_unreadable: 'binaries without readable symbols',
  profiling_refused: 'profiling was not allowed',
  requests_refused: 'requests refused or cut off',
  spans_never_arrived: 'spans that never arrived, known from thread records',
  spans_invalid: 'spans without a valid id',
  other_signals: 'metrics, logs and other data not kept',
  dropped_by_emitter: 'items that the program reports it dropped',
  spans_duplicate: 'spans received twice',
  forward_failed: 'spans and other items not forwarded to your targets',
  recorder_killed: 'the recorder was killed',
  wal_torn: 'the write-ahead log ends in a torn frame',
  wal_damaged: 'damaged places in the write-ahead log',
  not_written: 'observations that could not be written',
  clock_stepped: 'the clock was set during the run',
  drain_timed_out: 'connections still open when the run ended',
  references_invalid: 'parents and links with an invalid id',
  text_replaced: 'strings that were not UTF-8',
  attributes_cut: 'attributes cut from resources and scopes',
  environment: 'settings in your environment that affect spans',
  orphans: 'orphaned spans',
  cycles: 'cycles of parents',
  ends_clamped: 'spans that ended before they started',
  times_outside_run: 'spans with times far outside the run',
  clock_skew: 'spans that start before their parent',
  unfinished: 'run or processes without a recorded end',
  processes_untimed: 'processes without times',
  forks_folded: 'forks without a program of their own',
  duplicate_ids: 'span ids used twice',
  limited_slots: 'concurrency limits',
  kernel_time: 'kernel time, which is not sampled',
  cpu_busy: 'waited for a CPU',
  watched: 'polled through /proc only',
  resources_unmatched: 'Pulumi operations without a matching span',
  values_redacted: 'credentials removed',
  samples_untimed: 'samples without a time',
  weights_assumed: 'samples whose duration is assumed',
};

/** The title of a note; an unknown code becomes words. */
export function titleOf(note: Quality): string {
  return TITLES[note.code] ?? note.code.replaceAll('_', ' ');
}

/** All notes of a recording, each once: those of the summary, then those that only the tree has. */
export function allNotes(summary: Summary, treeNotes: readonly Quality[]): readonly Quality[] {
  const known = new Set(summary.quality.map((note) => note.code));
  return [...summary.quality, ...treeNotes.filter((note) => !known.has(note.code))];
}

const GRAVE: ReadonlySet<string> = new Set(['recorder_killed', 'profiling_refused', 'wal_torn', 'wal_damaged', 'not_written']);

/** Notes that affect every number of the page; the page shows them without a click. */
export function graveNotes(notes: readonly Quality[]): readonly Quality[] {
  return notes.filter((note) => GRAVE.has(note.code));
}

/** Number of samples in `links`. */
export function linkedSamples(links: Links): number {
  return links.record + links.journal + links.label + links.inferred + links.ambiguous + links.none;
}

/** How samples link to spans: `2,104 samples: 2,100 by the span’s own record, 4 inferred from process, thread and time`. */
export function linksInWords(links: Links): string {
  const total = linkedSamples(links);
  if (total === 0) return 'no samples';
  const parts: string[] = [];
  if (links.record > 0) parts.push(`${formatCount(links.record)} by the span’s own record`);
  if (links.journal > 0) parts.push(`${formatCount(links.journal)} by their thread’s journal`);
  if (links.label > 0) parts.push(`${formatCount(links.label)} by profile labels`);
  if (links.inferred > 0) parts.push(`${formatCount(links.inferred)} inferred from process, thread and time`);
  if (links.ambiguous > 0) parts.push(`${formatCount(links.ambiguous)} ambiguous`);
  if (links.none > 0) parts.push(`${formatCount(links.none)} in no span`);
  return `${counted(total, 'sample')}: ${parts.join(', ')}`;
}
