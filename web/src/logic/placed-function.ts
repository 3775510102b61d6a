/** Origin and display name of script and kernel functions, whose own name does not show them. */

import { type Origin, originOf, shorterNames } from './function-name';

/** A function and its place. */
export interface PlacedFunction {
  readonly function: string;
  readonly file: string;
  readonly line: number;
  /** What runs it, if no binary holds it. */
  readonly runtime?: string | null;
  /** Whose code it is, if that is known. */
  readonly whose?: string;
  /** Origin and shorter names that are known already: profiles of a server have no files. */
  readonly known?: { readonly origin: Origin; readonly names: readonly string[] };
}

/** Code of a language, the interpreter's own C functions included, whose names are plain. */
const OF_LANGUAGE: ReadonlySet<string> = new Set(['language', 'interpreter']);

/** Files of languages in which a function's name says little without its file. */
const SCRIPT = /\.(?:py|[cm]?[jt]sx?)$|^<frozen |^node:/;

/** Files that come with the language: modules of CPython and of Node. */
const SCRIPT_OF_LANGUAGE = /^<frozen |^node:|\/lib\/python3\.\d+\/(?!(?:site|dist)-packages\/)/;

/** The name of a file without its folders. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The origin: the kernel, the file of a script, or else the origin in the name; native code of a language is its runtime. */
export function originOfPlaced({ function: name, file, runtime, whose = '', known }: PlacedFunction): Origin {
  if (known !== undefined) return known.origin;
  if (runtime === 'kernel') return { name: 'kernel', kind: 'crate' };
  if (!SCRIPT.test(file)) {
    const origin = originOf(name);
    return origin.kind === 'native' && OF_LANGUAGE.has(whose) ? { name: '', kind: 'runtime' } : origin;
  }
  return { name: fileName(file), kind: SCRIPT_OF_LANGUAGE.test(file) ? 'runtime' : 'crate' };
}

/** The name from long to short; a script's starts with its place: `work (app.py:12)`, `work`; the kernel's have a mark: `[k] ksys_read`. */
export function shorterNamesOfPlaced({ function: name, file, line, runtime, known }: PlacedFunction): readonly string[] {
  if (known !== undefined) return known.names;
  if (runtime === 'kernel') return [`[k] ${name}`];
  if (!SCRIPT.test(file)) return shorterNames(name);
  const place = line > 0 ? `${fileName(file)}:${line}` : fileName(file);
  return [`${name} (${place})`, name];
}
