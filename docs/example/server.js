// The application's server: serves the page with its modules, and answers /api/me for the signed-in user. A token that
// the public keys of auth verify names the user. This needs no secret and no call to auth.
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRemoteJWKSet, errors, jwtVerify } from 'jose'

const { PORT = '3000', AUTH_URL = 'http://127.0.0.1:8081', INBOX_URL = 'http://127.0.0.1:8025' } = process.env

if (!/^\d{1,5}$/.test(PORT) || Number(PORT) > 65535) refuse('PORT is not a port number.')
if (!/^https?:\/\//.test(AUTH_URL) || !URL.canParse(AUTH_URL)) refuse('AUTH_URL is not an http address.')

function refuse(because) {
  console.error(because)
  process.exit(1)
}

// Auth names itself by its base URL in the tokens (`iss`), unless AUTH_JWT_ISSUER is set there.
const issuer = AUTH_URL
const keys = createRemoteJWKSet(new URL(`${AUTH_URL}/.well-known/jwks.json`))

/** Returns the claims of the caller's access token, or undefined without a valid one. Throws if auth gives no keys. */
async function readUser(request) {
  const [, token] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '') ?? []
  if (!token) return undefined
  try {
    // Admin tokens belong to no user: they have no `sub`.
    const rules = { issuer, audience: 'authenticated', requiredClaims: ['sub', 'exp'] }
    const { payload } = await jwtVerify(token, keys, rules)
    return payload
  } catch (error) {
    // A failed download of the keys says nothing about the token; every other error of jose does.
    const isUnverified = error instanceof errors.JWKSTimeout || error.code === 'ERR_JOSE_GENERIC'
    if (isUnverified || !(error instanceof errors.JOSEError)) throw error
    return undefined
  }
}

async function answerMe(request, response) {
  let user
  try {
    user = await readUser(request)
  } catch {
    return sendJson(response, 503, { error: `The server gets no keys from auth at ${AUTH_URL}. Try again shortly.` })
  }
  if (!user) return sendJson(response, 401, { error: 'The server asks for a valid access token. Sign in again.' })
  const { sub: id, email, role, aal, exp } = user
  sendJson(response, 200, { id, email, role, secondFactor: aal === 'aal2', expiresAt: new Date(exp * 1000) })
}

const folder = dirname(fileURLToPath(import.meta.url))

/** The files the server gives out, by path, and no other. */
const files = new Map([
  ['/style.css', { file: join(folder, 'style.css'), type: 'text/css' }],
  ['/app.js', { file: join(folder, 'app.js'), type: 'text/javascript' }],
  ...findModules(),
])

/**
 * Lists the modules of `@supabase/auth-js` and of its one dependency, under the addresses of the page's import map.
 * They import each other without `.js`, so their addresses have none. A bundler makes all of this unnecessary.
 */
function findModules() {
  const authJs = createRequire(import.meta.url).resolve('@supabase/auth-js')
  const tslib = createRequire(authJs).resolve('tslib/tslib.es6.js')
  const root = join(dirname(authJs), '../module')
  const names = readdirSync(root, { recursive: true }).filter((name) => name.endsWith('.js'))
  const modules = names.map((name) => [`/modules/auth-js/${name.slice(0, -3).replaceAll('\\', '/')}`, join(root, name)])
  return [...modules, ['/modules/tslib', tslib]].map(([path, file]) => [path, { file, type: 'text/javascript' }])
}

async function sendPage(response) {
  const page = await readFile(join(folder, 'index.html'), 'utf8')
  const [, importMap] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(page)
  const hash = createHash('sha256').update(importMap).digest('base64')
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'sha256-${hash}'`,
    "style-src 'self'",
    'img-src data:',
    `connect-src 'self' ${new URL(AUTH_URL).origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  response.setHeader('content-security-policy', policy.join('; '))
  send(response, 200, 'text/html', page)
}

const sendJson = (response, status, value) => send(response, status, 'application/json', JSON.stringify(value))

function send(response, status, type, body) {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
    // The address of the page holds a sign-in code for a moment.
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  })
  response.end(body)
}

async function answer(request, response) {
  const [path] = request.url.split('?', 1)
  if (request.method !== 'GET') return sendJson(response, 405, { error: 'The server answers GET only.' })
  if (path === '/') return sendPage(response)
  if (path === '/config.json') return sendJson(response, 200, { authUrl: AUTH_URL, inboxUrl: INBOX_URL })
  if (path === '/api/me') return answerMe(request, response)
  const found = files.get(path)
  if (!found) return sendJson(response, 404, { error: 'There is nothing at this address.' })
  send(response, 200, found.type, await readFile(found.file))
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error)
    sendJson(response, 500, { error: 'Something went wrong on the server.' })
  })
})

server.on('error', (error) => {
  if (error.code !== 'EADDRINUSE') throw error
  console.error(`Port ${PORT} is in use. Set PORT to another one.`)
  process.exitCode = 1
})
server.listen(Number(PORT), 'localhost', () => {
  console.log(`Open http://localhost:${PORT} in a browser. Ctrl-C stops the server.`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit())
