import { useQuery } from '@tanstack/react-query';
import type { Flame, Pole, Poles, Quality, Span, Summary } from '../../api/types.gen';
import { contextOf, countedNodes, evidenceInWords, partOfPole, subjectInWords, wholeInWords } from '../../logic/answer';
import { isWhole } from '../../logic/excerpt';
import { counted, formatCommand, formatDuration, formatRange, shortCommand } from '../../logic/format';
import { wasSampled, whyPartHasNoSamples, whyRunHasNoSamples, whySpanHasNoSamples } from '../../logic/no-samples';
import { namedService } from '../../logic/span-words';
import { spanQuery } from '../../state/queries';
import type { Selection } from '../../state/selection';
import { BackIcon, CloseIcon, NextIcon } from '../parts/icons';
import { Breakable } from '../parts/name';
import { Failure, Skeleton } from '../parts/notice';
import { EvidenceMark } from '../parts/saving';
import { StateBar } from '../parts/state-bar';
import { IconButton } from '../parts/tip';
import { Code } from './code';
import { ExcerptPanel } from './excerpt-panel';
import css from './recording.module.css';
import { SpanDetails } from './span-details';
import { Waits } from './waits';
import { Why } from './why';

/** The function that the server lists first for a span: from its samples, or from its waits if the graph shows blocked time. */
function firstFunction(span: Span, flame: Flame): string | null {
  if (flame.time !== 'off_cpu') return span.topFrames[0]?.handle ?? null;
  const waiting = span.waits[0]?.function;
  return flame.frames.find((frame) => frame.function === waiting)?.handle ?? null;
}

/** What the selection saves: the whole span, or the part of it that the pole is. */
function Savings({ span, pole, summary }: { readonly span: Span; readonly pole: Pole | null; readonly summary: Summary }) {
  const part = partOfPole(pole);
  const group = part === null && pole !== null && pole.count > 1 ? pole : null;
  const ofPole = part ?? group;
  const savings = ofPole === null ? { ...span.savings, isWhole: true } : { ...ofPole, isWhole: false };
  const ownZero = 'saving if only its own time, without its children, were zero';
  const ofSeveral = pole !== null && pole.count > 1 ? countedNodes(pole.count, summary.spans) : null;
  return (
    <section className={css.section} aria-label="Savings">
      <dl className={css.stats}>
        <div>
          <dt title={span.isRun && savings.isWhole ? ownZero : 'saving if it and all its descendants took no time'}>saves</dt>
          <dd className={savings.savesIfZeroNanos.high > 0 ? css.main : css.nothing}>
            {savings.savesIfZeroNanos.high > 0 && <EvidenceMark evidence={savings.evidence} />} {formatRange(savings.savesIfZeroNanos)}
          </dd>
        </div>
        <div>
          <dt
            title={
              span.isRun && savings.isWhole ? 'saving if its own time were half' : 'saving if it and all its descendants took half the time'
            }
          >
            saves if 2× faster
          </dt>
          <dd>{formatRange(savings.savesIfHalfNanos)}</dd>
        </div>
        {savings.isWhole && (
          <div>
            <dt title={ownZero}>saves, own time only</dt>
            <dd>{formatRange(savings.savesOwnNanos)}</dd>
          </div>
        )}
        <div>
          <dt>on path</dt>
          <dd>{formatDuration(savings.onPathNanos)}</dd>
        </div>
      </dl>
      <p className={css.remark}>
        {savings.savesIfZeroNanos.high === 0
          ? `Speeding up this operation would not shorten this ${wholeInWords(summary.of)}: parallel work takes as long.`
          : evidenceInWords(savings)}
        {ofPole !== null && ofSeveral !== null ? ` These numbers are of all ${ofSeveral} of ${ofPole.handle} together.` : ''}
        {group !== null && ` This one by itself saves ${formatRange(span.savings.savesIfZeroNanos)}.`}
        {part !== null &&
          ` Removing all of ${span.name}’s ${span.isRun ? 'own ' : ''}time would save ${formatRange(span.isRun ? span.savings.savesOwnNanos : span.savings.savesIfZeroNanos)}.`}
      </p>
    </section>
  );
}

/** The pole of the span, and why it is long. */
function AboutPole({ pole, poles, actions }: { readonly pole: Pole; readonly poles: Poles; readonly actions: Selection['actions'] }) {
  const context = contextOf(pole);
  return (
    <section className={css.section} aria-label="Long pole">
      <p className={css.aboutPole}>
        <strong className={css.poleHandle}>{pole.handle}</strong>
        {context !== null && (
          <>
            {' in '}
            <strong>
              <Breakable text={context} />
            </strong>
          </>
        )}
        : <Why pole={pole} poles={poles} actions={actions} />.
      </p>
      {pole.resource !== null && (
        <p className={css.remark}>
          <code>
            <Breakable text={pole.resource} />
          </code>
        </p>
      )}
    </section>
  );
}

function PoleStepper({ pole, span, selection }: { readonly pole: Pole; readonly span: string; readonly selection: Selection }) {
  const position = pole.spans.indexOf(span);
  if (pole.spans.length < 2 || position < 0) return null;
  const { actions } = selection;
  return (
    <span className={css.stepper}>
      <IconButton
        label={`Previous span of ${pole.handle}`}
        disabled={position === 0}
        onClick={() => actions.selectPole(pole, position - 1)}
      >
        <BackIcon />
      </IconButton>
      {pole.handle}: {position + 1} of {pole.spans.length}
      <IconButton
        label={`Next span of ${pole.handle}`}
        disabled={position === pole.spans.length - 1}
        onClick={() => actions.selectPole(pole, position + 1)}
      >
        <NextIcon />
      </IconButton>
    </span>
  );
}

function SpanPanel({
  selection,
  handle,
  pole,
  poles,
  summary,
  notes,
}: {
  readonly selection: Selection;
  readonly handle: string;
  readonly pole: Pole | null;
  readonly poles: Poles;
  readonly summary: Summary;
  readonly notes: readonly Quality[];
}) {
  const { recording, actions } = selection;
  const { data: span, error, refetch } = useQuery(spanQuery(recording, handle));
  const close = (
    <IconButton label="Deselect the span" shortcut="Esc" onClick={() => actions.selectSpan(null)}>
      <CloseIcon />
    </IconButton>
  );
  if (span === undefined) {
    return (
      <>
        <div className={css.panelHead}>
          <div className={css.panelTitle}>
            <h2>{handle}</h2>
          </div>
          {close}
        </div>
        {error === null ? <Skeleton lines={12} label="Loading the span" /> : <Failure error={error} retry={() => refetch()} />}
      </>
    );
  }
  const { parent } = span;
  const part = partOfPole(pole);
  const service = namedService(span.service);
  return (
    <>
      <div className={css.panelHead}>
        <div className={css.panelTitle}>
          <h2>
            <Breakable text={part === null ? span.name : `${span.name} › ${part.part.text}`} />
          </h2>
          <p>
            {part !== null && `${part.handle}, a part of `}
            {span.handle} · {service !== '' && `${service} · `}
            {formatDuration(span.durationNanos)}, from {formatDuration(span.startNanos)} to{' '}
            {formatDuration(span.startNanos + span.durationNanos)}
            {parent !== null && (
              <>
                {' '}
                · in{' '}
                <button type="button" className={css.linkButton} onClick={() => actions.selectSpan(parent.handle)}>
                  {parent.handle}
                </button>
                {parent.edge === 'inferred' && ' (inferred)'}
              </>
            )}
            {span.children > 0 && ` · ${counted(span.children, 'child', 'children')}`}
          </p>
          {span.status.code === 'error' && <p className={css.error}>failed{span.status.message !== '' && `: ${span.status.message}`}</p>}
        </div>
        {pole !== null && <PoleStepper pole={pole} span={span.handle} selection={selection} />}
        {close}
      </div>
      <Savings span={span} pole={pole} summary={summary} />
      {pole !== null && <AboutPole pole={pole} poles={poles} actions={actions} />}
      <section className={css.section} aria-label="States">
        {part !== null && <p className={css.remark}>States and waits of all of {span.name}:</p>}
        <StateBar states={span.states} sampled={wasSampled(summary)} isProcess={span.isProcess} />
        {span.statesFollowThreads && (
          <p className={css.remark}>Several threads: at each moment, the state of the thread that the process was waiting for.</p>
        )}
        {span.children > 0 && span.statesWithDescendants !== null && (
          <>
            <p className={css.remark}>
              With its descendants, {formatDuration(span.statesWithDescendants.cpuNanos)} of CPU time
              {span.statesWithDescendants.evidence === 'samples' && ' (≈)'}:
            </p>
            <StateBar states={span.statesWithDescendants} sampled={wasSampled(summary)} isProcess={span.isProcess} />
          </>
        )}
      </section>
      <Waits waits={span.waits} isProcess={span.isProcess} />
      <Code
        selection={selection}
        span={part?.handle ?? span.handle}
        spanId={span.spanId}
        spans={summary.spans}
        whole={subjectInWords(summary.of)}
        named={(flame) => (part === null ? firstFunction(span, flame) : (part.topFrames[0]?.handle ?? null))}
        noSamples={(time) =>
          part === null ? whySpanHasNoSamples(span, summary, notes, time) : whyPartHasNoSamples(part.part, span, summary, notes, time)
        }
      />
      <SpanDetails key={span.handle} span={span} actions={actions} />
    </>
  );
}

function RunPanel({
  selection,
  summary,
  notes,
}: {
  readonly selection: Selection;
  readonly summary: Summary;
  readonly notes: readonly Quality[];
}) {
  return (
    <>
      <div className={css.panelHead}>
        <div className={css.panelTitle}>
          <h2>Whole {subjectInWords(summary.of)}</h2>
          <p>
            <code title={formatCommand(summary.command)}>{shortCommand(summary.command)}</code>
          </p>
        </div>
      </div>
      <Code
        selection={selection}
        span={null}
        spanId={null}
        spans={summary.spans}
        whole={subjectInWords(summary.of)}
        named={() => null}
        noSamples={(time) => whyRunHasNoSamples(summary, notes, time)}
        hasTimes={summary.of !== 'profile'}
      />
      {summary.of !== 'profile' && (
        <p className={css.section}>
          <span className={css.muted}>Select a long pole or a row of the trace to see its code, states and savings.</span>
        </p>
      )}
    </>
  );
}

/** The panel of the selected span, or of the whole run. */
export function SelectionPanel({
  selection,
  pole,
  poles,
  summary,
  notes,
}: {
  readonly selection: Selection;
  /** The selected pole, or the pole of the selected span. */
  readonly pole: Pole | null;
  readonly poles: Poles;
  readonly summary: Summary;
  readonly notes: readonly Quality[];
}) {
  const handle = selection.search.span ?? null;
  if (!isWhole(selection.excerpt)) return <ExcerptPanel selection={selection} summary={summary} />;
  return handle === null ? (
    <RunPanel selection={selection} summary={summary} notes={notes} />
  ) : (
    <SpanPanel selection={selection} handle={handle} pole={pole} poles={poles} summary={summary} notes={notes} />
  );
}
