// GET /audit: acts with their actors and subjects, by any filter and page by page.
import { expect } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService, test } from '../../../test/service.ts'
import { cleanUp } from '../../housekeeping.ts'

const as = (service: TestService, token: string, method: string, path: string, body?: object) =>
  service.call(method, path, {
    headers: { token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })

const auditOf = async (service: TestService, token: string, query = '') =>
  (await as(service, token, 'GET', `/audit${query}`)).body.success

test('an act is listed with its token, subject and the address of the client', async () => {
  const service = await startTestService({ MEDIA_RATE_LIMIT_HEADER: 'x-real-ip' })
  const { token, id } = await service.newToken({ scopes: ['admin'] })
  const other = await service.newToken()
  const headers = { token, 'x-real-ip': '203.0.113.7' }
  expect((await service.call('DELETE', `/tokens/${other.id}`, { headers })).status).toBe(204)
  const { items } = await auditOf(service, token)
  expect(items).toEqual([
    {
      ...{ id: expect.any(String), at: service.clock.now().toISOString(), token: { id, name: 'test' }, operator: null },
      ...{ action: 'token_revoked', subject: { kind: 'token', id: other.id }, address: '203.0.113.7' },
      details: { name: 'test', sessions_ended: 0 },
    },
  ])
  await service.close()
})

test('token, action, subject, from and to choose, and pages follow each other without a gap', async ({ service }) => {
  const admin = await service.newToken({ scopes: ['admin'] })
  const clip = idIn(await service.readyAlike(gif(31, 12, [{ delay: 10 }])))
  for (const title of ['a', 'b', 'c']) {
    service.clock.advance({ seconds: 60 })
    await as(service, admin.token, 'PATCH', `/media/${clip}`, { title })
  }
  service.clock.advance({ seconds: 60 })
  const before = service.clock.now().toISOString()
  await as(service, admin.token, 'POST', '/tokens', { name: 'made' })
  const count = async (query: string) => (await auditOf(service, admin.token, query)).items.length
  expect(await count(`?subject=${clip}`)).toBe(3)
  expect(await count(`?token=${admin.id}`)).toBe(4)
  expect(await count(`?token=${admin.id}&action=token_created`)).toBe(1)
  expect(await count(`?token=${admin.id}&from=${before}`)).toBe(1)
  expect(await count(`?token=${admin.id}&to=${before}`)).toBe(3)
  const seen: string[] = []
  for (let cursor = ''; ; ) {
    const page = await auditOf(service, admin.token, `?token=${admin.id}&limit=1${cursor}`)
    seen.push(...page.items.map((item: { id: string }) => item.id))
    if (!page.next_cursor) break
    cursor = `&cursor=${page.next_cursor}`
  }
  expect([seen.length, new Set(seen).size]).toEqual([4, 4])
  for (const [query, param] of [
    ['token=x', 'token'],
    ['action=x', 'action'],
    ['from=x', 'from'],
    ['cursor=x', 'cursor'],
    ['limit=101', 'limit'],
  ]) {
    const answer = await as(service, admin.token, 'GET', `/audit?${query}`)
    expect(answer).toMatchObject({ status: 422, body: { error: { code: 'invalid_field', param } } })
  }
  const withNul = await as(service, admin.token, 'GET', '/audit?subject=%00')
  expect(withNul).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } })
  const usual = await service.newToken()
  const refused = await as(service, usual.token, 'GET', '/audit')
  expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_scope'])
})

test('an act is known for as long as MEDIA_AUDIT_KEEP says', async () => {
  const service = await startTestService({ MEDIA_AUDIT_KEEP: '2d' })
  const { token } = await service.newToken({ scopes: ['admin'] })
  await as(service, token, 'POST', '/tokens', { name: 'made' })
  const listed = async () => {
    await cleanUp(service.deps)
    return (await auditOf(service, token)).items.length
  }
  service.clock.advance({ seconds: 2 * 86_400 - 1 })
  expect(await listed()).toBe(1)
  service.clock.advance({ seconds: 2 })
  expect(await listed()).toBe(0)
  await service.close()
})
