import { describe, expect, it } from 'vitest';
import { decodeTree } from '../api/decode.gen';
import { deployRecording } from '../testing/recordings.mjs';
import { foundSpans, readFind } from './find';
import { canFilter, servicesOf, togglingHidden, togglingOnly, visibilityIn } from './service-chips';

const tree = decodeTree(deployRecording().tree());

describe('the services of a trace', () => {
  it('are those of spans, the largest first', () => {
    const services = servicesOf(tree);
    expect(services.length).toBeGreaterThan(0);
    expect(services.map(({ spans }) => spans)).toEqual(services.map(({ spans }) => spans).sort((a, b) => b - a));
    for (const { name, number } of services) expect(tree.services[number]).toBe(name);
  });

  it('are found by the search that a chip writes', () => {
    for (const { name, spans } of servicesOf(tree)) {
      const found = foundSpans(tree, readFind(togglingOnly('', false, name))).length;
      expect(found).toBeGreaterThanOrEqual(spans);
      expect(foundSpans(tree, readFind(togglingHidden('', false, name))).length).toBe(tree.spans.parent.length - found);
    }
  });
});

describe('a chip', () => {
  it('shows only its service, and all again', () => {
    expect(togglingOnly('dur>100ms', false, 'cart')).toBe('dur>100ms service=cart');
    expect(visibilityIn('dur>100ms service=cart', true, 'cart')).toBe('only');
    expect(togglingOnly('dur>100ms service=cart', true, 'cart')).toBe('dur>100ms');
    expect(togglingOnly('service=cart', true, 'my shop')).toBe('service="my shop"');
    expect(visibilityIn('service="my shop"', true, 'my shop')).toBe('only');
  });

  it('hides its service beside others, and shows it again', () => {
    const two = togglingHidden(togglingHidden('', false, 'cart'), true, 'shop');
    expect(two).toBe('service!=cart service!=shop');
    expect([visibilityIn(two, true, 'shop'), visibilityIn(two, true, 'mail')]).toEqual(['hidden', 'shown']);
    expect(togglingHidden(two, true, 'cart')).toBe('service!=shop');
    expect(togglingHidden('service=mail', true, 'cart')).toBe('service!=cart');
  });

  it('does not filter while the trace only marks what was found, or by no name', () => {
    expect(visibilityIn('service=cart', false, 'cart')).toBe('shown');
    expect(canFilter('a "b"')).toBe(true);
    expect(canFilter('')).toBe(false);
  });
});
