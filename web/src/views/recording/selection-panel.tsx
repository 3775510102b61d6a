import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import type { Flame, FlameTime, Pole, Poles, Quality, Span, Summary } from '../../api/types.gen';
import { at } from '../../base/column';
import { ratio } from '../../base/math';
import { contextOf, countedNodes, evidenceInWords, partOfPole } from '../../logic/answer';
import { frameTotals, hottestFrames } from '../../logic/flame-graph';
import { FLAME_TIME_WORDS, madeOfInWords, numberInWords } from '../../logic/flame-time';
import { counted, formatCommand, formatDuration, formatRange, shortCommand } from '../../logic/format';
import { type NoSamples, wasSampled, whyPartHasNoSamples, whyRunHasNoSamples, whySpanHasNoSamples } from '../../logic/no-samples';
import { namedService } from '../../logic/span-words';
import { flameQuery, spanQuery } from '../../state/queries';
import type { Selection } from '../../state/selection';
import { BackIcon, CloseIcon, NextIcon } from '../parts/icons';
import { Breakable } from '../parts/name';
import { Failure, Notice, Skeleton } from '../parts/notice';
import { EvidenceMark } from '../parts/saving';
import { StateBar } from '../parts/state-bar';
import { IconButton } from '../parts/tip';
import { FlameGraph } from './flame-graph';
import { FrameCard } from './frame-card';
import { CodeElsewhere } from './linked';
import css from './recording.module.css';
import { SpanDetails } from './span-details';
import { type HotFrame, TopFrames } from './top-frames';
import { Waits } from './waits';
import { Why } from './why';

const TOP_FRAMES_MAX = 10;

/** A remark if there are too few samples for exact shares; the server decides by `few_samples`. */
function SampleRemark({ flame, spans }: { readonly flame: Flame; readonly spans: number }) {
  return (
    <>
      <p>{madeOfInWords(flame, spans)}</p>
      {flame.fewSamples && <Notice title={`Only ${numberInWords(flame)}:`}>shares from fewer than 20 are rough.</Notice>}
    </>
  );
}

/** The switch between on-CPU, off-CPU and wall time in the flame graph. */
function TimeSwitch({ time, onChange }: { readonly time: FlameTime; readonly onChange: (time: FlameTime) => void }) {
  return (
    <ToggleGroup
      className={css.times}
      aria-label="Time of the flame graph"
      value={[time]}
      onValueChange={(pressed: readonly FlameTime[]) => {
        // A second press keeps the choice.
        if (pressed[0] !== undefined) onChange(pressed[0]);
      }}
    >
      {FLAME_TIME_WORDS.map(({ time: value, label, explanation }) => (
        <Toggle key={value} value={value} title={explanation}>
          {label}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}

function NoSamplesBox({ reason, children }: { readonly reason: NoSamples; readonly children?: ReactNode }) {
  return (
    <div className={css.noSamples}>
      <strong>{reason.title}</strong>
      <p>{reason.text}</p>
      {children}
    </div>
  );
}

/** The functions of a flame graph with the most self time, after the one that the server names for the selection. */
function framesOfFlame(flame: Flame, named: string | null): readonly HotFrame[] {
  const totals = frameTotals(flame);
  return hottestFrames(flame, totals, named, TOP_FRAMES_MAX).flatMap((index) => {
    const frame = flame.frames[index];
    if (frame === undefined) return [];
    const selfNanos = at(totals.self, index);
    const totalNanos = at(totals.total, index);
    return [
      {
        ...frame,
        selfNanos,
        totalNanos,
        selfShare: ratio(selfNanos, flame.weightNanos),
        totalShare: ratio(totalNanos, flame.weightNanos),
      },
    ];
  });
}

/** The function that the server lists first for a span: from its samples, or from its waits if the graph shows blocked time. */
function firstFunction(span: Span, flame: Flame): string | null {
  if (flame.time !== 'off_cpu') return span.topFrames[0]?.handle ?? null;
  const waiting = span.waits[0]?.function;
  return flame.frames.find((frame) => frame.function === waiting)?.handle ?? null;
}

/** The code of a selection: flame graph, the selected function with its spans, and the functions with the most self time. */
function Code({
  selection,
  span,
  spanId,
  spans,
  named,
  noSamples,
  hasTimes = true,
}: {
  readonly selection: Selection;
  /** Whether there may be waits: a profile of sums has one kind of time. */
  readonly hasTimes?: boolean;
  /** Handle of the span, or of the pole if that is a part of it; null for the whole run. */
  readonly span: string | null;
  /** Its id, if it is one span. */
  readonly spanId: string | null;
  /** Number of spans in the recording. */
  readonly spans: number;
  /** Handle of the function that the server names first for the selection. */
  readonly named: (flame: Flame) => string | null;
  readonly noSamples: (time: FlameTime) => NoSamples;
}) {
  const { recording, search, actions } = selection;
  const time = search.time ?? 'on_cpu';
  const { data: flame, error, refetch } = useQuery(flameQuery(recording, span, time));
  const first = flame === undefined ? null : named(flame);
  const frames = useMemo(() => (flame === undefined ? [] : framesOfFlame(flame, first)), [flame, first]);
  const frame = search.frame ?? null;
  return (
    <>
      <section className={css.section} aria-label="Flame graph">
        <div className={css.sectionHead}>
          <h3>Flame graph</h3>
          {hasTimes && <TimeSwitch time={time} onChange={actions.showTime} />}
          {flame !== undefined && flame.samples > 0 && <SampleRemark flame={flame} spans={spans} />}
        </div>
        {error !== null && <Failure error={error} retry={() => refetch()} />}
        {error === null && flame === undefined && <Skeleton lines={8} label="Loading the flame graph" />}
        {flame !== undefined && flame.samples === 0 && (
          <NoSamplesBox reason={noSamples(time)}>
            <CodeElsewhere trace={recording} spanId={spanId} />
          </NoSamplesBox>
        )}
        {flame !== undefined && flame.samples > 0 && (
          <FlameGraph
            flame={flame}
            selectedHandle={frame}
            zoomedNode={search.node ?? 0}
            onSelect={actions.selectFrame}
            onZoom={actions.zoomFlame}
          />
        )}
      </section>
      {frame !== null && <FrameCard recording={recording} handle={frame} selectedSpan={search.span ?? null} actions={actions} />}
      {frames.length > 0 && (
        <section className={css.section} aria-label="Top functions">
          <div className={css.sectionHead}>
            <h3>Top functions</h3>
            <p>{spans === 0 ? 'select one to see its lines' : 'select one to see its spans'}</p>
          </div>
          <TopFrames frames={frames} selected={frame} onSelect={actions.selectFrame} />
        </section>
      )}
    </>
  );
}

/** What the selection saves: the whole span, or the part of it that the pole is. */
function Savings({ span, pole, spans }: { readonly span: Span; readonly pole: Pole | null; readonly spans: number }) {
  const part = partOfPole(pole);
  const group = part === null && pole !== null && pole.count > 1 ? pole : null;
  const ofPole = part ?? group;
  const savings = ofPole === null ? { ...span.savings, isWhole: true } : { ...ofPole, isWhole: false };
  const ownZero = 'saving if only its own time, without its children, were zero';
  const ofSeveral = pole !== null && pole.count > 1 ? countedNodes(pole.count, spans) : null;
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
          ? 'Speeding up this operation would not shorten this run: parallel work takes as long.'
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
  readonly poles: Poles | undefined;
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
      <Savings span={span} pole={pole} spans={summary.spans} />
      {pole !== null && poles !== undefined && <AboutPole pole={pole} poles={poles} actions={actions} />}
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
        named={(flame) => (part === null ? firstFunction(span, flame) : (part.topFrames[0]?.handle ?? null))}
        noSamples={(time) =>
          part === null ? whySpanHasNoSamples(span, summary, notes, time) : whyPartHasNoSamples(part.part, span, summary, notes, time)
        }
      />
      <SpanDetails key={span.handle} span={span} actions={actions} />
    </>
  );
}

/** What the panel calls all of it. */
const WHOLE: Readonly<Record<Summary['of'], string>> = {
  command: 'Whole run',
  command_alone: 'Whole run',
  attached: 'Whole recording',
  trace: 'Whole trace',
  file: 'Whole file',
  profile: 'Whole profile',
};

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
          <h2>{WHOLE[summary.of]}</h2>
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
  readonly poles: Poles | undefined;
  readonly summary: Summary;
  readonly notes: readonly Quality[];
}) {
  const handle = selection.search.span ?? null;
  return handle === null ? (
    <RunPanel selection={selection} summary={summary} notes={notes} />
  ) : (
    <SpanPanel selection={selection} handle={handle} pole={pole} poles={poles} summary={summary} notes={notes} />
  );
}
