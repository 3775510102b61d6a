import { Dialog } from '@base-ui/react/dialog';
import { useEffect, useMemo, useState } from 'react';
import { commandList, useCommands } from '../../state/commands';
import { CloseIcon } from './icons';
import { isTyping } from './keyboard';
import css from './parts.module.css';

const KEYS: readonly { readonly title: string; readonly keys: readonly (readonly [readonly string[], string])[] }[] = [
  {
    title: 'Time axis',
    keys: [
      [['W', 'S'], 'zoom in, out'],
      [['A', 'D'], 'earlier, later'],
      [['Z'], 'zoom to the selected range or span'],
      [['0'], 'whole run or trace'],
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
    title: 'Operations, when focused',
    keys: [
      [['↑', '↓'], 'row above, below'],
      [['Enter'], 'show only these spans in the trace, or draw their durations large'],
      [['←', '→'], 'in the large histogram: shorter, longer; with Shift, several durations'],
    ],
  },
  {
    title: 'Boxes of the flame graph, when focused',
    keys: [
      [['↑', '↓'], 'caller, largest callee'],
      [['←', '→'], 'box to the left, right'],
      [['Enter'], 'select the function, or unfold the foreign frames'],
      [['C'], 'fold the foreign frames around the box again'],
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
    title: 'Flame graph of profiles',
    keys: [
      [['click', 'Enter'], 'zoom into the box, or out again'],
      [['Shift', 'click'], 'select the function'],
      [['/'], 'find functions'],
      [['Esc'], 'whole graph, then deselect the function'],
    ],
  },
  {
    title: 'Everywhere',
    keys: [
      [['Esc'], 'end the search, then deselect the function, then the range and thread, then the span'],
      [['Ctrl', 'K'], 'find an action, a long pole, a span or a function'],
      [['/'], 'find rows of the trace, or recordings'],
      [['G', 'L'], 'go to the long poles'],
      [['G', 'T'], 'go to the rows of the trace'],
      [['G', 'O'], 'go to the operations'],
      [['G', 'P'], 'go to the flame graph'],
      [['G', 'R'], 'go to the recordings'],
      [['G', 'C'], 'compare two recordings'],
      [['G', 'S'], 'go to the traces, on the page of a server'],
      [['G', 'M'], 'go to the map of services, on the page of a server'],
      [['G', 'F'], 'go to the profiles, on the page of a server'],
      [['T'], 'next theme'],
      [['?'], 'this list'],
    ],
  },
];

/** The list of all keys. */
export function Help() {
  const [open, setOpen] = useState(false);
  const source = useMemo(
    () => commandList([{ id: 'help', title: 'Keyboard and mouse', kind: 'action', keys: '?', run: () => setOpen(true) }]),
    [],
  );
  useCommands(source);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!isTyping(event) && event.key === '?') setOpen(true);
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
