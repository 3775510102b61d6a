import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ReactNode, useCallback, useEffect } from 'react';
import { ApiError } from '../../api/error';
import type { Profile, ProfileDiff, ProfileType } from '../../api/types.gen';
import { diffSentence, labelOfName, profileSentence } from '../../logic/profile-words';
import {
  choiceOf,
  commandOf,
  earlierInWords,
  type ProfileChoice,
  type ProfileRequest,
  type ProfilesSearch,
  readRequest,
  SINCE_LONGEST,
  sinceInWords,
} from '../../logic/profiles-search';
import { matcherOf } from '../../logic/search';
import { profileDiffQuery, profileQuery, profileTypesQuery, profileValuesQuery } from '../../state/queries';
import { isTyping } from '../parts/keyboard';
import list from '../parts/list.module.css';
import { Command, Failure, Skeleton } from '../parts/notice';
import { Topbar } from '../parts/topbar';
import { Gone, isGone, isServerGone } from '../search/server-states';
import { type Change, Filters, Times, timeHere } from './filters';
import { FirstProfile } from './first-profile';
import { FlameSection } from './flame-section';
import { Growing } from './growth';
import css from './profiles.module.css';
import { ChangesTable, FunctionsTable } from './tables';
import { ValueLine } from './value-line';

const route = getRouteApi('/profiles');

/** What the profiles are compared with, in words: `1 day earlier`, `version="7"`. */
const otherOf = ({ before, beforeLabels = '' }: ProfilesSearch): string => (before === undefined ? beforeLabels : earlierInWords(before));

/** The labels of the sentence before; nothing if there are none. */
function Where({ labels }: { readonly labels: string | undefined }) {
  return (
    labels !== undefined && (
      <>
        {' '}
        where <code>{labels}</code>
      </>
    )
  );
}

/** How much a service used, and most of it where. */
function Answer({ profile, service, search }: { readonly profile: Profile; readonly service: string; readonly search: ProfilesSearch }) {
  const { what, share, of, function: name } = profileSentence(profile, service);
  return (
    <p className={css.answer}>
      <strong>{what}</strong> {timeHere(search)}
      <Where labels={search.labels} />
      {share !== null && (
        <>
          ; <strong>{share}</strong> of {of} in <code>{name}</code>
        </>
      )}
      .
    </p>
  );
}

/** How much more or less than before, and which function changed most. */
function ComparedAnswer({
  diff,
  service,
  search,
}: {
  readonly diff: ProfileDiff;
  readonly service: string;
  readonly search: ProfilesSearch;
}) {
  const { what, than, before, of, largest } = diffSentence(diff, service);
  const other = otherOf(search);
  const others = search.beforeLabels === undefined ? other : <code>{other}</code>;
  return (
    <p className={css.answer}>
      <strong>{what}</strong> {timeHere(search)}
      {search.beforeLabels !== undefined && <Where labels={search.labels} />}
      {than !== null && (
        <>
          , {than} {others}
        </>
      )}
      {than === null && before !== null && (
        <>
          , after {before} {others}
        </>
      )}
      {before === null && (
        <>
          ; there is nothing {search.beforeLabels !== undefined && 'where '}
          {others} to compare with
        </>
      )}
      {largest !== null && (
        <>
          . Most changed: <code>{largest.function}</code>, from {largest.from} to {largest.to} of {of} (
          <strong>{largest.points} points</strong>)
        </>
      )}
      {than !== null && largest === null && `. Every function has the same share of ${of}`}.
    </p>
  );
}

/** There are profiles, but none of these. */
function Nothing({ what, service, search }: { readonly what: string; readonly service: string; readonly search: ProfilesSearch }) {
  const { start: _start, end: _end, ...rest } = search;
  const { labels: _labels, ...withoutLabels } = search;
  const isRange = search.start !== undefined;
  return (
    <div className={`${list.empty} ${css.empty}`} role="status">
      <h2>
        No {what} of {service} {timeHere(search)}
        <Where labels={search.labels} />
      </h2>
      {search.labels !== undefined && (
        <p>
          Show it{' '}
          <Link to="/profiles" search={withoutLabels}>
            with any labels
          </Link>
          .
        </p>
      )}
      {(isRange || search.since !== SINCE_LONGEST) && (
        <p>
          Choose another time, such as the{' '}
          <Link to="/profiles" search={{ ...rest, since: SINCE_LONGEST }}>
            {sinceInWords(SINCE_LONGEST)}
          </Link>
          , or another service or type above.
        </p>
      )}
    </div>
  );
}

/** Why there is no answer: what the server says about a request that it cannot read stands without the rest. */
function Refusal({ error, retry }: { readonly error: Error; readonly retry: () => void }) {
  if (error instanceof ApiError && error.code === 'bad_request') {
    return (
      <div className={`${list.empty} ${css.empty}`} role="alert">
        <h2>The server cannot read these labels</h2>
        <p className={css.words}>{error.message}</p>
      </div>
    );
  }
  return <Failure error={error} retry={retry} />;
}

const Boxed = ({ children }: { readonly children: ReactNode }) => <div className={list.list}>{children}</div>;

/** Sum, comparison and tables of a complete choice. */
function Results(props: {
  readonly choice: ProfileChoice;
  readonly types: readonly ProfileType[];
  readonly request: ProfileRequest;
  readonly search: ProfilesSearch;
  readonly change: Change;
  readonly step: Change;
}) {
  const { choice, types, request, search, change, step } = props;
  const isCompared = request.before !== null;
  const sum = useQuery(profileQuery(request));
  const comparison = useQuery({ ...profileDiffQuery(request), enabled: isCompared });
  const values = useQuery(profileValuesQuery(request));
  const profile = sum.data;
  const diff = isCompared ? comparison.data : undefined;
  const error = sum.error ?? (isCompared ? comparison.error : null);
  const hasNoServer = isServerGone(sum, comparison);
  const retry = (): void => {
    void sum.refetch();
    if (isCompared) void comparison.refetch();
  };
  const what = labelOfName(choice.type, types);
  const selecting = {
    selected: search.function ?? null,
    select: (name: string | null) => change({ function: name ?? undefined }),
    matches: matcherOf(search.find ?? ''),
  };
  const isReady = profile !== undefined && (!isCompared || diff !== undefined);
  const isNothing = isReady && profile.total === 0 && (diff?.before.total ?? 0) === 0;
  const command = commandOf(request, window.location.origin);
  if (!isReady) {
    if (hasNoServer) return <Gone isTrying={false} retry={retry} />;
    return (
      <Boxed>{error === null ? <Skeleton lines={10} label="Adding up the profiles" /> : <Refusal error={error} retry={retry} />}</Boxed>
    );
  }
  if (isNothing) {
    return (
      <Boxed>
        <Nothing what={what} service={choice.service} search={search} />
      </Boxed>
    );
  }
  return (
    <>
      {hasNoServer && <Gone isTrying={false} retry={retry} />}
      {diff === undefined ? (
        <Answer profile={profile} service={choice.service} search={search} />
      ) : (
        <ComparedAnswer diff={diff} service={choice.service} search={search} />
      )}
      {profile.total > 0 && values.error === null && (
        <ValueLine
          values={values.data}
          endsNow={request.range.since !== undefined}
          what={what}
          service={choice.service}
          select={(start, end) => step({ since: undefined, start, end })}
        />
      )}
      {profile.total > 0 && (
        <FlameSection profile={profile} title={`${choice.service}: ${what}`} search={search} change={change} step={step} />
      )}
      {diff === undefined || diff.before.total === 0 ? (
        <FunctionsTable
          profile={profile}
          sort={search.sort ?? 'own'}
          order={(sort) => change({ sort: sort === 'total' ? sort : undefined })}
          {...selecting}
        />
      ) : (
        <ChangesTable
          diff={diff}
          names={[search.before === undefined ? 'Other labels' : 'Before', search.before === undefined ? 'These labels' : 'Now']}
          {...selecting}
        />
      )}
      {command !== null && (
        <p className={css.terminal}>
          In the terminal: <Command text={command} />
        </p>
      )}
    </>
  );
}

/** What services compute: their profiles, added up. */
export function ProfilesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const answer = useQuery(profileTypesQuery(search));
  const types = answer.data?.types;
  const choice = types === undefined ? null : choiceOf(types, search);
  useEffect(() => {
    document.title = search.service === undefined ? 'longpole: profiles' : `longpole: profiles of ${search.service}`;
  }, [search.service]);

  const go = useCallback(
    (part: Parameters<Change>[0], replace: boolean): void => {
      const next = (before: ProfilesSearch): ProfilesSearch =>
        Object.fromEntries(Object.entries({ ...before, ...part }).filter(([, value]) => value !== undefined));
      void navigate({ search: next, replace, resetScroll: false });
    },
    [navigate],
  );
  const change = useCallback<Change>((part) => go(part, true), [go]);
  const step = useCallback<Change>((part) => go(part, false), [go]);

  // A link shows the same service tomorrow, also if another one has come in front of it.
  const { service, type } = choice ?? {};
  const isWhole = search.service !== undefined && search.type !== undefined;
  useEffect(() => {
    if (!isWhole && service !== undefined && type !== undefined) change({ service, type });
  }, [isWhole, service, type, change]);

  const { zoom, function: selected } = search;
  useEffect(() => {
    if (zoom === undefined && selected === undefined) return undefined;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || isTyping(event)) return;
      if (zoom !== undefined) step({ zoom: undefined });
      else change({ function: undefined });
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [zoom, selected, change, step]);

  const isNew = types?.length === 0;
  const parsed = choice === null ? null : readRequest(search, choice);
  return (
    <div className={list.page}>
      <Topbar />
      <main className={`${list.main} ${list.wideMain} ${css.main}`}>
        <div className={`${list.head} ${css.top}`}>
          <h1>Profiles</h1>
          {!isNew && <Times search={search} change={change} />}
        </div>
        {types === undefined && isServerGone(answer) && <Gone isTrying={false} retry={() => answer.refetch()} />}
        {choice !== null && <Growing />}
        {types !== undefined && choice !== null && parsed !== null && (
          <Filters types={types} choice={choice} search={search} wrong={parsed.wrong} wrongBefore={parsed.wrongBefore} change={change} />
        )}
        {types !== undefined && choice !== null && parsed !== null && parsed.wrong === null && parsed.wrongBefore === null && (
          <Results choice={choice} types={types} request={parsed.request} search={search} change={change} step={step} />
        )}
        <div className={list.list}>
          {isNew && <FirstProfile />}
          {answer.error !== null && types === undefined && !isGone(answer.error) && (
            <Failure error={answer.error} retry={() => answer.refetch()} />
          )}
          {answer.error === null && types === undefined && <Skeleton lines={8} label="Loading the services with profiles" />}
        </div>
      </main>
    </div>
  );
}
