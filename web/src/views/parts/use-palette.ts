import { type RefObject, useEffect, useRef } from 'react';
import { type Palette, readPalette } from '../../canvas/palette';
import { paletteAtom } from '../../state/preferences';

/** The colours in force at an element. `changed` is called when the theme changes. */
export function usePalette(host: RefObject<HTMLElement | null>, changed: () => void): () => Palette {
  const palette = useRef<Palette | null>(null);
  const notify = useRef(changed);
  useEffect(() => {
    notify.current = changed;
  });
  useEffect(
    () =>
      paletteAtom.watch(() => {
        palette.current = null;
        notify.current();
      }),
    [],
  );
  return useRef(() => {
    palette.current ??= readPalette(host.current ?? document.body);
    return palette.current;
  }).current;
}
