// Waits for something slow, then computes. FIX=1 waits for a tenth of it.
const sleep = (millis) => new Promise((done) => setTimeout(done, millis));
async function askUpstream() {
  await sleep(process.env.FIX ? 120 : 1200);
}
function render() {
  const end = Date.now() + 300;
  let x = 0;
  while (Date.now() < end) x += Math.sqrt(x + 1);
  return x;
}
askUpstream().then(render);
