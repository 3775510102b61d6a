import { expect, it } from 'vitest';
import { originOfProfiled, shorterNamesOfProfiled } from './profiled-function';

it('the name of a function says whose code it is, in any language', () => {
  const origins = [
    'net/http.(*conn).serve',
    'encoding/json.Marshal',
    'runtime.gcBgMarkWorker.func1',
    'main.work',
    'github.com/shop/cart/rules.Parse',
    'com.shop.checkout.charge.Step3.run',
    'com/shop/checkout/Main.handle',
    'java.lang.Thread.run',
    'app.py:12 - work',
    './src/app.js:work',
    'flask.app.full_dispatch_request',
    'shop::rules::parse',
    '__libc_start_main',
    'lib.so+0x12',
  ].map((name) => originOfProfiled(name).name);
  expect(origins).toEqual([
    'net/http',
    'encoding/json',
    'runtime',
    'main',
    'shop/cart',
    'com.shop.checkout',
    'com.shop.checkout',
    'java.lang',
    'app.py',
    'app.js',
    'flask',
    'shop',
    'other code',
    '',
  ]);
});

it('a narrow box has the class and the method', () => {
  expect(shorterNamesOfProfiled('com.shop.checkout.Step.run').at(-1)).toBe('Step.run');
  expect(shorterNamesOfProfiled('net/http.(*conn).serve').at(-1)).toBe('http.(*conn).serve');
});
