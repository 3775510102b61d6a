import { type MouseEvent, useMemo, useState } from 'react';
import type { Tree } from '../../api/types.gen';
import { hueOfService } from '../../canvas/palette';
import { counted, formatCount } from '../../logic/format';
import { canFilter, type Service, servicesOf, togglingHidden, togglingOnly, visibilityIn } from '../../logic/service-chips';
import type { SelectionActions } from '../../state/selection';
import type { Found } from './find-box';
import css from './trace-legend.module.css';

/** Chips before the others are behind a button. */
const CHIPS_MAX = 8;

/** A service with its colour. A click shows only its spans, a Shift-click hides them. */
function ServiceChip({
  service,
  found,
  actions,
}: {
  readonly service: Service;
  readonly found: Found;
  readonly actions: SelectionActions;
}) {
  const visibility = visibilityIn(found.text, found.isOnly, service.name);
  const onClick = (event: MouseEvent): void => {
    const toggling = event.shiftKey ? togglingHidden : togglingOnly;
    actions.filter(toggling(found.text, found.isOnly, service.name));
  };
  return (
    <li>
      <button
        type="button"
        className={css.chip}
        data-shown={visibility}
        aria-pressed={visibility === 'only'}
        disabled={!canFilter(service.name)}
        title={`${counted(service.spans, 'span')}; click: only this service, Shift-click: hide it`}
        onClick={onClick}
      >
        <span className={css.swatch} style={{ background: `var(--hue-${hueOfService(service.number)})` }} aria-hidden="true" />
        {service.label}
        {visibility === 'hidden' && <small> hidden</small>}
      </button>
    </li>
  );
}

function Services({ tree, found, actions }: { readonly tree: Tree; readonly found: Found; readonly actions: SelectionActions }) {
  const services = useMemo(() => servicesOf(tree), [tree]);
  const [isOpen, setOpen] = useState(false);
  const rest = services.length - CHIPS_MAX;
  // One more chip takes no more room than a button that says so.
  const isCut = !isOpen && rest > 1;
  return (
    <ul className={css.services} aria-label="Services">
      {(isCut ? services.slice(0, CHIPS_MAX) : services).map((service) => (
        <ServiceChip key={service.number} service={service} found={found} actions={actions} />
      ))}
      {rest > 1 && (
        <li>
          <button type="button" className={css.chip} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'fewer' : `${formatCount(rest)} more`}
          </button>
        </li>
      )}
    </ul>
  );
}

/** What colours and marks of the trace stand for. Services have colours, parts of a bar their form. */
export function TraceLegend({
  tree,
  found,
  isMarked,
  actions,
}: {
  readonly tree: Tree;
  readonly found: Found;
  readonly isMarked: boolean;
  readonly actions: SelectionActions;
}) {
  return (
    <div className={css.legend}>
      <Services tree={tree} found={found} actions={actions} />
      <ul className={css.marks} aria-label="Legend">
        <li>
          <span className={css.path} aria-hidden="true" /> critical path
        </li>
        <li>
          <span className={css.own} aria-hidden="true" /> own time
        </li>
        <li>
          <span className={css.child} aria-hidden="true" /> in a child
        </li>
        <li>
          <span className={css.process} aria-hidden="true" /> process
        </li>
        <li>
          <span className={css.inferred} aria-hidden="true" /> parent inferred
        </li>
        <li>
          <span className={css.error} aria-hidden="true">
            ×
          </span>{' '}
          failed
        </li>
        {isMarked && (
          <li>
            <span className={css.marked} aria-hidden="true" /> {found.text === '' ? 'has the selected function' : 'found'}
          </li>
        )}
      </ul>
    </div>
  );
}
