import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { type ReactNode, useMemo } from 'react';
import type { Quality, Tree } from '../../api/types.gen';
import { coverageInWords, drawnOperation, type Grouping, keptOperations, orderOf, sortedOperations } from '../../logic/operations';
import type { Selection, SelectionActions } from '../../state/selection';
import parts from '../parts/parts.module.css';
import { DurationHistogram } from './duration-histogram';
import css from './operations.module.css';
import { OperationsTable } from './operations-table';
import recording from './recording.module.css';

const GROUPING_WORDS: readonly { readonly grouping: Grouping; readonly label: string }[] = [
  { grouping: 'operation', label: 'name and service' },
  { grouping: 'name', label: 'name' },
  { grouping: 'service', label: 'service' },
];

function GroupingSwitch({ grouping, actions }: { readonly grouping: Grouping; readonly actions: SelectionActions }) {
  return (
    <ToggleGroup
      className={recording.times}
      aria-label="Group by"
      value={[grouping]}
      onValueChange={(pressed: readonly Grouping[]) => {
        if (pressed[0] !== undefined) actions.groupBy(pressed[0]);
      }}
    >
      {GROUPING_WORDS.map(({ grouping: value, label }) => (
        <Toggle key={value} value={value}>
          {label}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}

/** The spans by operation: a table, and above it the durations of one operation. */
export function Operations({
  tree,
  notes,
  head,
  selection,
}: {
  readonly tree: Tree;
  readonly notes: readonly Quality[];
  /** The switch to the trace. */
  readonly head: ReactNode;
  readonly selection: Selection;
}) {
  const { search, actions } = selection;
  const operations = keptOperations(tree, search.by ?? 'operation');
  const order = useMemo(() => orderOf(search.sort), [search.sort]);
  const rows = useMemo(() => sortedOperations(operations.rows, order), [operations, order]);
  const [count, ...remarks] = coverageInWords(operations, notes);
  const drawn = useMemo(() => drawnOperation(rows, search.op), [rows, search.op]);
  return (
    <section className={css.operations} aria-label="Operations">
      <div className={recording.bar}>
        <h2 className={parts.visuallyHidden}>Operations</h2>
        {head}
        <p>{count}</p>
        <span className={recording.spread} />
        <GroupingSwitch grouping={operations.grouping} actions={actions} />
      </div>
      {remarks.map((remark) => (
        <p key={remark} className={css.remark}>
          {remark}
        </p>
      ))}
      {drawn !== undefined && <DurationHistogram key={`${operations.grouping} ${drawn.key}`} operation={drawn} actions={actions} />}
      <OperationsTable operations={operations} rows={rows} order={order} drawn={drawn?.key ?? null} actions={actions} />
    </section>
  );
}
