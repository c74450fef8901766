// Clients by public id, and the record of their use.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { findClient, publicIdOf } from './find-client.ts'
import { touchClient } from './oauth-clients.store.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ AUTH_OAUTH_SERVER_ENABLED: 'true' })
})
afterAll(() => service.close())

const created = async () => {
  const client = { redirect_uris: ['https://app.example/callback'] }
  return (await service.post('/admin/oauth/clients', client, service.admin)).body.client_id as string
}
const found = async (id: string) => (await findClient(service.deps, id)) ?? expect.fail('no such client')

test('a registered client is found by its UUID, and nothing by any other text', async () => {
  const id = await created()
  expect(publicIdOf(await found(id))).toBe(id)
  const others = ['', 'x', `${id}x`, 'https://app.example', service.deps.newId()]
  expect(await Promise.all(others.map((other) => findClient(service.deps, other)))).toEqual(others.map(() => undefined))
})

test('clients that are looked up at once are found each in its place', async () => {
  const [first, second] = [await created(), await created()]
  const ids = [second, service.deps.newId(), first.toUpperCase(), second]
  const clients = await Promise.all(ids.map((id) => findClient(service.deps, id)))
  expect(clients.map((client) => client?.id)).toEqual([second, undefined, first, second])
})

test('a use is recorded at most once a day', async () => {
  const id = await created()
  const { clock, deps } = service
  const touched = async (seconds: number) => {
    clock.advance({ seconds })
    const before = await found(id)
    await Promise.all([touchClient(deps.db, before, clock.now()), touchClient(deps.db, before, clock.now())])
    return (await found(id)).last_used_at
  }
  expect((await found(id)).last_used_at).toBeNull()
  const first = await touched(1)
  expect(first).toEqual(clock.now())
  expect(await touched(86_399)).toEqual(first)
  expect(await touched(1)).toEqual(clock.now())
  expect((await service.get(`/admin/oauth/clients/${id}`, service.admin)).body.last_used_at).toBe(
    clock.now().toISOString(),
  )
})
