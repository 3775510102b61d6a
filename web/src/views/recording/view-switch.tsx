import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import type { SelectionActions } from '../../state/selection';
import type { View } from '../../state/url';
import css from './recording.module.css';

const VIEWS: readonly { readonly view: View; readonly label: string; readonly explanation: string }[] = [
  { view: 'trace', label: 'Trace', explanation: 'each span on the time axis' },
  { view: 'operations', label: 'Operations', explanation: 'how many spans each operation has, and how long they take (G O)' },
];

/** The switch between the trace and its operations. */
export function ViewSwitch({ view, actions }: { readonly view: View; readonly actions: SelectionActions }) {
  return (
    <ToggleGroup
      className={css.times}
      aria-label="Trace or operations"
      value={[view]}
      onValueChange={(pressed: readonly View[]) => {
        // A second press keeps the choice.
        if (pressed[0] !== undefined) actions.showView(pressed[0]);
      }}
    >
      {VIEWS.map(({ view: value, label, explanation }) => (
        <Toggle key={value} value={value} title={explanation}>
          {label}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}
