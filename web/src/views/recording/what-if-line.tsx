import { useQuery } from '@tanstack/react-query';
import type { Poles } from '../../api/types.gen';
import { nameOfPole } from '../../logic/answer';
import { formatDuration, formatRange, formatRangeInWords } from '../../logic/format';
import { polesInWords } from '../../logic/what-if';
import { whatIfQuery } from '../../state/queries';
import type { SelectionActions } from '../../state/selection';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/** What the run would take without the checked poles, and which pole would be next. */
export function WhatIfLine({
  poles,
  without,
  actions,
}: {
  readonly poles: Poles;
  readonly without: string;
  readonly actions: SelectionActions;
}) {
  const { data, error } = useQuery(whatIfQuery(poles.recording, without));
  const next = data?.next ?? null;
  const nextPole = next === null ? undefined : poles.poles.find(({ handle }) => handle === next.handle);
  return (
    <section className={css.whatIf} aria-label="What if">
      <p aria-live="polite">
        {error?.message}
        {data !== undefined && (
          <>
            <strong>
              Fixing {polesInWords(data.without)} saves {formatRange(data.savesNanos)}
            </strong>
            : {formatDuration(data.wallNanos)} → {formatRange(data.wallAfterNanos)}. {next === null && 'No remaining pole saves anything.'}
            {next !== null && nextPole !== undefined && (
              <>
                Next{' '}
                <button type="button" className={css.linkButton} onClick={() => actions.selectPole(nextPole)}>
                  {next.handle} {nameOfPole(nextPole)}
                </button>{' '}
                would save {formatRangeInWords(next.savesMoreNanos)} more.
              </>
            )}
          </>
        )}
      </p>
      <button type="button" className={parts.button} onClick={() => actions.toggleWithout(null)}>
        Clear
      </button>
    </section>
  );
}
