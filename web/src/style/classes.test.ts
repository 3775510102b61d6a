/** Every class that a view names exists, and a view names every class: TypeScript checks neither. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { STATE_CLASSES } from '../testing/state-classes';

const VIEWS = new URL('../views/', import.meta.url).pathname;
const files = readdirSync(VIEWS, { recursive: true }).map(String);

it('classes of views and of style sheets are the same', () => {
  const used = new Map<string, Set<string>>();
  for (const file of files.filter((name) => name.endsWith('.tsx'))) {
    const text = readFileSync(join(VIEWS, file), 'utf8');
    const body = text.replace(/^import .*$/gm, '');
    for (const [, local = '', sheet = ''] of text.matchAll(/import (\w+) from '([^']+\.module\.css)'/g)) {
      const path = normalize(join(dirname(file), sheet));
      const names = used.get(path) ?? new Set(STATE_CLASSES);
      used.set(path, names);
      for (const [, name = ''] of body.matchAll(new RegExp(`\\b${local}\\.(\\w+)`, 'g'))) names.add(name);
    }
  }
  for (const file of files.filter((name) => name.endsWith('.module.css'))) {
    const text = readFileSync(join(VIEWS, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
    const defined = new Set([...text.matchAll(/\.([a-zA-Z_][\w-]*)(?=[^{}]*\{)/g)].map(([, name = '']) => name));
    const named = used.get(file) ?? new Set<string>();
    expect({ file, missing: [...named].filter((name) => !defined.has(name) && !STATE_CLASSES.includes(name)) }).toEqual({
      file,
      missing: [],
    });
    expect({ file, unused: [...defined].filter((name) => !named.has(name)) }).toEqual({ file, unused: [] });
  }
});
