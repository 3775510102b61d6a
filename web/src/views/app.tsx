import { Tooltip } from '@base-ui/react/tooltip';
import { useQueryClient } from '@tanstack/react-query';
import { createRootRoute, createRoute, createRouter, Outlet, RouterProvider, useRouterState } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { ApiError } from '../api/error';
import { readProfilesSearch } from '../logic/profiles-search';
import { readServicesSearch } from '../logic/service-map';
import { readTracesSearch } from '../logic/traces-search';
import { readCompareSearch, readListSearch, readRecordingSearch } from '../state/url';
import { ComparePage } from './compare/compare-page';
import { Failure, LinksToLists } from './parts/notice';
import { FileDrop } from './parts/open-file';
import { Palette } from './parts/palette';
import css from './parts/parts.module.css';
import { Topbar } from './parts/topbar';
import { ProfilesPage } from './profiles/profiles-page';
import { RecordingPage } from './recording/recording-page';
import { RecordingsPage } from './recordings/recordings-page';
import { SearchPage } from './search/search-page';
import { ServicesPage } from './services/services-page';

/** Reports that the server does not respond, and keeps the page. */
function ServerGone() {
  const client = useQueryClient();
  const [gone, setGone] = useState(false);
  useEffect(() => {
    const cache = client.getQueryCache();
    return cache.subscribe(() => {
      const failed = cache
        .getAll()
        .some(({ state }) => state.fetchFailureReason instanceof ApiError && state.fetchFailureReason.kind === 'gone');
      setGone(failed);
    });
  }, [client]);
  if (!gone) return null;
  return (
    <div className={css.gone} role="status">
      <span>
        The longpole server does not respond. Loaded data stays usable. To start the server again, run <code>longpole open</code>.
      </span>
      <button type="button" className={css.button} onClick={() => client.refetchQueries({ type: 'active', stale: true })}>
        Try again
      </button>
    </div>
  );
}

function Shell() {
  // The pages of `longpole serve` report in their own place that it is gone.
  const isOfServer = useRouterState({ select: ({ location }) => ['/search', '/services', '/profiles'].includes(location.pathname) });
  return (
    <Tooltip.Provider>
      <Outlet />
      <FileDrop />
      <Palette />
      {!isOfServer && <ServerGone />}
    </Tooltip.Provider>
  );
}

function NotFound() {
  return (
    <>
      <Topbar />
      <main className={css.failurePage}>
        <div className={css.failure}>
          <h1>Page not found</h1>
          <LinksToLists />
        </div>
      </main>
    </>
  );
}

function Broken({ error }: { readonly error: unknown }) {
  return (
    <main className={css.failurePage}>
      <Failure error={error} />
    </main>
  );
}

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: Broken });
const list = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: readListSearch,
  component: RecordingsPage,
});
/** The same list where `/` is the list of traces. */
const listOfServer = createRoute({
  getParentRoute: () => root,
  path: '/recordings',
  validateSearch: readListSearch,
  component: RecordingsPage,
});
const recording = createRoute({
  getParentRoute: () => root,
  path: '/r/$rec',
  validateSearch: readRecordingSearch,
  component: RecordingPage,
});
const compare = createRoute({
  getParentRoute: () => root,
  path: '/compare',
  validateSearch: readCompareSearch,
  component: ComparePage,
});
const search = createRoute({
  getParentRoute: () => root,
  path: '/search',
  validateSearch: readTracesSearch,
  component: SearchPage,
});
const services = createRoute({
  getParentRoute: () => root,
  path: '/services',
  validateSearch: readServicesSearch,
  component: ServicesPage,
});
const profiles = createRoute({
  getParentRoute: () => root,
  path: '/profiles',
  validateSearch: readProfilesSearch,
  component: ProfilesPage,
});
const router = createRouter({ routeTree: root.addChildren([list, listOfServer, recording, compare, search, services, profiles]) });

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}

export function App() {
  return <RouterProvider router={router} />;
}
