import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { GrowingState } from '../../api/types.gen';
import { counted } from '../../logic/format';
import { growthSentence, searchOfGrowth } from '../../logic/growth';
import { SINCE_LONGEST, sinceInWords } from '../../logic/profiles-search';
import { growthQuery } from '../../state/queries';
import { zoneOf } from '../parts/clock';
import list from '../parts/list.module.css';
import { Breakable } from '../parts/name';
import parts from '../parts/parts.module.css';
import css from './profiles.module.css';

/** Lines before a click. */
const LINES_FIRST = 5;

function Line({ state, all }: { readonly state: GrowingState; readonly all: readonly GrowingState[] }) {
  const { service, labels, grows, version, function: holder } = growthSentence(state, all, zoneOf);
  return (
    <li>
      <Link to="/profiles" search={searchOfGrowth(state)} resetScroll={false} className={css.grows}>
        <strong>{service}</strong>{' '}
        {labels !== null && (
          <>
            <code>{labels}</code>{' '}
          </>
        )}
        {grows}
        {version !== null && (
          <>
            , with <code>{version}</code>
          </>
        )}
        {holder !== null && (
          <>
            :{' '}
            <code>
              <Breakable text={holder.name} />
            </code>{' '}
            holds {holder.share} of the growth
          </>
        )}
      </Link>
    </li>
  );
}

/** States of services that grow. Without an answer, and if nothing grows, there is nothing. */
export function Growing() {
  const { data } = useQuery(growthQuery());
  const [isWhole, setWhole] = useState(false);
  if (data === undefined || data.growing.length === 0) return null;
  const { growing, truncated } = data;
  const shown = isWhole ? growing : growing.slice(0, LINES_FIRST);
  const rest = growing.length - shown.length;
  return (
    <section className={css.growing} aria-label="What grows">
      <h2>What grew in the {sinceInWords(SINCE_LONGEST)}</h2>
      <div className={list.list}>
        <ul>
          {shown.map((state) => (
            <Line key={state.query} state={state} all={growing} />
          ))}
        </ul>
        {rest > 0 && (
          <p>
            <button type="button" className={parts.button} onClick={() => setWhole(true)}>
              {rest + truncated} more
            </button>
          </p>
        )}
        {rest === 0 && truncated > 0 && (
          <p className={parts.muted}>The server omits {counted(truncated, 'state that grows', 'states that grow')} less.</p>
        )}
      </div>
    </section>
  );
}
