import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// In development Vite serves the page, which gets its data from a running `longpole open` or `longpole serve`.
const api = process.env['LONGPOLE_API'] ?? 'http://127.0.0.1:4777';

export default defineConfig({
  plugins: [react()],
  server: { proxy: { '/api': api, '/longpole': api, '/trace': api } },
  build: {
    target: 'es2022',
    // The content security policy allows only files of our own origin, so nothing may be inlined as a data URI.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
    // compress.mjs checks the budget by compressed size, not by minified size.
    chunkSizeWarningLimit: 1024,
  },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
