import { Tooltip } from '@base-ui/react/tooltip';
import type { ReactElement, ReactNode } from 'react';
import css from './parts.module.css';

/** A control with a tooltip on hover and on focus. */
export function Tip({ text, children }: { readonly text: ReactNode; readonly children: ReactElement<Record<string, unknown>> }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children} delay={350} />
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6}>
          <Tooltip.Popup className={css.tooltip}>{text}</Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  );
}

/** A button with an icon; screen readers and the tooltip have its name. */
export function IconButton({
  label,
  shortcut,
  onClick,
  disabled = false,
  children,
}: {
  readonly label: string;
  readonly shortcut?: string;
  readonly onClick: () => void;
  readonly disabled?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <Tip
      text={
        shortcut === undefined ? (
          label
        ) : (
          <>
            {label} <kbd className={css.key}>{shortcut}</kbd>
          </>
        )
      }
    >
      <button type="button" className={css.iconButton} aria-label={label} disabled={disabled} onClick={onClick}>
        {children}
      </button>
    </Tip>
  );
}
