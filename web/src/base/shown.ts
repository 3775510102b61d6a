// Names come from other programs. React prevents markup, but a bidirectional override reverses the rest of its line,
// and a zero-width character makes two names look the same. The page shows these as the terminal does: `\u{202e}`.

// Controls, line and paragraph separators, Unicode's default-ignorable characters and interlinear annotations: the list of
// crates/longpole/src/screen.rs. Tabs and line breaks stay: a page has room for them, and source lines need them.
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds exactly these
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb]|\p{Default_Ignorable_Code_Point}/gu;

/** A quick check that nearly every text passes. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code < 0x100 ? `\\x${digits.padStart(2, '0')}` : `\\u{${digits}}`;
}

/** A text in which every character is visible, and none changes its neighbours. */
export function shown(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSAFE, escaped);
}
