import { expect, it } from 'vitest';
import { originOfPlaced, shorterNamesOfPlaced } from './placed-function';

it.each([
  ['work', '/srv/app.py', 'crate app.py'],
  ['get', '/venv/lib/python3.11/site-packages/requests/api.py', 'crate api.py'],
  ['Thread.run', '/usr/lib/python3.11/threading.py', 'runtime threading.py'],
  ['_find_and_load', '<frozen importlib._bootstrap>', 'runtime <frozen importlib._bootstrap>'],
  ['burn', '/srv/app.mjs', 'crate app.mjs'],
  ['emit', 'node:events', 'runtime node:events'],
  ['deploy::hash', 'src/hash.rs', 'crate deploy'],
  ['deflate', '', 'native '],
])('%s of %s is code of %s', (name, file, expected) => {
  const origin = originOfPlaced({ function: name, file, line: 7 });
  expect(`${origin.kind} ${origin.name}`).toBe(expected);
});

it('counts the native code of an interpreter as the language', () => {
  const lookUp = { function: 'dict_lookup', file: 'Objects/dictobject.c', line: 7 };
  expect(originOfPlaced({ ...lookUp, whose: 'language' }).kind).toBe('runtime');
  expect(originOfPlaced({ ...lookUp, whose: 'library' }).kind).toBe('native');
});

it('names a function of a script by its place, and others by themselves', () => {
  expect(shorterNamesOfPlaced({ function: 'work', file: '/srv/app.py', line: 12 })).toEqual(['work (app.py:12)', 'work']);
  expect(shorterNamesOfPlaced({ function: 'burn', file: '/srv/app.js', line: 0 })).toEqual(['burn (app.js)', 'burn']);
  expect(shorterNamesOfPlaced({ function: 'a::b', file: 'src/a.rs', line: 3 })).toEqual(['a::b', 'b']);
});

it('marks functions of the kernel, whose code they are, and never takes them for scripts', () => {
  const read = { function: 'ksys_read', file: '', line: 0, runtime: 'kernel' };
  expect(originOfPlaced(read)).toEqual({ name: 'kernel', kind: 'crate' });
  expect(shorterNamesOfPlaced(read)).toEqual(['[k] ksys_read']);
  expect(originOfPlaced({ ...read, function: '[kernel]' }).name).toBe('kernel');
});
