import { Link } from '@tanstack/react-router';
import { useEffect, useId, useState } from 'react';
import type { ProfileType } from '../../api/types.gen';
import type { Micros } from '../../base/brand';
import { labelOfName, labelOfType } from '../../logic/profile-words';
import {
  EARLIER,
  type Earlier,
  earlierInWords,
  movedRange,
  type ProfileChoice,
  type ProfilesSearch,
  SINCE,
  SINCE_DEFAULT,
  servicesOf,
  sinceInWords,
  timeInWords,
  typesOf,
} from '../../logic/profiles-search';
import { zoneOf } from '../parts/clock';
import { CloseIcon } from '../parts/icons';
import parts from '../parts/parts.module.css';
import css from './profiles.module.css';

/** Changes a part of the address; what is `undefined` is taken out. */
export type Change = (part: { readonly [Key in keyof ProfilesSearch]: ProfilesSearch[Key] | undefined }) => void;

/** The time of an address in words, in the reader's time zone. */
export const timeHere = (search: ProfilesSearch): string => timeInWords(search, zoneOf(search.end ?? 0));

/** How far back, or which range. */
export function Times({ search, change }: { readonly search: ProfilesSearch; readonly change: Change }) {
  const isRange = search.start !== undefined && search.end !== undefined;
  const { start: _start, end: _end, ...rest } = search;
  const since = search.since ?? SINCE_DEFAULT;
  const now = () => (Date.now() * 1000) as Micros;
  const move = (direction: -1 | 1): void => change({ since: undefined, ...movedRange(search, now(), direction) });
  return (
    <nav className={css.times} aria-label="Time">
      {isRange && (
        <span className={parts.chip}>
          {timeHere(search)}
          <button type="button" aria-label="The last hour instead" onClick={() => change({ start: undefined, end: undefined })}>
            <CloseIcon />
          </button>
        </span>
      )}
      <button type="button" className={parts.button} title="The same length of time before" onClick={() => move(-1)}>
        <span aria-hidden="true">←</span> Earlier
      </button>
      {isRange && (
        <button type="button" className={parts.button} title="The same length of time after" onClick={() => move(1)}>
          Later <span aria-hidden="true">→</span>
        </button>
      )}
      {SINCE.map((other) => (
        <Link
          key={other}
          to="/profiles"
          search={{ ...rest, since: other }}
          resetScroll={false}
          className={`${parts.button} ${parts.choice}`}
          aria-current={!isRange && other === since ? 'page' : undefined}
          title={sinceInWords(other)}
        >
          {other}
        </Link>
      ))}
    </nav>
  );
}

/** A field for labels. Enter, or leaving the field, makes it the address. */
function Labels({
  label,
  value,
  placeholder,
  wrong,
  commit,
}: {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly wrong: string | null;
  readonly commit: (text: string) => void;
}) {
  const [text, setText] = useState(value);
  const hint = useId();
  useEffect(() => setText(value), [value]);
  return (
    <div className={`${parts.field} ${css.field} ${css.wide}`}>
      <label>
        <span>{label}</span>
        <input
          value={text}
          placeholder={placeholder}
          spellCheck={false}
          autoCapitalize="off"
          aria-invalid={wrong !== null}
          aria-describedby={wrong === null ? undefined : hint}
          onChange={(event) => setText(event.target.value)}
          onBlur={() => text !== value && commit(text)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && text !== value) commit(text);
          }}
        />
      </label>
      {wrong !== null && (
        <p id={hint} className={css.wrong} role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}

/** What a comparison begins with, in the select: a time before, other labels, or nothing. */
type Comparison = Earlier | 'labels' | '';

/** The service, the type, the labels, and what to compare with. */
export function Filters({
  types,
  choice,
  search,
  wrong,
  wrongBefore,
  change,
}: {
  readonly types: readonly ProfileType[];
  readonly choice: ProfileChoice;
  readonly search: ProfilesSearch;
  readonly wrong: string | null;
  readonly wrongBefore: string | null;
  readonly change: Change;
}) {
  const [isChoosingLabels, setChoosingLabels] = useState(false);
  const services = servicesOf(types);
  const ofService = typesOf(types, choice.service);
  const comparison: Comparison = search.before ?? (search.beforeLabels !== undefined || isChoosingLabels ? 'labels' : '');
  const compare = (next: Comparison): void => {
    setChoosingLabels(next === 'labels');
    change({ before: next === '' || next === 'labels' ? undefined : next, beforeLabels: undefined });
  };
  const isElsewhere = { zoom: undefined, function: undefined };
  return (
    <form className={css.filters} aria-label="Profiles" onSubmit={(event) => event.preventDefault()}>
      <label className={`${parts.field} ${css.field}`}>
        <span>Service</span>
        <select
          value={choice.service}
          onChange={({ target }) => {
            const has = typesOf(types, target.value).some(({ profileType }) => profileType === choice.type);
            change({
              ...isElsewhere,
              service: target.value,
              type: has ? choice.type : undefined,
              labels: undefined,
              beforeLabels: undefined,
            });
          }}
        >
          {!services.includes(choice.service) && <option>{choice.service}</option>}
          {services.map((service) => (
            <option key={service}>{service}</option>
          ))}
        </select>
      </label>
      <label className={`${parts.field} ${css.field}`}>
        <span>Type</span>
        <select
          value={choice.type}
          title={choice.type}
          onChange={({ target }) => change({ ...isElsewhere, service: choice.service, type: target.value })}
        >
          {ofService.every(({ profileType }) => profileType !== choice.type) && (
            <option value={choice.type}>{labelOfName(choice.type, types)}</option>
          )}
          {ofService.map((type) => (
            <option key={type.profileType} value={type.profileType}>
              {labelOfType(type, ofService)}
            </option>
          ))}
        </select>
      </label>
      <Labels
        label="Labels"
        value={search.labels ?? ''}
        placeholder={'env="prod", version=~"7|8"'}
        wrong={wrong}
        commit={(text) => change({ labels: text.trim() === '' ? undefined : text.trim() })}
      />
      <label className={`${parts.field} ${css.field}`}>
        <span>Compare with</span>
        <select value={comparison} onChange={({ target }) => compare(target.value as Comparison)}>
          <option value="">nothing</option>
          {EARLIER.map((earlier) => (
            <option key={earlier} value={earlier}>
              {earlierInWords(earlier)}
            </option>
          ))}
          <option value="labels">other labels</option>
        </select>
      </label>
      {comparison === 'labels' && (
        <Labels
          label="Other labels"
          value={search.beforeLabels ?? ''}
          placeholder={'version="7"'}
          wrong={wrongBefore}
          commit={(text) => change({ before: undefined, beforeLabels: text.trim() === '' ? undefined : text.trim() })}
        />
      )}
    </form>
  );
}
