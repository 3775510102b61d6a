/** Words for what is missing or uncertain in a recording. */
import type { Links, Quality, Summary } from '../api/types.gen';
import { counted, formatCount } from './format';

const TITLES: Readonly<Record<string, string>> = {
  samples_lost: 'samples lost by the kernel',
  samples_throttled: 'sampling rate lowered by the kernel',
  stacks_truncated: 'stacks cut off because they were too deep to copy',
  stacks_unwind_failed: 'stacks that failed to unwind',
  context_not_seen: 'samples whose context record could not be read or is of an unknown kind',
  context_torn: 'context records read during a write',
  context_disagrees: 'samples whose context record and journal name different spans',
  journal_gaps: 'journal entries overwritten before they were read',
  journals_refused: 'journals of threads read only in part or not at all',
  symbols_unreadable: 'binaries without readable symbols',
  profiling_refused: 'profiling was not allowed',
  requests_refused: 'requests refused or cut off',
  spans_never_arrived: 'spans that never arrived, known from context records and journals',
  spans_invalid: 'spans without a valid id',
  other_signals: 'metrics, logs and other data not kept',
  dropped_by_emitter: 'items that the program reports it dropped',
  spans_duplicate: 'spans received twice',
  forward_failed: 'spans and other items not forwarded to your endpoints and files',
  recorder_killed: 'longpole was killed',
  wal_torn: 'the write-ahead log ends in a torn frame',
  wal_damaged: 'damaged places in the write-ahead log',
  not_written: 'observations that could not be written',
  clock_stepped: 'the clock was set during the run',
  drain_timed_out: 'connections still open when the run ended',
  references_invalid: 'parents and links with an invalid id',
  text_replaced: 'strings that were not UTF-8',
  attributes_cut: 'attributes cut from resources and scopes',
  environment: 'settings in your environment that affect spans',
  orphans: 'spans whose parent is not in the recording',
  cycles: 'loops of parents',
  ends_clamped: 'spans that ended before they started',
  spans_unfinished: 'spans whose end is missing',
  runs_apart: 'most of the time nothing ran',
  times_outside_run: 'spans with times far outside the run',
  clock_skew: 'spans that start before their parent',
  unfinished: 'the run, or processes, whose end was not recorded',
  processes_unsure: 'processes whose operation is unknown',
  processes_untimed: 'processes without times',
  forks_folded: 'forked processes that never started another program',
  duplicate_ids: 'span ids used twice',
  limited_slots: 'concurrency limits',
  waits_not_seen: 'waits not sampled',
  kernel_time: 'kernel time, which is not sampled',
  cpu_busy: 'time spent waiting for a CPU',
  watched: 'polled through /proc only',
  resources_unmatched: 'Pulumi operations without a matching span',
  resources_unfinished: 'Pulumi operations that had not ended',
  resources_unnamed: 'Pulumi calls that name no resource',
  values_redacted: 'credentials removed',
  samples_untimed: 'samples without a time',
  weights_assumed: 'samples whose duration is assumed',
};

/** The title of a note; an unknown code becomes words. */
export function titleOf(note: Quality): string {
  return TITLES[note.code] ?? note.code.replaceAll('_', ' ');
}

/** Notes about the run: their titles are no items that could be counted. */
const ABOUT_THE_RUN: ReadonlySet<string> = new Set([
  'profiling_refused',
  'recorder_killed',
  'wal_torn',
  'clock_stepped',
  'unfinished',
  'kernel_time',
  'cpu_busy',
  'watched',
  'runs_apart',
]);

/** The title of a note after the number of its items: `3 × samples lost by the kernel`. */
export function countedTitleOf(note: Quality): string {
  return note.count > 0 && !ABOUT_THE_RUN.has(note.code) ? `${formatCount(note.count)} × ${titleOf(note)}` : titleOf(note);
}

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

/** Number of samples in `links`. */
export function linkedSamples(links: Links): number {
  return links.record + links.journal + links.label + links.inferred + links.ambiguous + links.none;
}

/** How samples are matched to spans: `2,104 samples: 2,100 matched by context record, 4 matched by process, thread and time (inferred)`. */
export function linksInWords(links: Links): string {
  const total = linkedSamples(links);
  if (total === 0) return 'no samples';
  const parts: string[] = [];
  if (links.record > 0) parts.push(`${formatCount(links.record)} matched by context record`);
  if (links.journal > 0) parts.push(`${formatCount(links.journal)} matched by journal`);
  if (links.label > 0) parts.push(`${formatCount(links.label)} matched by profile labels`);
  if (links.inferred > 0) parts.push(`${formatCount(links.inferred)} matched by process, thread and time (inferred)`);
  if (links.ambiguous > 0) parts.push(`${formatCount(links.ambiguous)} ambiguous`);
  if (links.none > 0) parts.push(`${formatCount(links.none)} not matched`);
  return `${counted(total, 'sample')}: ${parts.join(', ')}`;
}
