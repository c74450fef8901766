import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { ExternalAccount } from '../services/auth/src/adapters/oauth/provider.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../services/auth/test/openid-provider.ts'
import { openGuide } from './testing/guide.ts'
import { adminBy, decodeJwt } from './testing/jwt.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { settings } = inject('devServices')
const guide = openGuide('add-a-provider.md')
const repository = join(import.meta.dirname, '..')
let shell: Shell
let corp: OpenIdProvider

beforeAll(async () => {
  // The test only reads the provider's redirect, and continues at the service itself.
  ;[shell, corp] = await Promise.all([
    openShell(settings),
    startOpenIdProvider({}, 'https://auth.example.com/callback'),
  ])
})
afterAll(async () => {
  await shell.close()
  await corp.close()
})

test('settings enable a built-in provider and a custom one, and a user signs in', async () => {
  await shell.write('github.env', guide.file('github.env'))
  const own = corp.settings('OIDC_CORP')
  const client = {
    'https://login.corp.example': corp.issuer,
    'your-client-id': own.AUTH_EXTERNAL_OIDC_CORP_CLIENT_ID as string,
    'your-client-secret': own.AUTH_EXTERNAL_OIDC_CORP_SECRET as string,
  }
  await shell.write('corp.env', guide.file('corp.env', client))
  const more = 'AUTH_EGRESS_ALLOW_CIDRS=127.0.0.0/8; AUTH_CUSTOM_OAUTH_EXTERNAL_URL=https://auth.example.com'
  const start = `set -a; . ./github.env; . ./corp.env; ${more}; exec npx -y pnpm@12 -C services/auth start`
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)
  // The Host header that the proxy of auth.example.com sends.
  const here = { 'https://auth.example.com': url, 'curl ': "curl -H 'X-Forwarded-Host: auth.example.com' " }

  const [enabled = '', github = ''] = (await shell.run(guide.take('/settings', here))).stdout.split(
    /(?<=\})\n?(?=http)/,
  )
  expect(JSON.parse(enabled).external).toMatchObject({ github: true, google: false, corp: true })
  const authorize = new URL(github.trim())
  expect(authorize.origin + authorize.pathname).toBe('https://github.com/login/oauth/authorize')
  expect(authorize.searchParams.get('client_id')).toBe('your-client-id')

  corp.next({ sub: 'c-1', email: 'katherine@corp.example', email_verified: true })
  expect((await shell.run(guide.take('provider=corp', here))).stdout.trim()).toContain(corp.issuer)
  const asProxied = { redirect: 'manual', headers: { 'x-forwarded-host': 'auth.example.com' } } as const
  const begun = await fetch(`${url}/authorize?provider=corp`, asProxied)
  const callback = await corp.visit(String(begun.headers.get('location')))
  const cookie = String(begun.headers.get('set-cookie')).split(';', 1)[0] as string
  const back = await fetch(url + callback.pathname + callback.search, { redirect: 'manual', headers: { cookie } })
  const bearer = adminBy(settings.AUTH_JWT_SECRET as string).authorization
  const { 'https://login.corp.example': _, ...credentials } = client
  const asAdmin = { ...here, 'Bearer $TOKEN': bearer, ...credentials }
  const acme = { ...asAdmin, 'https://login.acme.example': corp.issuer }
  const added = JSON.parse((await shell.run(guide.take('"custom:acme", "name"', acme))).stdout)
  expect(added).toMatchObject({ identifier: 'custom:acme', discovery_document: { issuer: corp.issuer } })
  expect((await shell.run(guide.take('provider=custom:acme', here))).stdout.trim()).toContain(corp.issuer)
  const forge = { ...asAdmin, 'https://forge.example': corp.issuer }
  const plain = JSON.parse((await shell.run(guide.take('custom:forge', forge))).stdout)
  expect(plain).toMatchObject({ identifier: 'custom:forge', token_url: `${corp.issuer}/login/oauth/access_token` })

  const fragment = new URLSearchParams(String(back.headers.get('location')).split('#')[1])
  expect(decodeJwt(String(fragment.get('access_token')))).toMatchObject({ email: 'katherine@corp.example' })
})

test('the example provider maps the profile to a user, and accepts only a verified address', async () => {
  const kinds = pathToFileURL(join(repository, 'services/auth/src/adapters/oauth/provider.ts')).href
  await shell.write('example.ts', guide.file('example.ts', { '../../oauth/provider.ts': kinds }))
  const { example } = await import(pathToFileURL(join(shell.folder, 'example.ts')).href)
  const endpoints = example.endpoints(undefined)
  const identify = (user: object): Promise<ExternalAccount> => example.identify({ endpoints, get: async () => user })
  const { emails, sub } = await identify({ id: 7, email: 'ada@example.com' })
  expect({ emails, sub }).toEqual({ emails: [{ email: 'ada@example.com', verified: false, primary: true }], sub: 7 })
  const verified = await identify({ id: 7, email: 'ada@example.com', email_verified: true })
  expect(verified.emails[0]?.verified).toBe(true)
  expect(example.endpoints('http://127.0.0.1:1').token).toBe('http://127.0.0.1:1/oauth/token')
  expect(guide.untaken()).toEqual([])
})
