import { describe, expect, it } from 'vitest';
import { shown } from './shown';

describe('names of strangers', () => {
  it('are seen as they are', () => {
    expect(shown('pay\u202egnp.exe')).toBe('pay\\u{202e}gnp.exe');
    expect(shown('ad\u200bmin\u{e0041}\ufeff')).toBe('ad\\u{200b}min\\u{e0041}\\u{feff}');
    expect(shown('\x1b[2J\x9b\x7f\r\xad')).toBe('\\x1b[2J\\x9b\\x7f\\x0d\\xad');
  });

  it('stay as they are where every character is seen', () => {
    const text = 'SELECT *\n\tFROM spans — é漢🙂 العربية';
    expect(shown(text)).toBe(text);
  });
});
