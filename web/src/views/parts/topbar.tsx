import { Toggle } from '@base-ui/react/toggle';
import { ToggleGroup } from '@base-ui/react/toggle-group';
import { Link, useRouter } from '@tanstack/react-router';
import { type ReactNode, useEffect, useMemo } from 'react';
import { type Command, commandList, useCommands } from '../../state/commands';
import { type ThemeChoice, themeAtom } from '../../state/preferences';
import { useIsServer } from '../../state/queries';
import { useAtom } from '../../state/store';
import { Help } from './help';
import { Mark, MoonIcon, ScreenIcon, SunIcon } from './icons';
import { isTyping } from './keyboard';
import css from './parts.module.css';

const THEMES: readonly { readonly value: ThemeChoice; readonly label: string; readonly icon: ReactNode }[] = [
  { value: 'light', label: 'Light theme', icon: <SunIcon /> },
  { value: 'system', label: 'System theme', icon: <ScreenIcon /> },
  { value: 'dark', label: 'Dark theme', icon: <MoonIcon /> },
];

const THEME_COMMANDS = commandList(
  THEMES.map(({ value, label }) => ({ id: `theme ${value}`, title: label, kind: 'action', run: () => themeAtom.set(value) })),
);

function Themes() {
  const choice = useAtom(themeAtom, (value) => value);
  useCommands(THEME_COMMANDS);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (isTyping(event) || event.key !== 't') return;
      const order: readonly ThemeChoice[] = ['light', 'dark', 'system'];
      themeAtom.set(order[(order.indexOf(themeAtom.get()) + 1) % order.length] ?? 'system');
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
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

/** The lists of a server. */
function Lists() {
  const isServer = useIsServer();
  if (!isServer) return null;
  return (
    <nav className={css.lists} aria-label="Lists">
      <Link to="/search">Traces</Link>
      <Link to="/services">Services</Link>
      <Link to="/profiles">Profiles</Link>
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

/** Adds commands that go to the lists. */
function useListCommands(isServer: boolean): void {
  const router = useRouter();
  const source = useMemo(() => {
    const goTo = (
      id: string,
      title: string,
      keys: string,
      to: '/' | '/recordings' | '/search' | '/services' | '/profiles' | '/compare',
    ): Command => ({
      id: `go ${id}`,
      title,
      kind: 'action',
      keys,
      run: () => void router.navigate({ to }),
    });
    return commandList([
      goTo('recordings', 'Go to the recordings', 'G R', isServer ? '/recordings' : '/'),
      goTo('compare', 'Compare two recordings', 'G C', '/compare'),
      ...(isServer
        ? [
            goTo('search', 'Go to the traces', 'G S', '/search'),
            goTo('services', 'Go to the services', 'G M', '/services'),
            goTo('profiles', 'Go to the profiles', 'G F', '/profiles'),
          ]
        : []),
    ]);
  }, [router, isServer]);
  useCommands(source);
}

/** The bar of every page: the lists, the current place, and the tools. */
export function Topbar({ children, tools }: { readonly children?: ReactNode; readonly tools?: ReactNode }) {
  const isServer = useIsServer();
  useListCommands(isServer);
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
