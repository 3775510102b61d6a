/** The smallest store: a value to read, set and watch. Drawing code watches it without React. */
import { useSyncExternalStore } from 'react';

export interface Atom<T> {
  get(): T;
  set(value: T): void;
  /** Calls back after each change; returns a function that ends it. */
  watch(listener: () => void): () => void;
}

export function createAtom<T>(initial: T): Atom<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    watch: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** What `select` reads from the atom. The component renders again only when that changes, so `select` returns a plain value. */
export function useAtom<T, Selected>(atom: Atom<T>, select: (value: T) => Selected): Selected {
  return useSyncExternalStore(atom.watch, () => select(atom.get()));
}
