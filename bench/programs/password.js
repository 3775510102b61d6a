// Hashes a password synchronously, and renders. FIX=1 hashes with few rounds.
const crypto = require('crypto');
function hashPassword(text) {
  return crypto.pbkdf2Sync(text, 'salt', process.env.FIX ? 1 : 1500000, 64, 'sha512').toString('hex');
}
function renderRows(count) {
  let text = '';
  for (let row = 0; row < count; row++) text += `<tr><td>${row}</td><td>${Math.sqrt(row).toFixed(3)}</td></tr>`;
  return text.length;
}
hashPassword('secret');
renderRows(600000);
