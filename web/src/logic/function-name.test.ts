import { expect, it } from 'vitest';
import { originOf, shorterNames, shortName } from './function-name';

it.each([
  ['deploy::bundle::hash_block', 'crate deploy'],
  ['<deploy::Pack as core::iter::Iterator>::next', 'crate deploy'],
  ['<&mut deploy::Pack>::next', 'crate deploy'],
  ['core::num::<impl u64>::rotate_left', 'runtime core'],
  ['<alloc::boxed::Box<dyn FnOnce<()>> as FnOnce<()>>::call_once', 'runtime alloc'],
  ['github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil.Serve.func1', 'crate pulumi/pulumi'],
  ['google.golang.org/grpc.(*Server).handleStream', 'crate google.golang.org/grpc'],
  ['main.Burn.Create', 'crate main'],
  ['net/http.(*conn).serve', 'native '],
  ['runtime.goexit', 'native '],
  ['_start', 'native '],
  ['operator new(unsigned long)', 'native '],
  ['libz.so.1+0x4a10', 'unknown '],
  ['[stack deeper than the 16 KiB that were copied]', 'unknown '],
])('%s is code of %s', (name, expected) => {
  const origin = originOf(name);
  expect(`${origin.kind} ${origin.name}`).toBe(expected);
});

it.each([
  ['deploy::bundle::hash_block', ['deploy::bundle::hash_block', 'bundle::hash_block', 'hash_block']],
  ['deploy::serve::{{closure}}', ['deploy::serve::{{closure}}', 'serve::{{closure}}']],
  ['<a::B<C::D> as e::F>::next', ['<a::B<C::D> as e::F>::next', 'next']],
  ['<F as Fn(&str) -> Option<u8>>::call', ['<F as Fn(&str) -> Option<u8>>::call', 'call']],
  ['tokio::task::Harness<T,S>::poll', ['tokio::task::Harness<T,S>::poll', 'task::Harness<T,S>::poll', 'Harness<T,S>::poll', 'poll']],
  [
    'github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil.(*Server).Serve.func1',
    ['github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil.(*Server).Serve.func1', 'rpcutil.(*Server).Serve.func1'],
  ],
  ['net/http.(*conn).serve', ['net/http.(*conn).serve', 'http.(*conn).serve']],
  ['runtime.goexit', ['runtime.goexit']],
  ['main', ['main']],
  ['{closure#0}', ['{closure#0}']],
])('%s gets shorter from the front', (name, expected) => {
  expect(shorterNames(name)).toEqual(expected);
  expect(shortName(name)).toBe(expected[expected.length - 1]);
});
