/** What is missing or unsure in a recording, in words. */
import type { QualityNote, SampleLinks, Summary } from '../api/types';
import { counted, formatCount } from './format';

const TITLES: Readonly<Record<string, string>> = {
  samples_lost: 'samples lost by the kernel',
  samples_throttled: 'times the kernel lowered the sampling rate',
  stacks_truncated: 'stacks deeper than what was copied',
  stacks_unwind_failed: 'stacks that could not be unwound',
  context_not_seen: 'samples whose context record is out of reach, or of a kind that is not known',
  context_torn: 'context records caught in the middle of a write',
  context_disagrees: 'samples whose context record and journal name different spans',
  journal_gaps: 'entries of journals that were overwritten unread',
  journals_refused: 'journals of threads that were not read, or not to their end',
  symbols_unreadable: 'binaries without readable symbols',
  profiling_refused: 'profiling was refused',
  requests_refused: 'requests refused or cut off',
  spans_never_arrived: "spans known from their threads' records that never arrived",
  spans_invalid: 'spans without a valid id',
  other_signals: 'metrics and log records received and not kept',
  dropped_by_emitter: 'items the program says it dropped itself',
  spans_duplicate: 'spans received twice',
  forward_failed: 'spans and other items not handed on to your own targets',
  recorder_killed: 'the recorder was killed',
  wal_torn: 'the write-ahead log ends in a torn frame',
  wal_damaged: 'places in the write-ahead log that are damaged',
  not_written: 'things seen that could not be written',
  clock_stepped: 'the clock was set during the run',
  drain_timed_out: 'connections still open when the run ended',
  references_invalid: 'parents and links that name no valid id',
  text_replaced: 'texts that were not UTF-8',
  attributes_cut: 'attributes of resources and scopes cut',
  environment: 'your own settings of the exporter were kept',
  orphans: 'orphaned spans',
  cycles: 'cycles of parents',
  ends_clamped: 'spans that ended before they began',
  times_outside_run: 'spans that say times far away from the run',
  clock_skew: 'spans that start before their parent',
  unfinished: 'pieces of work whose end was not seen',
  processes_untimed: 'processes without times',
  forks_folded: 'forks without a program of their own',
  duplicate_ids: 'span ids used twice',
  limited_slots: 'limits of work in flight',
  kernel_time: 'time in the kernel, which is not sampled',
  cpu_busy: 'waited for a CPU',
  watched: 'known by looks at /proc only',
  resources_unmatched: 'operations of Pulumi without a call among the spans',
  values_redacted: 'credentials taken out',
  samples_untimed: 'samples without a time',
  weights_assumed: 'samples whose length is assumed',
};

/** A note in words; a code this page does not know is shown as it is. */
export function titleOf(note: QualityNote): string {
  return TITLES[note.code] ?? note.code.replaceAll('_', ' ');
}

/** All notes of a recording, each once: those of the summary, then what only the tree knows. */
export function allNotes(summary: Summary, treeNotes: readonly QualityNote[]): readonly QualityNote[] {
  const known = new Set(summary.quality.map((note) => note.code));
  return [...summary.quality, ...treeNotes.filter((note) => !known.has(note.code))];
}

const GRAVE: ReadonlySet<string> = new Set(['recorder_killed', 'profiling_refused', 'wal_torn', 'wal_damaged', 'not_written']);

/** Notes that change how every number of the page has to be read, and are therefore said in the open. */
export function graveNotes(notes: readonly QualityNote[]): readonly QualityNote[] {
  return notes.filter((note) => GRAVE.has(note.code));
}

/** Number of samples that stand behind `links`. */
export function linkedSamples(links: SampleLinks): number {
  return links.record + links.journal + links.label + links.inferred + links.ambiguous + links.none;
}

/** How the samples were tied to their spans: `2,104 samples: 2,100 by record, 4 inferred`. */
export function linksInWords(links: SampleLinks): string {
  const total = linkedSamples(links);
  if (total === 0) return 'no samples';
  const parts: string[] = [];
  if (links.record > 0) parts.push(`${formatCount(links.record)} by the span’s own record`);
  if (links.journal > 0) parts.push(`${formatCount(links.journal)} by the journal of their thread`);
  if (links.label > 0) parts.push(`${formatCount(links.label)} by labels of the profile`);
  if (links.inferred > 0) parts.push(`${formatCount(links.inferred)} inferred from process, thread and time`);
  if (links.ambiguous > 0) parts.push(`${formatCount(links.ambiguous)} ambiguous`);
  if (links.none > 0) parts.push(`${formatCount(links.none)} in no span`);
  return `${counted(total, 'sample')}: ${parts.join(', ')}`;
}
