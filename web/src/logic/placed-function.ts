/** Functions of scripts and of the kernel: whose code they are, and what to call them, is not said by their name. */

import { type Origin, originOf, shorterNames } from './function-name';

/** A function, and where it stands. */
export interface PlacedFunction {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  /** What runs it where no binary holds it. */
  readonly runtime?: string | null;
}

/** Files of languages in which the name of a function says little without its file. */
const SCRIPT = /\.(?:py|[cm]?[jt]sx?)$|^<frozen |^node:/;

/** Those that come with the language: modules of CPython and of Node. */
const SCRIPT_OF_LANGUAGE = /^<frozen |^node:|\/lib\/python3\.\d+\/(?!(?:site|dist)-packages\/)/;

function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Whose code it is: the kernel's, of a script its file, else what the name says. */
export function originOfPlaced({ function: name, file, runtime }: PlacedFunction): Origin {
  if (runtime === 'kernel') return { name: 'kernel', kind: 'crate' };
  if (!SCRIPT.test(file)) return originOf(name);
  return { name: fileName(file), kind: SCRIPT_OF_LANGUAGE.test(file) ? 'runtime' : 'crate' };
}

/** The name from long to short; of a script it begins with its place: `work (app.py:12)`, `work`; the kernel's are marked: `[k] ksys_read`. */
export function shorterNamesOfPlaced({ function: name, file, line, runtime }: PlacedFunction): readonly string[] {
  if (runtime === 'kernel') return [`[k] ${name}`];
  if (!SCRIPT.test(file)) return shorterNames(name);
  const place = line > 0 ? `${fileName(file)}:${line}` : fileName(file);
  return [`${name} (${place})`, name];
}
