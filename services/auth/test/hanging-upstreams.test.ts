// Upstreams that never answer. A request that waits for one holds no connection to the database and no slot. So a
// process with a single connection serves others meanwhile.
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createProviders } from '../src/adapters/providers/index.ts'
import { createLeakedPasswords } from '../src/core/passwords/leaked-passwords.ts'
import { type ProviderSignIns, startProviderSignIns } from './provider-sign-in.ts'
import { startUpstream, type Upstream } from './upstream.ts'

/** Limit longer than the test: a request that is served meanwhile waited for no upstream. */
const NEVER_MS = 600_000
const AT_ONCE = 3

const held: ServerResponse[] = []
const hold = (response: ServerResponse) => void held.push(response)

let all: ProviderSignIns
let upstream: Upstream
beforeAll(async () => {
  upstream = await startUpstream(hold)
  all = await startProviderSignIns({ AUTH_DB_MAX_POOL_SIZE: '1', AUTH_WORKERS_ENABLED: 'false' })
})
afterAll(async () => {
  await all.close()
  await upstream.close()
})

let people = 0
const person = () => ({ email: `waits-${people++}@example.com`, password: 'correct horse battery' })
const times = <Result>(make: () => Result) => Array.from({ length: AT_ONCE }, make)

/** Creates a user while these requests hang at the upstream, which sees `calls` of them, and ends them. */
async function expectOthersServed(requests: Promise<unknown>[], calls = AT_ONCE) {
  let ended = 0
  const ends = requests.map((request) => request.finally(() => ended++))
  await expect.poll(() => held.length).toBe(calls)
  const created = await all.service.post('/admin/users', { ...person(), email_confirm: true }, all.service.admin)
  expect([created.status, ended]).toEqual([200, 0])
  for (const response of held.splice(0)) response.destroy()
  await Promise.allSettled(ends)
}

test('a captcha that is never verified delays no other request', async () => {
  const service = await all.service.with({
    ...{ AUTH_SECURITY_CAPTCHA_ENABLED: 'true', AUTH_SECURITY_CAPTCHA_SECRET: 'x' },
    ...{ AUTH_SECURITY_CAPTCHA_TIMEOUT: '10m', AUTH_SECURITY_CAPTCHA_URL: upstream.url },
  })
  await expectOthersServed(times(() => service.post('/signup', { ...person(), captcha_token: 'proof' })))
  await service.close()
})

test('a list of leaked passwords that never answers delays no other request', async () => {
  const service = await all.service.with({ AUTH_PASSWORD_HIBP_ENABLED: 'true', AUTH_PASSWORD_HIBP_URL: upstream.url })
  const { config, log } = service.deps
  const patience = { timeoutMs: NEVER_MS, atOnceMs: NEVER_MS }
  service.deps.leakedPasswords = createLeakedPasswords(config.passwords.leaks, log, patience)
  const known = person()
  await all.service.post('/admin/users', { ...known, email_confirm: true }, all.service.admin)
  await expectOthersServed([
    service.post('/signup', person()),
    service.post('/signup', person()),
    service.post('/token?grant_type=password', known),
  ])
  await service.close()
})

test.each([
  ['token', 'github', AT_ONCE],
  ['profile', 'github', AT_ONCE],
  // Sign-ins share one fetch of the keys.
  ['keys', 'google', 1],
] as const)('a provider that never sends its %s delays no other request', async (step, name, calls) => {
  all.service.deps.providers = await createProviders(all.service.deps.config, NEVER_MS)
  const begun = await Promise.all(times(() => all.begin(name, all.newAccount(name))))
  all.far.answer(name, step, hold)
  await expectOthersServed(
    begun.map(({ comeBack }) => comeBack()),
    calls,
  )
  all.far.answer(name, step)
})
