import type { Evidence, NanosRange } from '../../api/types.gen';
import { formatRange } from '../../logic/format';
import css from './parts.module.css';

/** ◆ for dependencies that are declared or absent, ◇ for inferred ones, with the word for screen readers. */
export function EvidenceMark({ evidence }: { readonly evidence: Evidence }) {
  const word = evidence === 'declared' ? 'certain' : 'inferred';
  return (
    <span className={css.evidence} title={`dependencies ${word}`}>
      <span aria-hidden="true">{evidence === 'declared' ? '◆' : '◇'}</span>
      <span className={css.visuallyHidden}>{word}: </span>
    </span>
  );
}

/** A saving as a number and as a share of the whole run: certain savings solid, possible ones hatched. */
export function Saving({
  range,
  shares,
  evidence,
}: {
  readonly range: NanosRange;
  /** Low and high end as shares of the wall time. */
  readonly shares: { readonly low: number; readonly high: number };
  readonly evidence: Evidence;
}) {
  return (
    <div className={css.saving}>
      <span>
        <EvidenceMark evidence={evidence} /> {formatRange(range)}
      </span>
      <div className={css.savingBar} aria-hidden="true">
        <span className={css.savingHigh} style={{ width: `${shares.high * 100}%` }} />
        <span className={css.savingLow} style={{ width: `${shares.low * 100}%` }} />
      </div>
    </div>
  );
}
