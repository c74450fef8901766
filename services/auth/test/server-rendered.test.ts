// A site that renders on its server, by the code of the guide and the real package: docs/connect-a-web-application.md.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GoTrueClient } from '@supabase/auth-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openGuide } from '../../../docs/testing/guide.ts'
import { startTestService, type TestService } from './service.ts'

interface Cookie {
  name: string
  value: string
}

interface Visitor {
  cookies: { getAll(): Cookie[]; setAll(changed: Cookie[]): void }
  userAgent: string
  address: string
}

/** The block of the guide, and the package's client for pages in a browser. */
interface Site {
  clientOf(visitor: Visitor): { auth: GoTrueClient }
  createBrowserClient(url: string, key: string, options: object): { auth: GoTrueClient }
}

const password = 'correct horse'
const USER_AGENT = 'Browser/1.0'
const ADDRESS = '192.0.2.1'

let service: TestService
let folder: string
let url: string
let site: Site

beforeAll(async () => {
  service = await startTestService({
    AUTH_API_EXTERNAL_URL: 'https://auth.example/auth/v1',
    AUTH_SECURITY_SB_FORWARDED_FOR_ENABLED: 'true',
  })
  url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  // Below this service, where the package is found.
  folder = await mkdtemp(join(import.meta.dirname, '../node_modules/.server-rendered-'))
  const block = openGuide('connect-a-web-application.md').take('createServerClient', { 'https://example.com': url })
  const file = join(folder, 'site.mjs')
  await writeFile(file, `${block}export { createBrowserClient } from '@supabase/ssr'\n`)
  site = await import(file)
})
afterAll(async () => {
  await rm(folder, { recursive: true })
  await service.close()
})

/** A browser that has signed in, and the cookies that it keeps for the site. */
async function signedIn(email: string) {
  const { userId } = await service.signedIn(email, password)
  const jar = new Map<string, string>()
  const getAll = () => [...jar].map(([name, value]) => ({ name, value }))
  const setAll = (changed: Cookie[]) => {
    for (const { name, value } of changed) value === '' ? jar.delete(name) : jar.set(name, value)
  }
  /** A request for a page; one that renders writes no cookies. */
  const load = async ({ storesCookies = false, ...visitor }: Partial<Visitor> & { storesCookies?: boolean } = {}) => {
    const cookies = { getAll, setAll: storesCookies ? setAll : () => {} }
    const client = site.clientOf({ cookies, userAgent: USER_AGENT, address: ADDRESS, ...visitor })
    const { data, error } = await client.auth.getUser()
    return data.user?.id ?? error?.code ?? error?.name
  }
  const age = () => {
    const [name, value] = [...jar][0] as [string, string]
    const session = JSON.parse(Buffer.from(value.slice('base64-'.length), 'base64url').toString())
    const aged = Buffer.from(JSON.stringify({ ...session, expires_at: 1 })).toString('base64url')
    jar.set(name, `base64-${aged}`)
  }
  const { error } = await site
    .clientOf({ cookies: { getAll, setAll }, userAgent: USER_AGENT, address: ADDRESS })
    .auth.signInWithPassword({ email, password })
  expect([error, jar.size]).toEqual([null, 1])
  return { userId, jar, load, age, cookies: { getAll, setAll } }
}

describe('a session that has expired', () => {
  test('lives through pages that cannot store it, minutes apart, and through the one that can', async () => {
    const { userId, load, age } = await signedIn('renders@example.com')
    for (let page = 0; page < 3; page++) {
      age()
      expect(await load()).toBe(userId)
      service.clock.advance({ seconds: 12 })
    }
    age()
    expect(await load({ storesCookies: true })).toBe(userId)
    for (let day = 0; day < 3; day++) {
      service.clock.advance({ seconds: 86_400 })
      age()
      expect(await load({ storesCookies: true })).toBe(userId)
    }
  })

  test('ends when another visitor brings its old cookie', async () => {
    const { userId, load, age } = await signedIn('robbed@example.com')
    age()
    expect(await load()).toBe(userId)
    service.clock.advance({ seconds: 12 })
    expect(await load({ userAgent: 'Thief/1.0' })).toBe('refresh_token_already_used')
    expect(await load()).toBe('refresh_token_not_found')
  })

  test('is refreshed by the page in the browser after the server has, if the server passes its visitor on', async () => {
    const { userId, load, age, cookies } = await signedIn('browser@example.com')
    age()
    expect(await load()).toBe(userId)
    service.clock.advance({ seconds: 12 })
    const page = site.createBrowserClient(url, 'unused', {
      cookies,
      isSingleton: false,
      // A proxy writes the address of a browser's request.
      global: { headers: { 'user-agent': USER_AGENT, 'sb-forwarded-for': ADDRESS } },
      auth: { autoRefreshToken: false, detectSessionInUrl: false },
    })
    expect((await page.auth.getUser()).data.user?.id).toBe(userId)
    expect(await load()).toBe(userId)
  })

  test('is lost to the page in the browser if the server passes nothing on', async () => {
    const { userId, load, age } = await signedIn('unknown@example.com')
    age()
    expect(await load({ userAgent: 'node', address: '192.0.2.200' })).toBe(userId)
    service.clock.advance({ seconds: 12 })
    expect(await load()).toBe('refresh_token_already_used')
  })
})
