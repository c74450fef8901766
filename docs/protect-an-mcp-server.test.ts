import { createHash, randomBytes } from 'node:crypto'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { findFreePort } from '../packages/common/src/dev/dev-ports.ts'
import { openGuide } from './testing/guide.ts'
import { agree, giveEnvironment, ownAddress, startOAuthService } from './testing/oauth-server.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')
const dependencies = join(import.meta.dirname, '../services/auth/node_modules')
const REDIRECT = 'http://127.0.0.1:4711/callback'

test('a client that knows the address alone finds the way, and its token opens this server and no other', async () => {
  const guide = openGuide('protect-an-mcp-server.md')
  const own = await ownAddress()
  const shell = await openShell({ ...settings, ...own.settings })
  onTestFinished(() => shell.close())
  const port = await findFreePort()
  const resource = `http://127.0.0.1:${port}/mcp`
  const here = { 'https://mcp.example.com/mcp': resource }
  await shell.write('mcp.env', guide.file('mcp.env', here))
  const secret = settings.AUTH_JWT_SECRET
  const auth = await startOAuthService(shell, { url: own.url, file: 'mcp.env', secret })
  await shell.write('server.mjs', guide.file('server.mjs'))
  await symlink(dependencies, join(shell.folder, 'node_modules'))
  const start = `AUTH_URL=${auth.url} RESOURCE=${resource} PORT=${port} exec node server.mjs`
  await shell.start(start).says(/(server is listening)/)

  const refused = await fetch(resource)
  expect(refused.status).toBe(401)
  const [, address = ''] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? []
  const read = async (url: string) => (await fetch(url)).json() as Promise<Record<string, string[] & string>>
  const described = await read(address)
  expect(described.resource).toBe(resource)
  const issuer = String(described.authorization_servers?.[0])
  const endpoints = await read(`${issuer}/.well-known/oauth-authorization-server`)
  const registration = await fetch(endpoints.registration_endpoint as string, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Client', redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' }),
  })
  const { client_id } = (await registration.json()) as { client_id: string }
  const session = await auth.signIn('mcp@example.com')
  const call = (token: string) => fetch(resource, { headers: { authorization: `Bearer ${token}` } })
  const tokenFor = async (target: object) => {
    const verifier = randomBytes(48).toString('base64url')
    const code_challenge = createHash('sha256').update(verifier).digest('base64url')
    const request = { client_id, redirect_uri: REDIRECT, code_challenge, code_challenge_method: 'S256', ...target }
    const parameters = new URLSearchParams({ response_type: 'code', scope: 'openid email', ...request })
    const back = new URL(await agree(`${endpoints.authorization_endpoint}?${parameters}`, session))
    const code = back.searchParams.get('code') ?? ''
    const grant = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, client_id, code_verifier: verifier }
    const body = new URLSearchParams({ ...grant, ...target })
    const answer = await fetch(endpoints.token_endpoint as string, { method: 'POST', body })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  const token = await tokenFor({ resource })
  const opened = await call(token)
  expect(opened.status).toBe(200)
  const { user, ...facts } = (await opened.json()) as { user: string }
  expect(facts).toEqual({ application: client_id, scopes: ['openid', 'email'] })
  const other = await tokenFor({})
  for (const wrong of [other, session.authorization.slice(7), 'x']) expect((await call(wrong)).status).toBe(401)

  const there = { 'https://auth.example.com': auth.url }
  const added = await shell.run(auth.token + guide.take('"introspects"', { ...there, ...here }))
  const server = JSON.parse(added.stdout)
  await shell.write('introspect.mjs', guide.file('introspect.mjs'))
  giveEnvironment({ AUTH_URL: auth.url, CLIENT_ID: server.client_id, CLIENT_SECRET: server.client_secret })
  const { introspect } = await import(pathToFileURL(join(shell.folder, 'introspect.mjs')).href)
  expect(await introspect(token)).toMatchObject({ client_id, aud: resource })
  expect(await introspect(other)).toBeUndefined()
  await auth.withdraw(user, client_id)
  expect(await introspect(token)).toBeUndefined()
  expect(guide.untaken()).toEqual([])
})
