import type { Pole, Poles, QualityNote, Summary } from '../../api/types';
import { contextOf, isWorthwhile, reasonPieces, wallAfter } from '../../logic/answer';
import { counted, formatDuration, formatExit, formatPlace, formatRange, formatRangeInWords } from '../../logic/format';
import { shortName } from '../../logic/function-name';
import { graveNotes, titleOf } from '../../logic/quality';
import type { SelectionActions } from '../../state/selection';
import { Notice } from '../parts/notice';
import { StateBar } from '../parts/state-bar';
import css from './recording.module.css';

function Sentence({ pole, wallNanos }: { readonly pole: Pole | undefined; readonly wallNanos: Summary['wallNanos'] }) {
  if (pole === undefined) {
    return <h1 className={css.sentence}>This recording has no spans on a critical path, so there is no long pole to name.</h1>;
  }
  if (!isWorthwhile(pole.savesIfZero, wallNanos)) {
    return <h1 className={css.sentence}>Nothing alone would make this run shorter: what runs beside it takes as long.</h1>;
  }
  const context = contextOf(pole);
  const saved = pole.savesIfZero;
  return (
    <h1 className={css.sentence}>
      <strong>{pole.name}</strong>
      {context !== null && ` in ${context}`}
      {pole.count > 1 && ` (${counted(pole.count, 'span')})`} is the long pole: without it this run would end{' '}
      <em>{formatRangeInWords(saved)} earlier</em>, after {formatRange(wallAfter(saved, wallNanos))} instead of {formatDuration(wallNanos)}.
    </h1>
  );
}

function Why({ pole, actions }: { readonly pole: Pole; readonly actions: SelectionActions }) {
  const { before, frame, after } = reasonPieces(pole);
  return (
    <p className={css.why}>
      Why: {before}
      {frame !== null && (
        <button
          type="button"
          title={`${frame.function}\n${formatPlace(frame.file, frame.line)}`}
          onClick={() => actions.selectPole(pole, 0, frame.handle)}
        >
          {shortName(frame.function)}
        </button>
      )}
      {after}.{' '}
      {pole.evidence === 'declared'
        ? '◆ What it waited for is declared.'
        : '◇ What it waited for is inferred from order, so the saving is a range.'}
      {pole.fewSamples && pole.samples > 0 && ` Only ${counted(pole.samples, 'sample')}: shares are rough.`}
    </p>
  );
}

function Facts({ summary }: { readonly summary: Summary }) {
  return (
    <ul className={css.facts} aria-label="Facts">
      <li>
        <b>{formatDuration(summary.wallNanos)}</b> wall
      </li>
      {summary.cpuNanos !== null && (
        <li>
          <b>{formatDuration(summary.cpuNanos)}</b> CPU
        </li>
      )}
      <li>
        <b>{summary.exit === null ? 'end unknown' : formatExit(summary.exit)}</b>
      </li>
      <li>
        <b>{counted(summary.processes, 'process', 'processes')}</b>
      </li>
      <li>
        <b>{counted(summary.spans, 'span')}</b> in {counted(summary.traces, 'trace')}
      </li>
      <li>
        <b>{counted(summary.samples, 'sample')}</b>
        {summary.rateHz > 0 && ` at ${summary.rateHz} Hz`}
      </li>
      <li>
        <b>{summary.parallelism.mean.toFixed(1)}</b> in flight on average, <b>{summary.parallelism.peak}</b> at most
      </li>
      <li>on {summary.host}</li>
    </ul>
  );
}

/** The answer in one sentence, and the facts it rests on. */
export function AnswerHeader({
  summary,
  poles,
  notes,
  actions,
}: {
  readonly summary: Summary;
  readonly poles: Poles | undefined;
  readonly notes: readonly QualityNote[];
  readonly actions: SelectionActions;
}) {
  const pole = poles?.poles[0];
  const worthwhile = pole !== undefined && isWorthwhile(pole.savesIfZero, summary.wallNanos);
  return (
    <section className={css.answer} aria-label="Answer">
      <div>
        {poles !== undefined && <Sentence pole={pole} wallNanos={summary.wallNanos} />}
        {worthwhile && <Why pole={pole} actions={actions} />}
        <Facts summary={summary} />
      </div>
      <div className={css.pathStates}>
        <h2>Along the critical path, {formatDuration(summary.wallNanos)} of wall time</h2>
        <StateBar states={summary.states} />
      </div>
      {graveNotes(notes).length > 0 && (
        <div className={css.notices}>
          {graveNotes(notes).map((note) => (
            <Notice key={`${note.code} ${note.detail}`} title={note.detail === '' ? `${titleOf(note)}.` : `${titleOf(note)}:`}>
              {note.detail !== '' && `${note.detail}.`}
            </Notice>
          ))}
        </div>
      )}
    </section>
  );
}
