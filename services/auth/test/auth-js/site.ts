// A site whose pages load the public client as a browser does, from the installed package and without a bundler.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

const CLIENT = new URL('../module/', import.meta.resolve('@supabase/auth-js'))
const TSLIB = new URL(`file://${createRequire(fileURLToPath(CLIENT)).resolve('tslib').replace(/\.js$/, '.es6.mjs')}`)

/** Files of the package import each other without an extension. */
const fileOf = (path: string): URL =>
  path === '/tslib' ? TSLIB : new URL(`.${path.slice('/auth-js'.length)}.js`, CLIENT)

const IMPORTS = { imports: { tslib: '/tslib', '@supabase/auth-js': '/auth-js/index' } }

const page = (script: string) => `<!doctype html><title>App</title>
<script type="importmap">${JSON.stringify(IMPORTS)}</script>
<input name="email" autocomplete="username webauthn">
<script type="module">${script}</script>`

export interface AuthJsSite {
  url: string
  close(): void
}

/** Starts a site at `http://localhost:<port>`, each page of which runs `script`. */
export async function startAuthJsSite(script: (url: string) => string): Promise<AuthJsSite> {
  const server: Server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', url)
    if (pathname !== '/tslib' && !pathname.startsWith('/auth-js/')) {
      response.setHeader('content-type', 'text/html').end(page(script(url)))
      return
    }
    const text = await readFile(fileOf(pathname)).catch(() => undefined)
    response.setHeader('content-type', 'text/javascript')
    response.writeHead(text ? 200 : 404).end(text)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}`
  return { url, close: () => server.close() }
}
