/** Selectors of series, as PromQL writes them: `env="prod", version=~"7|8"`. The server has the last word; here it is about typing errors. */

/** A condition on one label. */
export interface Matcher {
  readonly name: string;
  readonly op: '=' | '!=' | '=~' | '!~';
  readonly value: string;
}

/** What a text selects, or what is wrong with it, in words. */
export interface Selector {
  readonly matchers: readonly Matcher[];
  readonly wrong: string | null;
}

const NAME = /^[A-Za-z_][\w.]*/;
const OP = /^(?:=~|!~|!=|=)/;
const VALUE = /^"((?:[^"\\]|\\.)*)"/;
const EXAMPLE = 'env="prod"';

const wrong = (text: string): Selector => ({ matchers: [], wrong: text });

/** Reads conditions with commas between them; braces around them are optional. An empty text selects everything. */
export function readSelector(text: string): Selector {
  const trimmed = text.trim();
  const isOpened = trimmed.startsWith('{');
  if (isOpened !== trimmed.endsWith('}')) return wrong(`A brace is ${isOpened ? 'not closed' : 'closed, but not opened'}.`);
  let rest = (isOpened ? trimmed.slice(1, -1) : trimmed).trim();
  const matchers: Matcher[] = [];
  while (rest !== '') {
    const name = NAME.exec(rest)?.[0];
    if (name === undefined) return wrong(`Write a label and its value, as ${EXAMPLE}: ${rest} does not begin with the name of a label.`);
    rest = rest.slice(name.length).trimStart();
    const op = OP.exec(rest)?.[0] as Matcher['op'] | undefined;
    if (op === undefined) return wrong(`Write =, !=, =~ or !~ and a value after ${name}, as ${EXAMPLE}.`);
    rest = rest.slice(op.length).trimStart();
    const literal = VALUE.exec(rest);
    if (literal === null) {
      return wrong(
        rest.startsWith('"')
          ? `The quotation mark of ${name} is not closed.`
          : `Write the value of ${name} in quotation marks, as ${EXAMPLE}.`,
      );
    }
    const value = (literal[1] ?? '').replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter));
    matchers.push({ name, op, value });
    rest = rest.slice(literal[0].length).trimStart();
    if (rest !== '' && !rest.startsWith(',')) return wrong(`Write a comma between ${name} and ${rest}.`);
    rest = rest.slice(1).trimStart();
  }
  return { matchers, wrong: null };
}

const quoted = (value: string): string => `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`;

/** `env="prod", version=~"7|8"`. */
export function printSelector(matchers: readonly Matcher[]): string {
  return matchers.map(({ name, op, value }) => `${name}${op}${quoted(value)}`).join(', ');
}

/** The query of the server for profiles of a type and a service with these labels. */
export function queryOf(profileType: string, service: string, labels: readonly Matcher[]): string {
  return `${profileType}{${printSelector([{ name: 'service_name', op: '=', value: service }, ...labels])}}`;
}
