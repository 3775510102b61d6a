import { describe, expect, it } from 'vitest';
import { printSelector, queryOf, readSelector } from './selector';

const read = (text: string) => readSelector(text).wrong ?? printSelector(readSelector(text).matchers);

describe('a selector', () => {
  it('has conditions with commas between them, with braces or without', () => {
    expect(read('env="prod", version=~"7|8"')).toBe('env="prod", version=~"7|8"');
    expect(read('{env!="prod",pod!~"a.*",}')).toBe('env!="prod", pod!~"a.*"');
    expect(read('k8s.pod.name = "a b"')).toBe('k8s.pod.name="a b"');
    expect(read('path="a\\"b\\\\c"')).toBe('path="a\\"b\\\\c"');
    expect([read(''), read(' {} ')]).toEqual(['', '']);
  });

  it('says in words what is wrong with it', () => {
    expect(read('env=prod')).toBe('Write the value of env in quotation marks, as env="prod".');
    expect(read('env="prod')).toBe('The quotation mark of env is not closed.');
    expect(read('env')).toBe('Write =, !=, =~ or !~ and a value after env, as env="prod".');
    expect(read('env="a" b="c"')).toBe('Write a comma between env and b="c".');
    expect(read('{env="a"')).toBe('A brace is not closed.');
    expect(read('env="a"}')).toBe('A brace is closed, but not opened.');
    expect(read('="a"')).toBe('Write a label and its value, as env="prod": ="a" does not begin with the name of a label.');
  });
});

it('the query is a type with the service and the labels behind it', () => {
  const { matchers } = readSelector('env="prod"');
  expect(queryOf('a:b:c:d:e', 'my "cart"', matchers)).toBe('a:b:c:d:e{service_name="my \\"cart\\"", env="prod"}');
});
