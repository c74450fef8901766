import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStage, type Stage } from '../../../test/endpoints/stage.ts'
import { addClips } from './testing/many-clips.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage.close())

const tagsOf = async (token: string, query = '') =>
  (await stage.service.get(`/media/tags${query}`, { token })).body.success

test('tags are those of the own clips, most used first, in one spelling each', async () => {
  const { service } = stage
  const { token } = await service.newToken()
  await addClips(service, 3, { token, tags: ['cats'] })
  const [one = '', two = ''] = await addClips(service, 2, { token })
  const setTags = (id: string, tags: string[]) =>
    service.call('PATCH', `/media/${id}`, {
      headers: { token, 'content-type': 'application/json' },
      body: JSON.stringify({ tags }),
    })
  await setTags(one, ['Cats', 'Ärger', 'b'])
  await setTags(two, ['ärger', 'a'])
  const all = [
    { tag: 'cats', count: 4 },
    { tag: 'ärger', count: 2 },
    { tag: 'a', count: 1 },
    { tag: 'b', count: 1 },
  ]
  expect(await tagsOf(token)).toEqual(all)
  expect(await tagsOf(token, '?limit=2')).toEqual(all.slice(0, 2))
  expect(await tagsOf((await service.newToken()).token)).toEqual([])
})

test('deleted and expired clips count no more; hidden, private and failed ones are still their owner’s', async () => {
  const { service, stranger } = stage
  const count = async () => (await tagsOf(service.token))[0]?.count ?? 0
  const before = await count()
  await stage.make('ready', ['public', 'deleted'])
  expect(await count()).toBe(before)
  for (const [source, steps] of [
    ['ready', ['hidden']],
    ['failed', ['private']],
    ['processing', ['unlisted']],
  ] as const)
    await stage.make(source, steps)
  expect(await count()).toBe(before + 3)
  await stage.make('ready', ['expired'])
  expect(await count()).toBe(before + 3)
  expect(await tagsOf(stranger)).toEqual([])
})

test('the tags need the scope read, and a limit from 1 to 100', async () => {
  const { service } = stage
  const { token } = await service.newToken({ scopes: ['write', 'delete'] })
  expect((await service.get('/media/tags', { token })).status).toBe(403)
  expect((await service.get('/media/tags')).status).toBe(401)
  for (const limit of ['0', '101', 'x']) {
    const { status, body } = await service.get(`/media/tags?limit=${limit}`, { token: service.token })
    expect([status, body.error.param]).toEqual([422, 'limit'])
  }
})
