import { Dialog } from '@base-ui/react/dialog';
import { type KeyboardEvent, useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react';
import { clamp } from '../../base/math';
import { type Command, commandSources, findCommands } from '../../state/commands';
import { useAtom } from '../../state/store';
import { isTyping } from './keyboard';
import css from './palette.module.css';
import parts from './parts.module.css';

/** Commands in the list; whoever looks for another one types more. */
const LISTED_MAX = 50;
/** Between the two keys of `g p`. */
const SEQUENCE_MILLIS = 1500;

/** The two keys of a command, wherever the focus is: `g`, then a letter. */
function useSequences(): void {
  useEffect(() => {
    let begun = Number.NEGATIVE_INFINITY;
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (isTyping(event) || event.key === 'Shift') return;
      // Caps Lock changes no command.
      const key = event.shiftKey ? event.key : event.key.toLowerCase();
      const isSecond = event.timeStamp - begun < SEQUENCE_MILLIS;
      begun = !isSecond && key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (!isSecond && key !== 'g') return;
      // Keys of their own do nothing in a sequence.
      event.preventDefault();
      if (!isSecond) return;
      for (const source of commandSources.get()) source.ofKeys(`g ${key}`)?.run();
    };
    window.addEventListener('keydown', onKey, { capture: true });
    return () => window.removeEventListener('keydown', onKey, { capture: true });
  }, []);
}

/** The words and the list of what they find: a combobox, so the focus stays in the field. */
function Finder({ onRun }: { readonly onRun: (command: Command) => void }) {
  const sources = useAtom(commandSources, (value) => value);
  const [query, setQuery] = useState('');
  const [active, setActive] = useState(0);
  const asked = useDeferredValue(query);
  const found = useMemo(() => findCommands(sources, asked, LISTED_MAX), [sources, asked]);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const place = clamp(active, 0, Math.max(0, found.length - 1));
  useEffect(() => {
    list.current?.children[place]?.scrollIntoView({ block: 'nearest' });
  }, [place]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: (place + 1) % Math.max(1, found.length),
      ArrowUp: place > 0 ? place - 1 : Math.max(0, found.length - 1),
      PageDown: place + 10,
      PageUp: place - 10,
    };
    const move = moves[event.key];
    const command = found[place];
    if (move !== undefined) setActive(clamp(move, 0, Math.max(0, found.length - 1)));
    else if (event.key === 'Enter' && command !== undefined) onRun(command);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        className={css.field}
        role="combobox"
        aria-label="Find an action, a pole, a span or a function"
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={found.length > 0 ? `${id}-${place}` : undefined}
        placeholder="Action, pole, span or function"
        spellCheck={false}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setActive(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id={`${id}-list`} className={css.list} role="listbox" aria-label="Commands">
        {found.map((command, row) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys of its list
          <div
            key={command.id}
            id={`${id}-${row}`}
            role="option"
            aria-selected={row === place}
            className={css.option}
            onPointerMove={() => setActive(row)}
            onClick={() => onRun(command)}
          >
            <span className={css.title}>{command.title}</span>
            {command.keys === undefined ? <small>{command.kind}</small> : <kbd className={parts.key}>{command.keys}</kbd>}
          </div>
        ))}
      </div>
      <p className={css.none} role="status">
        {found.length === 0 && 'Nothing found'}
      </p>
    </>
  );
}

/** The command palette: Ctrl+K or ⌘K opens it, also from a field. */
export function Palette() {
  const [open, setOpen] = useState(false);
  const chosen = useRef<Command | null>(null);
  useSequences();
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setOpen((was) => !was);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  return (
    <Dialog.Root
      open={open}
      onOpenChange={setOpen}
      // A command may move the focus, which a dialog that closes would take back.
      onOpenChangeComplete={(isOpen) => {
        if (isOpen) return;
        chosen.current?.run();
        chosen.current = null;
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className={parts.backdrop} />
        <Dialog.Popup className={css.palette}>
          <Dialog.Title className={parts.visuallyHidden}>Commands</Dialog.Title>
          <Finder
            onRun={(command) => {
              chosen.current = command;
              setOpen(false);
            }}
          />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
