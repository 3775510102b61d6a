import { expect, test } from 'vitest';
import { firstSpans } from './first-span';

test('each language has steps that name the server', () => {
  const all = firstSpans('tools.example', 4318, false);
  expect(all.map(({ language }) => language)).toEqual(['any SDK', 'Python', 'Node.js', 'Java', 'Go', 'Rust', 'curl']);
  for (const { language, steps } of all) expect(steps.at(-1), language).toContain('http://tools.example:4318');
});

test('a server at another port, with tokens, is named as it is', () => {
  for (const { steps } of firstSpans('localhost', 4831, true)) {
    expect(steps.at(-1)).toContain('http://localhost:4831');
    expect(steps.at(-1)).toMatch(/[Bb]earer.*TOKEN/);
  }
});

test('the body of curl is the JSON of one span', () => {
  const [command = ''] = firstSpans('localhost', 4318, false).find(({ language }) => language === 'curl')?.steps ?? [];
  const body = /-d '(.*)'$/.exec(command)?.[1]?.replaceAll("'$(date +%s)'", '1795867200') ?? '';
  const span = JSON.parse(body).resourceSpans[0].scopeSpans[0].spans[0];
  expect([span.startTimeUnixNano, span.endTimeUnixNano]).toEqual(['1795867200000000000', '1795867200500000000']);
});
