const test = require('node:test');
test('adds', () => {});
