// A value that is none of a fixed set is refused with the whole set, wherever a request has such a member.
import { enumMembers, type Given } from '@services/common/testing/http/enum-members'
import { expect } from 'vitest'
import { clip } from './clips.ts'
import { idIn, test } from './service.ts'

/** Values that a request needs before it reaches the member. */
const givenOf = (id: string): Record<string, Given> => ({
  'GET /media/import query visibility': { query: { source: 'https://media.example.net/clip.gif' } },
  'POST /media/bulk body visibility': { body: { action: 'visibility', tags: undefined } },
  'GET /media/archive query kind': { query: { ids: id } },
  'GET /oembed query format': { query: { url: `https://media.example/gif/${id}` } },
})

/** Members whose other values are no error. */
const EXEMPT: RegExp[] = [
  // Another value means the usual answer, as for an unknown parameter.
  / query (download|include)$/,
  // An unknown address.
  / \/f\/.* path kind$/,
]

test('each refusal of such a value names the others', async ({ service }) => {
  const { token: admin } = await service.newToken({ scopes: ['admin'] })
  const id = idIn(await service.ready(await clip('plain.gif')))
  const { body: document } = await service.get('/openapi.json')
  const members = enumMembers(document, givenOf(id), id)
  expect(EXEMPT.filter((exempt) => !members.some(({ name }) => exempt.test(name)))).toEqual([])
  const refused = members.filter(({ name }) => !EXEMPT.some((exempt) => exempt.test(name)))
  expect(refused.length).toBeGreaterThan(12)
  for (const { name, method, url, values, body } of refused) {
    const answer = await service.call(method, url, {
      headers: { token: admin, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const message: string = answer.body?.error?.message ?? answer.text
    expect([name, message, values.filter((value) => !message.includes(value))]).toEqual([name, message, []])
    expect(answer.status).toBeGreaterThanOrEqual(400)
  }
})

test('an act of clips alone is refused for a report with the address that takes it', async ({ service }) => {
  const { token } = await service.newToken({ scopes: ['admin'] })
  for (const action of ['unhide', 'safe', 'unblock']) {
    const { status, body } = await service.call('POST', `/reports/${crypto.randomUUID()}`, {
      body: JSON.stringify({ action }),
      headers: { token, 'content-type': 'application/json' },
    })
    expect([status, body.error]).toEqual([
      422,
      expect.objectContaining({
        param: 'action',
        message: `action must be dismiss, nsfw, hide, delete or block; POST /media/{id}/moderation takes ${action}.`,
      }),
    ])
  }
})
