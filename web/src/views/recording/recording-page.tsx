import { useQuery } from '@tanstack/react-query';
import {
  type CSSProperties,
  type KeyboardEvent,
  lazy,
  type PointerEvent,
  type ReactNode,
  Suspense,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
} from 'react';
import type { Frame, Poles, Summary, Tree } from '../../api/types.gen';
import { clamp } from '../../base/math';
import type { WaterfallScene } from '../../canvas/draw-waterfall';
import { polesOfSummary, selectedPole, subjectInWords } from '../../logic/answer';
import { isWhole, WHOLE } from '../../logic/excerpt';
import { foundSpans, onPathOf, readFind, rowsWith } from '../../logic/find';
import { counted, formatCommand, formatDuration, shortCommand } from '../../logic/format';
import { spanOfHandle } from '../../logic/handles';
import { allNotes } from '../../logic/quality';
import { usePreparedTree, useSpanMarks, useVisibleSpans } from '../../state/derived';
import { isTrace, shortRecording } from '../../state/kept-trace';
import { PANEL_SHARE_MAX, PANEL_SHARE_MIN, panelShareAtom } from '../../state/preferences';
import { frameQuery, polesQuery, spanQuery, summaryQuery, treeQuery } from '../../state/queries';
import { type Selection, useSelection } from '../../state/selection';
import { useAtom } from '../../state/store';
import { foldOf, readRange, viewOf } from '../../state/url';
import { isTyping } from '../parts/keyboard';
import { Name } from '../parts/name';
import { Failure, Skeleton } from '../parts/notice';
import parts from '../parts/parts.module.css';
import { Topbar } from '../parts/topbar';
import { AnswerHeader } from './answer-header';
import { CopyLink } from './copy-link';
import type { Found } from './find-box';
import { KeepTrace } from './keep-trace';
import { PolesTable } from './poles-table';
import { QualityPopover } from './quality-popover';
import css from './recording.module.css';
import { useRecordingCommands } from './recording-commands';
import { RecordingSkeleton } from './recording-skeleton';
import { SelectionPanel } from './selection-panel';
import { SourceDock } from './source-dock';
import { ViewSwitch } from './view-switch';
import { Waterfall } from './waterfall';

// Most visits need only the trace; the table comes in a file of its own, after the trace.
const loadOperations = () => import('./operations');
const Operations = lazy(async () => ({ default: (await loadOperations()).Operations }));

function TraceRows({
  tree,
  poles,
  frame,
  rootTag,
  head,
  selection,
}: {
  readonly tree: Tree;
  readonly poles: Poles;
  readonly frame: Frame | undefined;
  readonly rootTag: WaterfallScene['rootTag'];
  /** The switch to the operations. */
  readonly head: ReactNode;
  readonly selection: Selection;
}) {
  const { search, actions } = selection;
  const prepared = usePreparedTree(tree);
  const foldText = search.fold;
  // Parse the fold only when its text changes, so that the rows stay the same object while other parts of the URL change.
  const fold = useMemo(() => foldOf(foldText === undefined ? {} : { fold: foldText }), [foldText]);
  const text = search.find ?? '';
  const isOnly = search.only === 1;
  // A million rows are searched between two keys, not before the letter is there.
  const asked = useDeferredValue(text);
  const found = useMemo<Found>(() => {
    const find = readFind(asked);
    const spans = foundSpans(tree, find);
    return { text: asked, spans, onPath: onPathOf(tree, spans), wrong: find.wrong, isOnly };
  }, [tree, asked, isOnly]);
  const isFinding = asked !== '' && found.wrong === null;
  const all = useVisibleSpans(tree, fold);
  const rows = useMemo(
    () => (isFinding && isOnly && found.spans.length > 0 ? rowsWith(tree, all, found.spans) : all),
    [tree, all, found, isFinding, isOnly],
  );
  const marks = useSpanMarks(tree, poles, frame, isFinding ? found.spans : null);
  const urlRange = useMemo(() => (search.t === undefined ? null : readRange(search.t)), [search.t]);
  return (
    <Waterfall
      prepared={prepared}
      rows={rows}
      fold={fold}
      marks={marks}
      found={{ ...found, text }}
      selected={search.span === undefined ? null : spanOfHandle(search.span, tree.spans.parent.length)}
      selectedPole={search.pole ?? null}
      poles={poles.poles}
      currentPole={selectedPole(poles, search.pole, search.span)?.handle ?? null}
      urlRange={urlRange}
      excerpt={selection.excerpt}
      rootTag={rootTag}
      whole={subjectInWords(poles.of)}
      head={head}
      actions={actions}
    />
  );
}

/** The line between the halves; drag it, or move it with the arrow keys. */
function Splitter() {
  const share = useAtom(panelShareAtom, (value) => value);
  const set = (next: number): void => panelShareAtom.set(clamp(next, PANEL_SHARE_MIN, PANEL_SHARE_MAX));
  const onPointerMove = (event: PointerEvent<HTMLDivElement>): void => {
    const bounds = event.currentTarget.parentElement?.getBoundingClientRect();
    if (event.buttons === 1 && bounds !== undefined) set((bounds.right - event.clientX) / bounds.width);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    set(share + (event.key === 'ArrowLeft' ? 0.02 : -0.02));
  };
  return (
    <div
      className={css.splitter}
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the panel"
      aria-valuenow={Math.round(share * 100)}
      aria-valuemin={PANEL_SHARE_MIN * 100}
      aria-valuemax={PANEL_SHARE_MAX * 100}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={onPointerMove}
      onKeyDown={onKeyDown}
    />
  );
}

/** Announces a selection to screen readers. */
function Announcement({
  selection,
  tree,
  frame,
}: {
  readonly selection: Selection;
  readonly tree: Tree | undefined;
  readonly frame: Frame | undefined;
}) {
  const { span } = selection.search;
  const words: string[] = [];
  if (span !== undefined && tree !== undefined) {
    const index = spanOfHandle(span, tree.spans.parent.length);
    if (index !== null) {
      words.push(`Selected ${tree.names[tree.spans.name[index] ?? 0]}, ${formatDuration(tree.spans.durationNanos[index] ?? 0)}.`);
    }
  }
  if (frame !== undefined) words.push(`Function ${frame.function} ran in ${counted(frame.spans.length + frame.truncated.spans, 'span')}.`);
  return (
    <p className={parts.visuallyHidden} aria-live="polite">
      {words.join(' ')}
    </p>
  );
}

function Loaded({ selection, summary }: { readonly selection: Selection; readonly summary: Summary }) {
  const { recording, search, excerpt, actions } = selection;
  const allPoles = useQuery(polesQuery(recording));
  const firstPoles = useMemo(() => polesOfSummary(summary), [summary]);
  const poles = allPoles.data ?? firstPoles;
  const tree = useQuery(treeQuery(recording));
  const frameHandle = search.frame ?? '';
  const frame = useQuery({ ...frameQuery(recording, frameHandle), enabled: frameHandle !== '' });
  const shownFrame = frameHandle === '' ? undefined : frame.data;
  const notes = useMemo(() => allNotes(summary, tree.data?.notes ?? []), [summary, tree.data]);
  const share = useAtom(panelShareAtom, (value) => value);
  const isProfile = summary.of === 'profile';
  const pole = selectedPole(poles, search.pole, search.span);
  const isMany = summary.ofRequests;
  const view = viewOf(search, isMany);
  const isTraceShown = view === 'trace';

  useRecordingCommands(poles, tree.data, actions);
  useEffect(() => {
    // A server that is gone is reported when somebody opens the table.
    if (tree.data !== undefined) loadOperations().catch(() => undefined);
  }, [tree.data]);

  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== 'Escape' || isTyping(event)) return;
      if (search.find !== undefined && isTraceShown) actions.find('');
      else if (search.frame !== undefined) actions.selectFrame(null);
      else if (!isWhole(excerpt)) actions.selectExcerpt(WHOLE);
      else if (search.span !== undefined) actions.selectSpan(null);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [search.find, search.frame, search.span, isTraceShown, excerpt, actions]);

  // Where the panel is below the trace, a selection goes there: nobody sees it change from above.
  const panel = useRef<HTMLElement>(null);
  const wasSelected = useRef(search.span);
  useEffect(() => {
    const isNew = search.span !== undefined && search.span !== wasSelected.current;
    wasSelected.current = search.span;
    if (isNew && window.matchMedia('(max-width: 760px)').matches) panel.current?.scrollIntoView({ block: 'start' });
  }, [search.span]);

  // A link from elsewhere names a span by its id.
  const linked = useQuery({ ...spanQuery(recording, search.id ?? ''), enabled: search.id !== undefined });
  const linkedHandle = search.id === undefined ? undefined : linked.data?.handle;
  useEffect(() => {
    if (linkedHandle !== undefined) actions.openSpan(linkedHandle);
  }, [linkedHandle, actions]);

  // A link that only names a pole selects the pole's first span.
  useEffect(() => {
    if (search.span === undefined && search.id === undefined && pole !== null) actions.openPole(pole);
  }, [pole, search.span, search.id, actions]);

  const head = <ViewSwitch view={view} actions={actions} />;
  return (
    <>
      <Topbar
        tools={
          <>
            {isTrace(summary.recording) && <KeepTrace trace={summary.recording} />}
            <QualityPopover summary={summary} notes={notes} />
            <CopyLink />
          </>
        }
      >
        <span aria-hidden="true">›</span>
        <strong title={summary.recording}>{shortRecording(summary.recording)}</strong>
        <code title={formatCommand(summary.command)}>
          <Name text={shortCommand(summary.command)} />
        </code>
      </Topbar>
      <AnswerHeader summary={summary} poles={poles} tree={tree.data} notes={notes} actions={actions} />
      {isProfile && (
        <main className={css.profile}>
          <section className={css.panel} aria-label="Selection">
            <SelectionPanel selection={selection} pole={null} poles={poles} summary={summary} notes={notes} />
          </section>
        </main>
      )}
      {!isProfile && (
        <main className={css.split} style={{ '--panel-share': share } as CSSProperties}>
          <div className={css.left}>
            {/* Many traces have no end in common that a pole could delay: their table has the room. */}
            {summary.of !== 'command_alone' && (isTraceShown || !isMany) && (
              <PolesTable
                poles={poles}
                isWhole={allPoles.data !== undefined}
                selected={pole?.handle ?? null}
                without={search.without}
                actions={actions}
              />
            )}
            {allPoles.error !== null && <Failure error={allPoles.error} retry={() => allPoles.refetch()} />}
            {tree.data !== undefined && !isTraceShown && (
              <Suspense fallback={<Skeleton lines={14} label="Loading the operations" />}>
                <Operations tree={tree.data} notes={notes} head={head} selection={selection} />
              </Suspense>
            )}
            {tree.data !== undefined && isTraceShown && (
              <TraceRows
                tree={tree.data}
                poles={poles}
                frame={shownFrame}
                rootTag={summary.of === 'trace' || summary.of === 'file' ? summary.of : 'process'}
                head={head}
                selection={selection}
              />
            )}
            {tree.error !== null && <Failure error={tree.error} retry={() => tree.refetch()} />}
            {tree.isPending && <Skeleton lines={14} label="Loading the trace" />}
          </div>
          <Splitter />
          <aside ref={panel} className={css.panel} aria-label="Selection">
            <SelectionPanel selection={selection} pole={pole} poles={poles} summary={summary} notes={notes} />
          </aside>
        </main>
      )}
      {search.source === 1 && search.frame !== undefined && (
        <SourceDock recording={recording} handle={search.frame} onClose={() => actions.showSource(false)} />
      )}
      <Announcement selection={selection} tree={tree.data} frame={shownFrame} />
    </>
  );
}

/** A recording: its answer, long poles, trace and selection. */
export function RecordingPage() {
  const selection = useSelection();
  const { data: summary, error, refetch } = useQuery(summaryQuery(selection.recording));
  useEffect(() => {
    document.title =
      summary === undefined ? `longpole: ${selection.recording}` : `${summary.recording} ${shortCommand(summary.command)} – longpole`;
  }, [summary, selection.recording]);
  return (
    <div className={css.page}>
      {summary !== undefined && <Loaded key={summary.recording} selection={selection} summary={summary} />}
      {summary === undefined && (
        <>
          <Topbar>
            <span aria-hidden="true">›</span>
            <strong>{selection.recording}</strong>
          </Topbar>
          {error === null ? (
            <RecordingSkeleton />
          ) : (
            <main className={parts.failurePage}>
              <Failure error={error} retry={() => refetch()} isPage />
            </main>
          )}
        </>
      )}
    </div>
  );
}
