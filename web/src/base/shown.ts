// Names come from other programs. React lets none of them be markup, but a bidirectional override turns the rest of its line around,
// and a character without width makes two names look the same. They are shown as the terminal shows them: `\u{202e}`.

// Controls, separators of lines and paragraphs, and what Unicode calls default-ignorable, with the interlinear annotations: the list of
// crates/longpole/src/screen.rs. Tabs and line breaks stay: a page has room for them, and source lines need them.
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb]|\p{Default_Ignorable_Code_Point}/gu;

/** What nearly every text is, found out many times faster. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  return code < 0x100 ? `\\x${digits.padStart(2, '0')}` : `\\u{${digits}}`;
}

/** A text in which every character is seen, and none changes how its neighbours are. */
export function shown(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSAFE, escaped);
}
