/**
 * Profiles of a made-up shop, for browser stories: `cart` in two versions whose newer one parses its rules far more often, its memory, and `checkout`
 * with many functions. Sent as folded stacks, as `/ingest` of Pyroscope takes them.
 */

const GO_SERVER = 'net/http.(*conn).serve;net/http.HandlerFunc.ServeHTTP';
const CART = `${GO_SERVER};main.handleCart`;

/** Stacks of `cart`, each with samples at 100 Hz of version 8 and of version 7 in the last hour, and of version 7 in the hour before. */
const CPU = [
  [`${CART};main.loadRules;main.parseRules`, 200, 30, 60],
  [`${CART};main.writeAnswer;encoding/json.Marshal`, 30, 30, 70],
  [`${CART};main.priceOf`, 25, 20, 40],
  [`${CART};main.loadRules;main.readFile;syscall.Read`, 20, 0, 0],
  ['runtime.gcBgMarkWorker;runtime.scanobject', 25, 16, 30],
];

/** Bytes of `cart` that are in use, and that it allocated. */
const MEMORY = [
  [`${CART};main.loadRules;main.parseRules`, 9_400_000],
  [`${CART};main.writeAnswer;encoding/json.Marshal`, 2_100_000],
  ['main.main;main.openCache', 900_000],
];

const CHECKOUT_STEPS = ['validate', 'reserve', 'charge', 'notify', 'audit', 'render'];

/** Many functions, deep and shallow. */
function checkoutStacks() {
  const stacks = [];
  for (let number = 0; number < 90; number += 1) {
    const step = CHECKOUT_STEPS[number % CHECKOUT_STEPS.length];
    const calls = Array.from(
      { length: 1 + (number % 5) },
      (_, depth) => `com.shop.checkout.${step}.Step${(number * (depth + 3)) % 31}.run`,
    );
    stacks.push([`java.lang.Thread.run;com.shop.checkout.Main.handle;com.shop.checkout.Main.${step};${calls.join(';')}`, 400 - number * 4]);
  }
  return stacks;
}

const folded = (rows) =>
  rows
    .filter(([, value]) => value > 0)
    .map((row) => row.join(' '))
    .join('\n');

const MINUTE = 60;

/** Pushes: the name of `/ingest`, minutes before now, stacks, and further parameters. */
export function shopProfiles() {
  const cpu = (column) => folded(CPU.map((row) => [row[0], row[column]]));
  return [
    { name: 'cart.cpu{env=prod,version=8}', minutesAgo: 20, stacks: cpu(1) },
    { name: 'cart.cpu{env=prod,version=7}', minutesAgo: 40, stacks: cpu(2) },
    { name: 'cart.cpu{env=prod,version=7}', minutesAgo: 90, stacks: cpu(3) },
    { name: 'cart.inuse_space{env=prod,version=8}', minutesAgo: 20, stacks: folded(MEMORY), units: 'bytes' },
    { name: 'cart.alloc_space{env=prod,version=8}', minutesAgo: 20, stacks: folded(MEMORY), units: 'bytes' },
    { name: 'checkout.cpu{env=prod}', minutesAgo: 20, stacks: folded(checkoutStacks()) },
  ];
}

const DAY = 24 * 60 * MINUTE;
const LEDGER_A_DAY = 12;

/** Memory of `ledger`, which keeps 5 MB more each day of the last week. */
function growingProfiles() {
  return Array.from({ length: 7 * LEDGER_A_DAY }, (_, index) => {
    const daysAgo = index / LEDGER_A_DAY;
    const kept = Math.round(40e6 - daysAgo * 5e6);
    const stacks = `main.main;main.openIndex 60000000\nmain.main;main.handle;main.remember ${kept}`;
    return { name: 'ledger.inuse_space{env=prod}', minutesAgo: 5 + (daysAgo * DAY) / MINUTE, stacks, units: 'bytes' };
  });
}

const sendAll = async (profiles, pyroscope, nowMillis) => {
  for (const profile of profiles) await send(profile, pyroscope, nowMillis);
};

/** Sends the profiles of a service that grows. */
export const sendGrowingProfiles = (pyroscope, nowMillis) => sendAll(growingProfiles(), pyroscope, nowMillis);

/** Sends those of the shop to a server's port for Pyroscope's clients. */
export const sendShopProfiles = (pyroscope, nowMillis) => sendAll(shopProfiles(), pyroscope, nowMillis);

async function send({ name, minutesAgo, stacks, units }, pyroscope, nowMillis) {
  const from = Math.floor(nowMillis / 1000 - minutesAgo * MINUTE);
  const parameters = new URLSearchParams({ name, from, until: from + 10, sampleRate: 100, ...(units === undefined ? {} : { units }) });
  const sent = await fetch(`${pyroscope}/ingest?${parameters}`, { method: 'POST', body: stacks });
  if (!sent.ok) throw new Error(`${name}: the server answers ${sent.status}: ${await sent.text()}`);
}
