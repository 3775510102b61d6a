import { type ComponentProps, type KeyboardEvent, useEffect, useRef } from 'react';
import { isTyping } from './keyboard';

/** The field that searches the page: `/` goes to it, Escape empties it, or leaves it if it is empty. */
export function FindInput({
  text,
  find,
  onEnter,
  ...attributes
}: {
  readonly text: string;
  readonly find: (text: string) => void;
  readonly onEnter?: (event: KeyboardEvent) => void;
} & Pick<ComponentProps<'input'>, 'aria-label' | 'aria-describedby' | 'aria-invalid' | 'placeholder' | 'title'>) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== '/' || isTyping(event)) return;
      event.preventDefault();
      box.current?.focus();
      box.current?.select();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') onEnter?.(event);
    if (event.key !== 'Escape') return;
    // The first one clears the search, and no selection.
    event.stopPropagation();
    if (text === '') box.current?.blur();
    else find('');
  };
  return (
    <input
      {...attributes}
      ref={box}
      type="search"
      data-find=""
      spellCheck={false}
      value={text}
      onChange={({ target }) => find(target.value)}
      onKeyDown={onKeyDown}
    />
  );
}
