/** Names of functions: their origin, and shorter forms. */

/** Crates and binaries of the language or the system. Their frames are grey, because users rarely change them. */
const RUNTIME = new Set(['std', 'core', 'alloc', 'hashbrown', 'tokio', 'libc', 'backtrace', 'gimli', 'panic_unwind', 'compiler_builtins']);

/** The origin of a function: its crate, or nothing if the name does not show it. */
export interface Origin {
  readonly name: string;
  readonly kind: 'crate' | 'runtime' | 'native' | 'unknown';
}

/** The folders before a Go package: `github.com/pulumi/pulumi/sdk/v3/go/common/util/` of `….rpcutil.Serve`. */
const GO_FOLDERS = /^(?:[\w.~%@+-]+\/)+/;

/** Hosts whose modules have an owner and a project; elsewhere the host and one part are a module. */
const GO_FORGES = new Set(['github.com', 'gitlab.com', 'bitbucket.org']);

function goFolders(functionName: string): string | null {
  return functionName.includes('::') ? null : (GO_FOLDERS.exec(functionName)?.[0] ?? null);
}

/** The module of a Go function: `pulumi/pulumi`, `google.golang.org/grpc`, `main`; `null` for the standard library and for other languages. */
function goModule(functionName: string): string | null {
  if (functionName.startsWith('main.')) return 'main';
  const folders = goFolders(functionName);
  if (folders === null) return null;
  const [lastPart = ''] = functionName.slice(folders.length).split('.');
  const [host = '', owner = '', project = ''] = [...folders.split('/').slice(0, -1), lastPart];
  if (!host.includes('.')) return null;
  return GO_FORGES.has(host) ? `${owner}/${project}` : `${host}/${owner}`;
}

/**
 * `<a::B as c::D>::f` is code of `a`; `a::b::f` of `a`; `github.com/a/b/c.f` of `a/b`; `_start` and other plain names are native;
 * `lib.so+0x12` has no name.
 */
export function originOf(functionName: string): Origin {
  if (functionName.startsWith('[') || /\+0x[0-9a-f]+$/.test(functionName)) return { name: '', kind: 'unknown' };
  const crate = /^[<&*\s]*(?:mut |dyn |impl )*([A-Za-z_]\w*)(?:\[[0-9a-f]+\])?::/.exec(functionName)?.[1];
  if (crate === undefined) {
    const module = goModule(functionName);
    return module === null ? { name: '', kind: 'native' } : { name: module, kind: 'crate' };
  }
  return { name: crate, kind: RUNTIME.has(crate) ? 'runtime' : 'crate' };
}

/** Splits at `::` outside angle brackets, round brackets and braces. */
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

/** The name from long to short: `a::b::c`, `b::c`, `c`. A closure keeps its function: `c::{closure#0}`; a Go function its package. */
export function shorterNames(functionName: string): readonly string[] {
  const folders = goFolders(functionName);
  if (folders !== null) return [functionName, functionName.slice(folders.length)];
  const parts = segments(functionName);
  const names: string[] = [];
  for (let from = 0; from < parts.length; from++) {
    const rest = parts.slice(from);
    if (from > 0 && rest.every((part) => part.startsWith('{') || part.startsWith('<'))) break;
    names.push(rest.join('::'));
  }
  return names;
}

/** The shortest name that still identifies the function. */
export function shortName(functionName: string): string {
  const names = shorterNames(functionName);
  return names[names.length - 1] ?? functionName;
}
