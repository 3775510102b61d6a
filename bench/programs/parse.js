// Sorts with a comparison that parses dates. FIX=1 parses each once.
const rows = Array.from({ length: 40000 }, (_, i) => ({ at: new Date(1.6e12 + ((i * 7919) % 40000) * 6e4).toISOString(), i }));
function compareDates(a, b) {
  return new Date(a.at) - new Date(b.at);
}
function sortRows() {
  if (process.env.FIX) {
    rows.forEach((row) => (row.time = Date.parse(row.at)));
    rows.sort((a, b) => a.time - b.time);
  } else {
    for (let i = 0; i < 4; i++) [...rows].reverse().sort(compareDates);
  }
}
function encodeRows() {
  let size = 0;
  for (let i = 0; i < 6; i++) size += JSON.stringify(rows).length;
  return size;
}
sortRows();
encodeRows();
