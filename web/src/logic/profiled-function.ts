/** Names of functions as profiles of any language have them: nothing but the name says whose code it is. */
import { type Origin, originOf, shorterNames } from './function-name';

/** `com.shop.checkout.Step.run`, and `com/shop/checkout/Step.run`, as Java's agents write it: the package in front of the class. */
const JAVA_PACKAGE = /^(?:[a-z_][\w$]*([./]))(?:[a-z_][\w$]*\1)+(?=[A-Z])/;
/** Parts of a Java package that name its owner: `com.shop.checkout`. */
const OWNER_PARTS = 3;
/** `net/http` of `net/http.(*conn).serve`; `main` of `main.work`; `app` of Python's `app.work`. */
const PACKAGE = /^(?:[\w~%@+-]+\/)*[\w~%@+-]+(?=\.)/;
/** The file in front of a function: `app.py:12 - work`, `./src/app.js:work`. */
const FILE = /^(?:[^\s:]*\/)?([^\s:/]+\.(?:py|rb|php|[cm]?[jt]sx?))\b/;

const OTHER: Origin = { name: 'other code', kind: 'unknown' };

/** The package, module or file of a function: it gives the box its colour. */
export function originOfProfiled(functionName: string): Origin {
  const file = FILE.exec(functionName)?.[1];
  if (file !== undefined) return { name: file, kind: 'crate' };
  const known = originOf(functionName);
  if (known.kind !== 'native') return known;
  const ofJava = JAVA_PACKAGE.exec(functionName)?.[0];
  if (ofJava !== undefined) {
    const parts = ofJava.slice(0, -1).split(/[./]/);
    return { name: parts.slice(0, OWNER_PARTS).join('.'), kind: 'crate' };
  }
  const name = PACKAGE.exec(functionName)?.[0];
  return name === undefined ? OTHER : { name, kind: 'crate' };
}

/** The name from long to short: a method of Java without its package. */
export function shorterNamesOfProfiled(functionName: string): readonly string[] {
  const ofJava = JAVA_PACKAGE.exec(functionName)?.[0];
  return ofJava === undefined ? shorterNames(functionName) : [functionName, functionName.slice(ofJava.length)];
}
