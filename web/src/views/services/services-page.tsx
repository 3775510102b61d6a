import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { counted, formatCount } from '../../logic/format';
import {
  RANGE_DEFAULT,
  RANGE_LONGEST,
  RANGES,
  type Range,
  rangeInWords,
  type ServicesSearch,
  type SortOrder,
} from '../../logic/service-map';
import { serviceMapQuery, servicesQuery } from '../../state/queries';
import list from '../parts/list.module.css';
import { Failure, Skeleton } from '../parts/notice';
import parts from '../parts/parts.module.css';
import { Topbar } from '../parts/topbar';
import { FirstSpan, Gone, isGone, isServerGone } from '../search/server-states';
import { ServiceMapPicture } from './service-map';
import css from './services.module.css';
import { MapTables } from './tables';

const route = getRouteApi('/services');

function Ranges({ range, search }: { readonly range: Range; readonly search: ServicesSearch }) {
  return (
    <nav className={css.ranges} aria-label="Time">
      {RANGES.map((other) => (
        <Link
          key={other}
          to="/services"
          search={{ ...search, range: other }}
          resetScroll={false}
          className={`${parts.button} ${parts.choice}`}
          aria-current={other === range ? 'page' : undefined}
          title={rangeInWords(other)}
        >
          {other}
        </Link>
      ))}
    </nav>
  );
}

/** No trace in this time, but there are services. */
function Nothing({ range, search }: { readonly range: Range; readonly search: ServicesSearch }) {
  return (
    <div className={list.empty} role="status">
      <h2>No traces in the {rangeInWords(range)}</h2>
      {range !== RANGE_LONGEST && (
        <p>
          Choose a longer time above, such as the{' '}
          <Link to="/services" search={{ ...search, range: RANGE_LONGEST }}>
            {rangeInWords(RANGE_LONGEST)}
          </Link>
          .
        </p>
      )}
      <p>This page checks for new traces every 5 seconds.</p>
    </div>
  );
}

/** Which service calls which: a map and its numbers. */
export function ServicesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const range = search.range ?? RANGE_DEFAULT;
  const services = useQuery(servicesQuery());
  const answer = useQuery(serviceMapQuery(range));
  useEffect(() => {
    document.title = 'longpole: services';
  }, []);

  const map = answer.data;
  const isNew = services.data !== undefined && services.data.services.length === 0;
  const hasNoServer = isServerGone(services, answer);
  const retry = (): void => {
    void services.refetch();
    void answer.refetch();
  };
  const sort = (order: SortOrder): void => {
    void navigate({ search: (before) => ({ ...before, sort: order }), replace: true, resetScroll: false });
  };
  return (
    <div className={list.page}>
      <Topbar />
      <main className={`${list.main} ${list.wideMain}`}>
        <div className={list.head}>
          <h1>Services</h1>
          {map !== undefined && map.traces > 0 && (
            <p className={parts.muted}>
              {counted(map.services.length, 'service')} in {map.truncated && 'the newest '}
              {counted(map.traces, 'trace')} of the {rangeInWords(range)}
            </p>
          )}
          {!isNew && <Ranges range={range} search={search} />}
        </div>
        {hasNoServer && <Gone isTrying={false} retry={retry} />}
        {map !== undefined && map.traces > 0 && <ServiceMapPicture map={map} />}
        {map !== undefined && map.traces > 0 && map.calls.length === 0 && (
          <p className={css.note}>
            No span has a parent in another service: either these services do not call each other, or they do not pass{' '}
            <code>traceparent</code> on.
          </p>
        )}
        {map?.truncated === true && (
          <p className={css.note}>
            From the newest {formatCount(map.traces)} traces of the {rangeInWords(range)}. Choose a shorter time to include all traces.
          </p>
        )}
        <div className={list.list}>
          {isNew && <FirstSpan />}
          {answer.error !== null && !isGone(answer.error) && <Failure error={answer.error} retry={() => answer.refetch()} />}
          {answer.error === null && map === undefined && <Skeleton lines={8} label="Loading the map of services" />}
          {!isNew && map?.traces === 0 && <Nothing range={range} search={search} />}
        </div>
        {map !== undefined && map.traces > 0 && <MapTables map={map} order={search.sort} sort={sort} />}
      </main>
    </div>
  );
}
