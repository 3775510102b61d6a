const test = require('node:test');
function retryUntilReady() {
  const end = Date.now() + (process.env.FIX ? 10 : 1500);
  while (Date.now() < end) Math.sqrt(end);
}
test('is ready', retryUntilReady);
