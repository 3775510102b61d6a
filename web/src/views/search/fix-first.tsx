import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { OperationPoles } from '../../api/types.gen';
import { counted, formatCount, formatDuration } from '../../logic/format';
import { listedPoles, poleName, poleShare, type Quantile, saves, takesWithout, whySlow } from '../../logic/shared-poles';
import { sharedPolesQuery } from '../../state/queries';
import list from '../parts/list.module.css';
import parts from '../parts/parts.module.css';
import css from './search.module.css';

const QUANTILES: readonly Quantile[] = ['medianNanos', 'p95Nanos', 'p99Nanos'];

/** What to fix first in the traces that match, and what their requests would gain. */
export function FixFirst({ parameters }: { readonly parameters: Readonly<Record<string, string>> }) {
  const [isOpen, setOpen] = useState(false);
  const { data, isFetching } = useQuery(sharedPolesQuery(parameters));
  const of = data?.operations[0];
  if (data === undefined || of === undefined) {
    return isFetching ? <p className={`${css.fixFirst} ${parts.muted}`}>Reading the critical paths…</p> : null;
  }
  const pole = of.poles[0];
  const others = data.operations.length - 1 + data.omitted;
  return (
    <section className={css.fixFirst} aria-label="What to fix first">
      <div className={css.answer}>
        <p>
          {pole === undefined || !saves(pole) ? (
            `No pole of ${of.name} saves anything alone.`
          ) : (
            <>
              Fix <strong>{poleName(pole, of)}</strong> first: without it, {of.name} takes {takesWithout(pole, 'medianNanos')} instead of{' '}
              {formatDuration(of.takes.medianNanos)} (median), and {takesWithout(pole, 'p99Nanos')} instead of{' '}
              {formatDuration(of.takes.p99Nanos)} (p99).
            </>
          )}{' '}
          {whySlow(of)}
        </p>
        <button type="button" className={parts.button} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Long poles
        </button>
      </div>
      {isOpen && <Poles of={of} />}
      {isOpen && (
        <p className={parts.muted}>
          From {data.truncated ? `the newest ${formatCount(data.traces)} traces` : counted(data.traces, 'trace')}
          {others > 0 && `; ${counted(others, 'other operation')} took less time in all`}.
        </p>
      )}
    </section>
  );
}

function Poles({ of }: { readonly of: OperationPoles }) {
  return (
    <div className={css.poles}>
      <table className={list.table}>
        <thead>
          <tr>
            <th>Without this pole</th>
            {['Share', 'Traces', 'Median', 'p95', 'p99', 'Most in'].map((title) => (
              <th key={title} className={list.number}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr className={parts.muted}>
            <td>as it is</td>
            <td className={list.number}>100%</td>
            <td className={list.number}>{formatCount(of.traces)}</td>
            {QUANTILES.map((quantile) => (
              <td key={quantile} className={list.number}>
                {formatDuration(of.takes[quantile])}
              </td>
            ))}
            <td className={list.number}>
              <TraceLink traceId={of.longest.traceId} text={formatDuration(of.longest.nanos)} />
            </td>
          </tr>
          {listedPoles(of).map((pole) => (
            <tr key={poleName(pole, of)}>
              <td>{poleName(pole, of)}</td>
              <td className={list.number}>{poleShare(pole, of)}</td>
              <td className={list.number}>{formatCount(pole.traces)}</td>
              {QUANTILES.map((quantile) => (
                <td key={quantile} className={list.number}>
                  {takesWithout(pole, quantile)}
                </td>
              ))}
              <td className={list.number}>
                <TraceLink traceId={pole.mostIn.traceId} text={formatDuration(pole.mostIn.nanos)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TraceLink({ traceId, text }: { readonly traceId: string; readonly text: string }) {
  return (
    <Link to="/r/$rec" params={{ rec: traceId }} search={{}} className={list.link}>
      {text}
    </Link>
  );
}
