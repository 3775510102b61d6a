import { useMemo } from 'react';
import type { Deployment, Pole, Poles, Quality, Summary, Tree } from '../../api/types.gen';
import { ratio } from '../../base/math';
import { contextOf, evidenceInWords, isAllOfIt, isWorthwhile, nameOfPole, wallAfter, wholeInWords } from '../../logic/answer';
import { deploymentParts } from '../../logic/deployment';
import {
  counted,
  formatCount,
  formatDuration,
  formatExit,
  formatMean,
  formatRange,
  formatRangeInWords,
  formatShare,
} from '../../logic/format';
import { wasSampled } from '../../logic/no-samples';
import { mainOperation, tailOf, titleOfOperation } from '../../logic/operations';
import { foldedForks, graveNotes } from '../../logic/quality';
import type { SelectionActions } from '../../state/selection';
import { Breakable } from '../parts/name';
import { Notice } from '../parts/notice';
import { StateBar } from '../parts/state-bar';
import { Linked } from './linked';
import css from './recording.module.css';
import { RunBefore } from './run-before';
import { Why } from './why';

/** Maximum number of wait kinds in the header; the bar has all. */
const KINDS_MAX = 3;

/** The subject of the sentence: the pole's name, with the number of spans where there are several. */
function PoleSubject({ pole }: { readonly pole: Pole }) {
  return (
    <>
      {pole.count > 1 && `The ${formatCount(pole.count)} `}
      <strong>
        <Breakable text={nameOfPole(pole)} />
      </strong>
    </>
  );
}

function Sentence({ pole, summary }: { readonly pole: Pole | undefined; readonly summary: Summary }) {
  const { wallNanos } = summary;
  if (summary.of === 'command_alone') {
    return <h1 className={css.sentence}>Nothing to rank: no spans arrived, and there is no profile.</h1>;
  }
  if (pole === undefined) {
    return <h1 className={css.sentence}>No long pole: no span or process spent time of its own on the critical path.</h1>;
  }
  if (!isWorthwhile(pole.savesIfZeroNanos, wallNanos)) {
    return (
      <h1 className={css.sentence}>
        Speeding up one operation alone would not shorten this {wholeInWords(summary.of)}: parallel work takes as long.
      </h1>
    );
  }
  const context = contextOf(pole);
  const saved = pole.savesIfZeroNanos;
  if (isAllOfIt(saved, wallNanos)) {
    return (
      <h1 className={css.sentence}>
        <PoleSubject pole={pole} />
        {pole.count > 1 ? ` ${summary.spans === 0 ? 'processes' : 'spans'} take` : ' takes'} all of this {wholeInWords(summary.of)}:{' '}
        {formatDuration(wallNanos)}.
      </h1>
    );
  }
  return (
    <h1 className={css.sentence}>
      <PoleSubject pole={pole} />
      {pole.count > 1 && (summary.spans === 0 ? ' processes' : ' spans')}
      {context !== null && (
        <>
          {' in '}
          <Breakable text={context} />
        </>
      )}
      {pole.count > 1
        ? ` are the long pole: without them this ${wholeInWords(summary.of)} would be `
        : ` is the long pole: without it this ${wholeInWords(summary.of)} would be `}
      <em>{formatRangeInWords(saved)} shorter</em>: {formatRange(wallAfter(saved, wallNanos))} instead of {formatDuration(wallNanos)}.
    </h1>
  );
}

/** How long the operation takes in which the traces spend most of their time. */
function ManyTraces({ summary, tree }: { readonly summary: Summary; readonly tree: Tree | undefined }) {
  const main = useMemo(() => (tree === undefined ? null : mainOperation(tree)), [tree]);
  const tail = main === null ? null : tailOf(main);
  return (
    <>
      <h1 className={css.sentence}>
        <strong>{counted(summary.traces, 'trace')}</strong>
        {main !== null && tail !== null && (
          <>
            ; {tail.label} of{' '}
            <strong>
              <Breakable text={titleOfOperation(main)} />
            </strong>{' '}
            is <em>{formatDuration(tail.nanos)}</em>
          </>
        )}
        .
      </h1>
      <p className={css.why}>Each trace ends on its own, so no long pole delays them all: compare their operations.</p>
    </>
  );
}

/** The function of a profile with the most time in itself. */
function HottestFunction({ summary }: { readonly summary: Summary }) {
  const [first] = summary.functions;
  if (first === undefined) return <h1 className={css.sentence}>This profile has no functions.</h1>;
  return (
    <h1 className={css.sentence}>
      <strong>
        <Breakable text={first.function} />
      </strong>{' '}
      has the most time in itself: {formatDuration(first.selfNanos)} of {formatDuration(summary.weightNanos)},{' '}
      <em>{formatShare(ratio(first.selfNanos, summary.weightNanos))}</em>.
    </h1>
  );
}

function Reason({ pole, poles, actions }: { readonly pole: Pole; readonly poles: Poles; readonly actions: SelectionActions }) {
  return (
    <p className={css.why}>
      Why: <Why pole={pole} poles={poles} actions={actions} />. {evidenceInWords(pole)}
    </p>
  );
}

function Facts({ summary }: { readonly summary: Summary }) {
  const forks = foldedForks(summary);
  const operations = summary.spans === 0 ? 'processes' : 'operations';
  const { of, exit } = summary;
  if (of === 'profile') {
    return (
      <ul className={css.facts} aria-label="Facts">
        {summary.wallNanos > 0 && (
          <li>
            <b>{formatDuration(summary.wallNanos)}</b> wall
          </li>
        )}
        <li>
          <b>{formatDuration(summary.weightNanos)}</b> in samples
        </li>
        <li>
          <b>{counted(summary.samples, 'sample')}</b>
        </li>
      </ul>
    );
  }
  const hasCommand = of === 'command' || of === 'command_alone';
  const hasFailed = exit !== null && (exit.code !== 0 || exit.signal !== null);
  return (
    <ul className={css.facts} aria-label="Facts">
      {hasFailed && (
        <li>
          <b className={css.failed}>✕ {formatExit(exit)}</b>
        </li>
      )}
      <li>
        <b>{formatDuration(summary.wallNanos)}</b> wall
      </li>
      {summary.cpuNanos !== null && (
        <li>
          <b>{formatDuration(summary.cpuNanos)}</b> CPU
        </li>
      )}
      {hasCommand && !hasFailed && (
        <li>
          <b>{exit === null ? 'exit unknown' : formatExit(exit)}</b>
        </li>
      )}
      {summary.processes > 0 && (
        <li title={forks > 0 ? 'Forks that ran no program of their own are counted as part of their parent.' : undefined}>
          <b>{counted(summary.processes - forks, 'process', 'processes')}</b>
          {forks > 0 && ` and ${counted(forks, 'fork')}`}
        </li>
      )}
      <li>
        {summary.spans === 0 ? (
          'no spans'
        ) : (
          <>
            <b>{counted(summary.spans, 'span')}</b> in {counted(summary.traces, 'trace')}
          </>
        )}
      </li>
      {summary.rateHz > 0 && (
        <li>
          <b>{counted(summary.samples, 'sample')}</b> at {summary.rateHz} Hz
        </li>
      )}
      {of !== 'command_alone' && (
        <li>
          <b>{formatMean(summary.parallelism.mean)}</b> {operations} at once on average, <b>{summary.parallelism.peak}</b> at peak
          {summary.cpuNanos !== null && summary.wallNanos > 0 && (
            <>
              , <b>{formatMean(ratio(summary.cpuNanos, summary.wallNanos))}</b> CPUs used
            </>
          )}
        </li>
      )}
      {summary.host !== '' && <li>on {summary.host}</li>}
    </ul>
  );
}

/** Noteworthy usage of processes. */
function NotableUsage({ notable, actions }: { readonly notable: Summary['usage']; readonly actions: SelectionActions }) {
  if (notable.length === 0) return null;
  return (
    <ul className={css.facts} aria-label="Memory and storage">
      {notable.map(({ text, handle }) => (
        <li key={text}>
          {text}
          {handle !== null && (
            <>
              {' '}
              <button type="button" className={css.linkButton} onClick={() => actions.selectSpan(handle)}>
                {handle}
              </button>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Where the time of a deployment went. */
function DeploymentTime({ deployment, wallNanos }: { readonly deployment: Deployment; readonly wallNanos: Summary['wallNanos'] }) {
  return (
    <ul className={`${css.facts} ${css.deployment}`} aria-label="Time of the deployment">
      <li>pulumi</li>
      {deploymentParts(deployment, wallNanos).map(({ label, explanation, nanos, share }) => (
        <li key={label} title={`${formatDuration(nanos)} of the critical path: ${explanation}`}>
          <b>{formatShare(share)}</b> {label}
        </li>
      ))}
    </ul>
  );
}

/** The answer in one sentence, and the facts behind it. */
export function AnswerHeader({
  summary,
  poles,
  tree,
  notes,
  actions,
}: {
  readonly summary: Summary;
  readonly poles: Poles;
  /** Its spans, once they are there. */
  readonly tree: Tree | undefined;
  readonly notes: readonly Quality[];
  readonly actions: SelectionActions;
}) {
  const pole = poles.poles[0];
  const isProfile = summary.of === 'profile';
  const isMany = summary.ofRequests;
  const worthwhile =
    !isProfile && !isMany && summary.of !== 'command_alone' && pole !== undefined && isWorthwhile(pole.savesIfZeroNanos, summary.wallNanos);
  return (
    <section className={css.answer} aria-label="Answer">
      <div>
        {summary.of === 'profile' && <HottestFunction summary={summary} />}
        {isMany && <ManyTraces summary={summary} tree={tree} />}
        {!isProfile && !isMany && <Sentence pole={pole} summary={summary} />}
        {worthwhile && <Reason pole={pole} poles={poles} actions={actions} />}
        <Facts summary={summary} />
        <RunBefore summary={summary} />
        <Linked recording={summary.recording} />
        <NotableUsage notable={summary.usage} actions={actions} />
      </div>
      {!isProfile && (
        <div className={css.pathStates}>
          <h2>Along the critical path, {formatDuration(summary.wallNanos)} of wall time</h2>
          <StateBar states={summary.states} sampled={wasSampled(summary)} kindsMax={KINDS_MAX} />
        </div>
      )}
      {summary.deployment !== null && <DeploymentTime deployment={summary.deployment} wallNanos={summary.wallNanos} />}
      {graveNotes(notes).length > 0 && (
        <div className={css.notices}>
          {graveNotes(notes).map((note) => (
            <Notice key={`${note.code} ${note.detail}`} title={note.detail === '' ? `${note.title}.` : `${note.title}:`}>
              {note.detail !== '' && `${note.detail}.`}
            </Notice>
          ))}
        </div>
      )}
    </section>
  );
}
