import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type Plugin } from 'vite'

// The build is committed, so its names contain no hashes: a changed text changes one file.
// Libraries have files of their own, which change only with them.
const names = {
  entryFileNames: 'assets/[name].js',
  chunkFileNames: (c: { name: string }) => `assets/${c.name.toLowerCase()}.js`,
  assetFileNames: 'assets/[name][extname]',
}

const vendors = [
  { name: 'react', test: /node_modules\/(react|react-dom|scheduler)\// },
  { name: 'tanstack', test: /node_modules\/@tanstack\// },
  {
    name: 'codemirror',
    test: /node_modules\/(@codemirror|@lezer|@marijn|style-mod|w3c-keyname|crelt)\//,
  },
  { name: 'd3', test: /node_modules\/d3-/ },
]

export default defineConfig({
  base: '/ui/',
  build: {
    outDir: process.env.UI_OUT ?? 'dist',
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'], // these versions support light-dark()
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    license: { fileName: 'NOTICES.md' },
    rolldownOptions: {
      input: { main: 'index.html' },
      output: { ...names, codeSplitting: { groups: vendors } },
      checks: { moduleLevelDirective: false }, // "use client" has no effect here
    },
  },
  worker: { format: 'es', rolldownOptions: { output: names } },
  plugins: [source()],
  server: {
    proxy: { '/v1': { target: process.env.TROUPE_SERVER ?? 'http://127.0.0.1:8070', ws: true } },
  },
  test: { environment: 'node', include: ['test/unit/*.test.ts'] },
} as Parameters<typeof defineConfig>[0])

/**
 * source writes a hash of the build's sources. A Go test compares it with the tree, without
 * Node.js.
 */
function source(): Plugin {
  return {
    name: 'source',
    apply: 'build',
    generateBundle() {
      const files = readdirSync('src', { recursive: true, withFileTypes: true })
        .filter(f => f.isFile() && !f.name.endsWith('.gen.ts'))
        .map(f => join(f.parentPath, f.name))
      files.push(
        'index.html',
        'package-lock.json',
        'package.json',
        'tsconfig.json',
        'vite.config.ts',
      )
      const hash = (b: string | Buffer) => createHash('sha256').update(b).digest('hex')
      const lines = files.sort().map(f => `${hash(readFileSync(f))} ${f}\n`)
      this.emitFile({ type: 'asset', fileName: 'SOURCE', source: hash(lines.join('')) + '\n' })
    },
  }
}
