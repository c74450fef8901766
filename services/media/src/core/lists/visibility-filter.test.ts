// Lists of one visibility, alone and with the other filters, searches and sorts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { addClips } from '../../flows/clips/testing/many-clips.ts'

let service: TestService
let ids: string[]
let owner: { token: string; id: string }
let admin: string
const VISIBILITIES = ['public', 'private', 'public', 'unlisted', 'public']
const visibilityOf = (n: number) => VISIBILITIES[n % VISIBILITIES.length] ?? ''

beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  owner = await service.newToken()
  admin = (await service.newToken({ scopes: ['admin'] })).token
  ids = await addClips(service, 60, { token: owner.token, tags: ['some'] })
  await service.deps.pool.query(
    `update clips set visibility = given.visibility
     from unnest($1::text[], $2::text[]) given (id, visibility) where clips.id = given.id`,
    [ids, ids.map((_, n) => visibilityOf(n))],
  )
  await addClips(service, 5)
})
afterAll(() => service.close())

/** Ids of all pages, by their links. */
async function listed(query: string, token = owner.token): Promise<string[]> {
  const found: string[] = []
  let path: string | undefined = `/media?${query}`
  while (path) {
    const { status, body, headers } = await service.get(path, { token })
    expect(status).toBe(200)
    found.push(...body.success.items.map(({ id }: { id: string }) => id))
    path = /<([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
  }
  return found
}

const having = (visibility: string) => ids.filter((_, n) => visibilityOf(n) === visibility)

describe.for(['public', 'private', 'unlisted'])('visibility=%s', (visibility) => {
  test.for([
    ['alone', ''],
    ['with a tag', '&tag=some'],
    ['with a search', '&q=clip'],
    ['with a state', '&state=ready'],
    ['with a time', '&from=2000-01-01'],
    ['with nsfw', '&nsfw=false'],
  ])('%s has these clips and no others, over all pages', async ([, filter]) => {
    const newestFirst = having(visibility).toReversed()
    expect(await listed(`visibility=${visibility}${filter}&limit=7`)).toEqual(newestFirst)
    expect(await listed(`visibility=${visibility}${filter}&limit=7&order=asc`)).toEqual(newestFirst.toReversed())
    const sorted = await listed(`visibility=${visibility}${filter}&limit=7&sort=bytes`)
    expect(sorted.toSorted()).toEqual(having(visibility))
  })
})

test('admins list all clips of a visibility, and those of one token', async () => {
  expect(await listed('visibility=private&limit=50', admin)).toEqual(having('private').toReversed())
  expect(await listed(`visibility=private&token=${owner.id}&limit=5`, admin)).toEqual(having('private').toReversed())
  expect(await listed('visibility=private&token=none', admin)).toEqual([])
})

test('a cursor is that of one visibility, and another value is refused', async () => {
  const { body } = await service.get('/media?visibility=public&limit=2', { token: owner.token })
  const other = `/media?visibility=private&limit=2&cursor=${body.success.next_cursor}`
  for (const path of [other, '/media?visibility=secret']) {
    const answer = await service.get(path, { token: owner.token })
    expect([answer.status, answer.body.error.code]).toEqual([422, 'invalid_field'])
  }
})
