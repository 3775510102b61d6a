import { useMemo } from 'react';
import { hueOf } from '../../canvas/palette';
import type { DrawnFlame } from '../../logic/drawn-flame';
import { originShares, showsStates, stateShares } from '../../logic/flame-legend';
import { formatDuration, formatShare } from '../../logic/format';
import parts from '../parts/parts.module.css';
import css from './recording.module.css';

/** The colours of the graph: by origin of the code, with the share of the time in it and of its own; where there are waits, by state. */
export function FlameLegend({ flame }: { readonly flame: DrawnFlame }) {
  const origins = useMemo(() => (showsStates(flame) ? [] : originShares(flame)), [flame]);
  if (showsStates(flame)) {
    return (
      <ul className={css.origins} aria-label="Time by state">
        {stateShares(flame).map(({ state, label, nanos, share }) => (
          <li key={state}>
            <span className={`${parts.swatch} ${parts[state]}`} aria-hidden="true" />
            {label} {formatDuration(nanos)} {formatShare(share)}
          </li>
        ))}
      </ul>
    );
  }
  return (
    <ul className={css.origins} aria-label="Origin of the code, with what it called">
      {origins.map(({ name, kind, total, self }) => (
        <li key={`${kind} ${name}`} title={`${formatShare(total)} in it and in what it called, ${formatShare(self)} in itself`}>
          <svg width="11" height="11" aria-hidden="true">
            <rect width="11" height="11" fill={kind === 'crate' ? `var(--tint-${hueOf(name)})` : 'var(--neutral-tint)'} />
          </svg>
          {name} {formatShare(total)}
          {self > 0 && ` (self ${formatShare(self)})`}
        </li>
      ))}
    </ul>
  );
}
