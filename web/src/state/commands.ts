/** What the reader can do on the page now: each part of the page adds its commands while it is on the screen, and the palette lists them. */
import { useEffect } from 'react';
import { bestMatches, type Match } from '../logic/fuzzy';
import { createAtom } from './store';

export interface Command {
  /** Distinguishes it from all others. */
  readonly id: string;
  readonly title: string;
  /** What it is: `action`, `pole`, `span`, `function`. */
  readonly kind: string;
  /** Key that does the same. */
  readonly keys?: string;
  readonly run: () => void;
}

/** Commands, or things that are too many for a command each. */
export interface CommandSource {
  /** The best commands for what somebody typed, best first. */
  find(query: string, limit: number): readonly Match<Command>[];
  /** The command of two keys, such as `g p`. */
  ofKeys(keys: string): Command | null;
}

/** Commands that stand in a list. */
export function commandList(commands: readonly Command[]): CommandSource {
  return {
    find: (query, limit) => bestMatches(query, commands, ({ title }) => title, limit),
    ofKeys: (keys) => commands.find((command) => command.keys?.toLowerCase() === keys) ?? null,
  };
}

/** The sources, in the order in which they came. */
export const commandSources = createAtom<readonly CommandSource[]>([]);

/** Adds commands while the caller is on the screen. */
export function useCommands(source: CommandSource): void {
  useEffect(() => {
    commandSources.set([...commandSources.get(), source]);
    return () => commandSources.set(commandSources.get().filter((other) => other !== source));
  }, [source]);
}

/** The best commands of all sources; without a query, those of the first source first. */
export function findCommands(sources: readonly CommandSource[], query: string, limit: number): readonly Command[] {
  const found = sources.flatMap((source) => source.find(query, limit));
  const ordered = query.trim() === '' ? found : [...found].sort((a, b) => b.score - a.score);
  return ordered.slice(0, limit).map(({ entry }) => entry);
}
