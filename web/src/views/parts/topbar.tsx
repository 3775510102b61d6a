import { Dialog } from '@base-ui/react/dialog';
import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { type ThemeChoice, themeAtom } from '../../state/preferences';
import { useIsServer } from '../../state/queries';
import { useAtom } from '../../state/store';
import { CloseIcon, Mark, MoonIcon, ScreenIcon, SunIcon } from './icons';
import { isTyping } from './keyboard';
import css from './parts.module.css';

const THEMES: readonly { readonly value: ThemeChoice; readonly label: string; readonly icon: ReactNode }[] = [
  { value: 'light', label: 'Light theme', icon: <SunIcon /> },
  { value: 'system', label: 'System theme', icon: <ScreenIcon /> },
  { value: 'dark', label: 'Dark theme', icon: <MoonIcon /> },
];

function Themes() {
  const choice = useAtom(themeAtom, (value) => value);
  return (
    <ToggleGroup
      className={css.themes}
      aria-label="Theme"
      value={[choice]}
      onValueChange={(pressed) => themeAtom.set(pressed[0] ?? 'system')}
    >
      {THEMES.map(({ value, label, icon }) => (
        <Toggle key={value} value={value} aria-label={label} title={label} className={css.iconButton}>
          {icon}
        </Toggle>
      ))}
    </ToggleGroup>
  );
}

const KEYS: readonly { readonly title: string; readonly keys: readonly (readonly [readonly string[], string])[] }[] = [
  {
    title: 'Time axis',
    keys: [
      [['W', 'S'], 'zoom in, out'],
      [['A', 'D'], 'earlier, later'],
      [['Z'], 'zoom to the selected range or span'],
      [['0'], 'whole run'],
      [['Ctrl', 'wheel'], 'zoom at the pointer'],
      [['Shift', 'wheel'], 'earlier, later'],
      [['drag on the ruler or a thread'], 'select a range of time'],
      [['R'], 'select the range on the screen'],
      [['2'], 'show or hide threads'],
      [['.', ','], 'next, previous match of the search, span with the selected function, or long pole'],
    ],
  },
  {
    title: 'Rows of the trace, when focused',
    keys: [
      [['↑', '↓'], 'row above, below'],
      [['→'], 'expand, or go to the first child'],
      [['←'], 'collapse, or go to the parent'],
      [['Home', 'End'], 'first, last row'],
      [['Enter'], 'select the span'],
      [['[', ']'], 'collapse, expand all'],
    ],
  },
  {
    title: 'Boxes of the flame graph, when focused',
    keys: [
      [['↑', '↓'], 'caller, largest callee'],
      [['←', '→'], 'box to the left, right'],
      [['Enter'], 'select the function'],
      [['Shift', 'Enter'], 'zoom into the box'],
      [['Backspace'], 'zoom out'],
    ],
  },
  {
    title: 'Plot of traces',
    keys: [
      [['drag'], 'select a range of time and duration'],
      [['Esc'], 'clear the selection'],
      [['click'], 'open the trace'],
    ],
  },
  {
    title: 'Map of services, when focused',
    keys: [
      [['→', '←'], 'along the line with the most calls, to the service at its end'],
      [['↑', '↓'], 'service or line above, below'],
      [['Enter'], 'list the traces of the service'],
    ],
  },
  {
    title: 'Everywhere',
    keys: [
      [['Esc'], 'deselect the function, then the range and thread, then the span'],
      [['/'], 'find rows of the trace, or recordings'],
      [['T'], 'next theme'],
      [['?'], 'this list'],
    ],
  },
];

function Help() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event)) return;
      if (event.key === '?') setOpen(true);
      if (event.key === 't') {
        const order: readonly ThemeChoice[] = ['light', 'dark', 'system'];
        themeAtom.set(order[(order.indexOf(themeAtom.get()) + 1) % order.length] ?? 'system');
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger className={css.iconButton} aria-label="Keyboard help" title="Keyboard help (?)">
        ?
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className={css.backdrop} />
        <Dialog.Popup className={css.dialog}>
          <div className={css.dialogHead}>
            <Dialog.Title>Keyboard and mouse</Dialog.Title>
            <Dialog.Close className={css.iconButton} aria-label="Close">
              <CloseIcon />
            </Dialog.Close>
          </div>
          <div className={css.keys}>
            {KEYS.map((group) => [
              <h3 key={group.title}>{group.title}</h3>,
              ...group.keys.map(([keys, meaning]) => (
                <div key={meaning}>
                  <span>{meaning}</span>
                  <span>
                    {keys.map((key) => (
                      <kbd key={key} className={css.key}>
                        {key}
                      </kbd>
                    ))}
                  </span>
                </div>
              )),
            ])}
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** The lists of a server. */
function Lists() {
  const isServer = useIsServer();
  if (!isServer) return null;
  return (
    <nav className={css.lists} aria-label="Lists">
      <Link to="/search">Traces</Link>
      <Link to="/services">Services</Link>
      <Link
        to="/recordings"
        activeOptions={{ exact: true, includeSearch: false }}
        title="Recordings that longpole push and run --to sent, files that were opened, traces that were kept"
      >
        Recordings
      </Link>
    </nav>
  );
}

/** The bar of every page: the lists, the current place, and the tools. */
export function Topbar({ children, tools }: { readonly children?: ReactNode; readonly tools?: ReactNode }) {
  const isServer = useIsServer();
  return (
    <header className={css.topbar}>
      <Link
        to={isServer ? '/search' : '/'}
        className={css.home}
        aria-label={isServer ? 'longpole, all traces' : 'longpole, all recordings'}
      >
        <Mark /> <span>longpole</span>
      </Link>
      <Lists />
      <div className={css.crumbs}>{children}</div>
      <div className={css.tools}>
        {tools}
        <Themes />
        <Help />
      </div>
    </header>
  );
}
