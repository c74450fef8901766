import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import bcrypt from 'bcrypt'
import { expect, vi } from 'vitest'
import { importLines } from '../../../test/import-lines.ts'
import { test } from '../../../test/service.ts'

/** Above the cost of hashes that are verified side by side. */
const COSTLY = `$2b$13$${'a'.repeat(22)}${'b'.repeat(31)}`

test('a sign-in whose client disconnects leaves the queue of costly hashes, and is no failed attempt', async ({
  service: shared,
}) => {
  // Longer than this test: no request leaves the queue because it has waited long enough.
  const service = await shared.with({ AUTH_API_MAX_REQUEST_DURATION: '3600' })
  const emails = Array.from({ length: 10 }, (_, index) => `costly-${index}@example.com`)
  await importLines(
    service,
    emails.map((email) => ({ email, email_verified: true, password_hash: COSTLY })),
  )
  const held = Promise.withResolvers<string>()
  const hash = vi.spyOn(bcrypt, 'hash').mockReturnValue(held.promise as never)
  const base = await service.app.listen({ port: 0, host: '127.0.0.1' })
  const signIn = (email: string) => {
    const headers = { host: 'auth.example', 'content-type': 'application/json' }
    const sent = request(`${base}/token?grant_type=password`, { method: 'POST', headers })
    const answer = new Promise<unknown>((resolve) => {
      sent.on('response', (response) => resolve(json(response))).on('error', () => resolve('disconnected'))
    })
    sent.end(JSON.stringify({ email, password: 'wrong horse' }))
    return { answer, disconnect: () => sent.destroy() }
  }
  const attempts = async () => {
    const { rows } = await service.deps.pool.query(
      `select coalesce(sum(points), 0)::int as sum from rate_limits where key like 'password-account:%'`,
    )
    return rows[0].sum
  }
  const [first = '', ...others] = emails
  const verified = signIn(first)
  await expect.poll(() => hash.mock.calls.length).toBe(1)
  // The queue holds no more.
  const waiting = others.slice(0, 8).map(signIn)
  await expect.poll(attempts).toBe(9)
  for (const { disconnect } of waiting) disconnect()
  await expect.poll(attempts).toBe(1)
  const last = signIn(others[8] as string)
  await expect.poll(attempts).toBe(2)
  held.resolve(COSTLY.replaceAll('b', 'c'))
  for (const { answer } of [verified, last]) expect(await answer).toMatchObject({ error_code: 'invalid_credentials' })
  expect(hash).toHaveBeenCalledTimes(2)
  hash.mockRestore()
  await service.close()
})
