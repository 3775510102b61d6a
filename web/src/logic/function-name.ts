/** Names of functions: whose code it is, and how to say it in less space. */

/** Crates and binaries that belong to the language or the system. Their frames are drawn grey: they are rarely what one can change. */
const RUNTIME = new Set(['std', 'core', 'alloc', 'hashbrown', 'tokio', 'libc', 'backtrace', 'gimli', 'panic_unwind', 'compiler_builtins']);

/** Whose code a function is: its crate, or nothing where the name does not say. */
export interface Origin {
  readonly name: string;
  readonly kind: 'crate' | 'runtime' | 'native' | 'unknown';
}

/** `<a::B as c::D>::f` is code of `a`; `a::b::f` of `a`; `_start` and other plain names are native; `lib.so+0x12` has no name. */
export function originOf(functionName: string): Origin {
  if (functionName.startsWith('[') || /\+0x[0-9a-f]+$/.test(functionName)) return { name: '', kind: 'unknown' };
  const crate = /^[<&*\s]*(?:mut |dyn |impl )*([A-Za-z_]\w*)(?:\[[0-9a-f]+\])?::/.exec(functionName)?.[1];
  if (crate === undefined) return { name: '', kind: 'native' };
  return { name: crate, kind: RUNTIME.has(crate) ? 'runtime' : 'crate' };
}

/** Splits at `::` outside of angle brackets, round brackets and braces. */
function segments(functionName: string): readonly string[] {
  const found: string[] = [];
  let depth = 0;
  let from = 0;
  for (let index = 0; index < functionName.length; index++) {
    const character = functionName[index];
    if (character === '<' || character === '(' || character === '{' || character === '[') depth += 1;
    // The `>` of `->` closes nothing.
    else if ((character === '>' && functionName[index - 1] !== '-') || character === ')' || character === '}' || character === ']')
      depth -= 1;
    else if (character === ':' && functionName[index + 1] === ':' && depth === 0) {
      found.push(functionName.slice(from, index));
      from = index + 2;
      index += 1;
    }
  }
  found.push(functionName.slice(from));
  return found;
}

/** The name from long to short: `a::b::c`, `b::c`, `c`. A closure keeps the function it is in: `c::{closure#0}`. */
export function shorterNames(functionName: string): readonly string[] {
  const parts = segments(functionName);
  const names: string[] = [];
  for (let from = 0; from < parts.length; from++) {
    const rest = parts.slice(from);
    if (from > 0 && rest.every((part) => part.startsWith('{') || part.startsWith('<'))) break;
    names.push(rest.join('::'));
  }
  return names;
}

/** The shortest name that still says what is called. */
export function shortName(functionName: string): string {
  const names = shorterNames(functionName);
  return names[names.length - 1] ?? functionName;
}
