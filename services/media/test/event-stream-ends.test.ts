// Ends of event streams: the state is that of the details, and a token that may no longer read sees nothing more.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStream, setProgressOf } from './clients/event-stream.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService } from './service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => service.close())

const later = { prefer: 'respond-async' }
let sizes = 20
const newClip = async (token = service.token) =>
  idIn(await service.upload(gif(sizes++, 10, [{ delay: 10 }]), [], { ...later, token }))

test.for([
  ['hidden', 'update clips set hidden_at = now() where id = $1'],
  ['deleted', `update clips set expires_at = '2000-01-01' where id = $1`],
] as const)(
  'a clip that becomes %s while it is processed ends its stream, as its details say',
  async ([state, change]) => {
    const id = await newClip()
    const stream = await openStream(service, id)
    await expect.poll(stream.events).toHaveLength(1)
    await service.deps.pool.query(change, [id])
    await expect.poll(() => stream.isOver).toBe(true)
    expect(stream.events().at(-1)).toEqual([state, { state, progress: 0 }])
    const details = await service.get(`/media/${id}`, { token: service.token })
    expect(details.body.success?.state ?? details.body.error.code).toBe(state === 'deleted' ? 'gone' : state)
  },
)

test('the stream of a hidden clip says so, whatever its files', async () => {
  const ready = idIn(await service.readyAlike(gif(sizes++, 11, [{ delay: 10 }])))
  const { token } = await service.newToken({ scopes: ['admin'] })
  const decide = (action: string) =>
    service.call('POST', `/media/${ready}/moderation`, {
      body: JSON.stringify({ action, ...(action === 'hide' && { reason: 'spam' }) }),
      headers: { token, 'content-type': 'application/json' },
    })
  const last = async (headers = {}) => {
    const { status, text } = await service.get(`/media/${ready}/events`, { token: service.token, ...headers })
    return [status, /^event: (\w+)$/m.exec(text)?.[1]]
  }
  expect(await last()).toEqual([200, 'ready'])
  await decide('hide')
  expect(await last({ 'last-event-id': 'ready' })).toEqual([200, 'hidden'])
  expect(await last({ 'last-event-id': 'hidden' })).toEqual([204, undefined])
  await decide('unhide')
  expect(await last({ 'last-event-id': 'hidden' })).toEqual([200, 'ready'])
})

test.for([
  ['is revoked', 'revoked_at = now()', ['read', 'write']],
  ['expires', `expires_at = '2000-01-01'`, ['read', 'write']],
  ['loses the scope read', `scopes = '{write}'`, ['read', 'write']],
  ['loses the scope admin', `scopes = '{read}'`, ['admin']],
] as const)('a stream ends when its token %s, and another of the same clip goes on', async ([, change, scopes]) => {
  const owner = await service.newToken()
  const watcher = scopes[0] === 'admin' ? await service.newToken({ scopes: [...scopes] }) : owner
  const id = await newClip(owner.token)
  const admin = await service.newToken({ scopes: ['admin'] })
  const [ending, going] = [
    await openStream(service, id, { token: watcher.token }),
    await openStream(service, id, { token: admin.token }),
  ]
  await expect.poll(() => ending.events().length + going.events().length).toBe(2)
  await service.deps.pool.query(`update api_tokens set ${change} where id = $1`, [watcher.id])
  await setProgressOf(service, id, 0.5)
  await expect.poll(() => ending.isOver).toBe(true)
  expect(ending.events()).toHaveLength(1)
  await expect.poll(() => going.events().length).toBe(2)
  going.abort()
})
