import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { counted, formatCount } from '../../logic/format';
import { durationsInWords, startsInWords } from '../../logic/scatter';
import { sortedTraces, type TraceListing } from '../../logic/trace-listing';
import { boxOf, isBounded, requestOf, type TracesBox, type TracesSearch, tracesInBox, withBox } from '../../logic/traces-search';
import { servicesQuery, tracesQuery } from '../../state/queries';
import { CloseIcon } from '../parts/icons';
import { isTyping } from '../parts/keyboard';
import list from '../parts/list.module.css';
import { Failure, Skeleton } from '../parts/notice';
import parts from '../parts/parts.module.css';
import { Topbar } from '../parts/topbar';
import { Filters } from './filters';
import { FixFirst } from './fix-first';
import { ScatterPlot } from './scatter';
import css from './search.module.css';
import { Arrived, FirstSpan, Gone, isGone, isServerGone, useHasArrived } from './server-states';
import { TraceTable } from './trace-table';

const route = getRouteApi('/search');

function Chip({ text, label, remove }: { readonly text: string; readonly label: string; readonly remove: () => void }) {
  return (
    <li className={parts.chip}>
      {text}
      <button type="button" aria-label={label} title={label} onClick={remove}>
        <CloseIcon />
      </button>
    </li>
  );
}

/** The rectangle of the plot in words; each part can be taken back. */
function Chips({ box, select }: { readonly box: TracesBox; readonly select: (box: TracesBox | null) => void }) {
  const zone = new Date((box.end ?? box.start ?? 0) / 1000).getTimezoneOffset();
  return (
    <ul className={css.chips} aria-label="Selected in the plot">
      {(box.start !== null || box.end !== null) && (
        <Chip text={`started ${startsInWords(box, zone)}`} label="Any start" remove={() => select({ ...box, start: null, end: null })} />
      )}
      {(box.min !== null || box.max !== null) && (
        <Chip text={`trace takes ${durationsInWords(box)}`} label="Any duration" remove={() => select({ ...box, min: null, max: null })} />
      )}
      <li>
        <button type="button" className={parts.button} onClick={() => select(null)}>
          Clear <kbd className={parts.key}>Esc</kbd>
        </button>
      </li>
    </ul>
  );
}

function Live({ isLive, isHeld, toggle }: { readonly isLive: boolean; readonly isHeld: boolean; readonly toggle: () => void }) {
  return (
    <div className={css.live}>
      {isLive && isHeld && <span className={parts.muted}>paused while you point</span>}
      <button
        type="button"
        className={`${parts.button} ${parts.choice}`}
        aria-pressed={isLive}
        title={isLive ? 'Stop asking for new traces' : 'Ask for new traces each second'}
        onClick={toggle}
      >
        <span aria-hidden="true">{isLive ? '●' : '○'}</span> Live
      </button>
    </div>
  );
}

/** The traces of a server: filters, which are the address, a plot and a list. */
export function SearchPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const goTo = useNavigateToTrace();
  const [isOnRow, setOnRow] = useState(false);
  const [isOnPlot, setOnPlot] = useState(false);
  const isLive = search.live === 1;
  const isHeld = isOnRow || isOnPlot;
  const services = useQuery(servicesQuery());
  const request = requestOf(search);
  const traces = useQuery({ ...tracesQuery(request.parameters, { isLive, isHeld }), enabled: request.wrong === null });
  useEffect(() => {
    document.title = search.service === undefined ? 'longpole: traces' : `longpole: ${search.service}`;
  }, [search.service]);

  const box = useMemo(() => boxOf(search), [search]);
  const select = useCallback(
    (next: TracesBox | null): void => {
      void navigate({ search: (before) => withBox(before, next), resetScroll: false });
    },
    [navigate],
  );
  const change = (part: TracesSearch): void => {
    const next = Object.fromEntries(Object.entries({ ...search, after: '', ...part }).filter(([, value]) => value !== ''));
    void navigate({ search: next, replace: true, resetScroll: false });
  };
  const toggleLive = (): void => {
    const { live: _live, ...still } = search;
    void navigate({ search: isLive ? still : { ...still, live: 1 }, replace: true, resetScroll: false });
  };
  const isSelected = isBounded(box);
  useEffect(() => {
    if (!isSelected) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !isTyping(event)) select(null);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [isSelected, select]);

  const listing = traces.data;
  const found = useMemo(() => tracesInBox(listing?.traces ?? [], box), [listing?.traces, box]);
  const rows = useMemo(() => sortedTraces(found, search.sort ?? ''), [found, search.sort]);
  const failed = useMemo(() => found.filter(({ errors }) => errors > 0).length, [found]);
  const isNew = services.data !== undefined && services.data.services.length === 0;
  const hasArrived = useHasArrived(isNew);
  const hasNoServer = isServerGone(services, traces);
  const retry = (): void => {
    void services.refetch();
    void traces.refetch();
  };
  return (
    <div className={list.page}>
      <Topbar />
      <main className={list.main}>
        <div className={list.head}>
          <h1>Traces</h1>
          {found.length > 0 && (
            <p className={parts.muted}>
              {!isSelected && listing?.truncated === true
                ? `the newest ${formatCount(found.length)} traces`
                : counted(found.length, 'trace')}
              {failed > 0 && `, ${formatCount(failed)} with errors`}
            </p>
          )}
          {!isNew && <Live isLive={isLive} isHeld={isHeld} toggle={toggleLive} />}
        </div>
        {services.data !== undefined && !isNew && <Filters services={services.data.services} search={search} change={change} />}
        {hasArrived && <Arrived service={services.data?.services[0]?.name ?? ''} />}
        {hasNoServer && <Gone isTrying={isLive} retry={retry} />}
        {isSelected && <Chips box={box} select={select} />}
        {found.length > 1 && !isLive && request.wrong === null && <FixFirst parameters={request.parameters} />}
        {found.length > 0 && <ScatterPlot traces={found} box={box} select={select} open={goTo} point={setOnPlot} />}
        <div className={list.list}>
          {isNew && <FirstSpan />}
          {request.wrong !== null && <p className={css.wrong}>{request.wrong}</p>}
          {services.error !== null && services.data === undefined && !isGone(services.error) && (
            <Failure error={services.error} retry={() => services.refetch()} />
          )}
          {traces.error !== null && !isGone(traces.error) && <Failure error={traces.error} retry={() => traces.refetch()} />}
          {traces.error === null && listing === undefined && request.wrong === null && <Skeleton lines={8} label="Loading traces" />}
          {!isNew && listing !== undefined && rows.length === 0 && request.wrong === null && (
            <div className={list.empty}>
              <p>
                {isSelected ? 'No trace matches these filters and the selection.' : 'No trace of the last two days matches these filters.'}
              </p>
            </div>
          )}
          {rows.length > 0 && listing !== undefined && (
            <TraceTable traces={rows} fresh={listing.fresh} nowMillis={listing.readMillis} point={setOnRow} />
          )}
        </div>
        {listing !== undefined && (search.after !== undefined || listing.next !== null) && (
          <Pages listing={listing} search={search} isSelected={isSelected} />
        )}
      </main>
    </div>
  );
}

/** Which part of the traces the list has, and the way to the others. */
function Pages({ listing, search, isSelected }: { listing: TraceListing; search: TracesSearch; isSelected: boolean }) {
  const { after, ...newest } = search;
  const age = after === undefined ? 'newest' : 'older';
  return (
    <p className={css.note}>
      {isSelected ? 'Selected among the' : 'Showing the'} {formatCount(listing.traces.length)} {age} matching traces
      {search.sort === 'longest' ? ', longest first' : ''}.{' '}
      {after !== undefined && (
        <Link to="/search" search={newest}>
          Newest traces
        </Link>
      )}
      {after !== undefined && listing.next !== null && ' · '}
      {listing.next !== null && (
        <Link to="/search" search={{ ...newest, after: listing.next }}>
          Older traces
        </Link>
      )}
    </p>
  );
}

/** Opens a trace, here or in a new tab. */
function useNavigateToTrace(): (traceId: string, inNewTab: boolean) => void {
  const navigate = route.useNavigate();
  return useCallback(
    (traceId, inNewTab) => {
      if (inNewTab) window.open(`/trace/${traceId}`, '_blank', 'noopener');
      else void navigate({ to: '/r/$rec', params: { rec: traceId }, search: {} });
    },
    [navigate],
  );
}
