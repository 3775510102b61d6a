import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// In development the page is served by Vite and asks a running `longpole open` for its data.
const api = process.env['LONGPOLE_API'] ?? 'http://127.0.0.1:4777';

export default defineConfig({
  plugins: [react()],
  server: { proxy: { '/api': api } },
  build: {
    target: 'es2022',
    // The content security policy allows only files of our own origin, so nothing may be inlined as a data URI.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    reportCompressedSize: false,
    // compress.mjs holds the budget, by what is sent and not by what is minified.
    chunkSizeWarningLimit: 1024,
  },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
