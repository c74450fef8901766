import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ClipFilter, listClips } from '../src/core/lists/clip-lists.store.ts'
import type { DB } from '../src/db/tables.ts'
import { gif } from './gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService } from './service.ts'

let service: TestService

// Lists show the fields of clips, made or not: without a worker no test waits for one.
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
})
afterAll(() => service.close())

const bytes = gif(20, 10, [{ delay: 10 }])

async function add(token: string, fields: FormFields = [], picture = bytes): Promise<string> {
  const answer = await service.upload(picture, fields, { token })
  expect(answer.status).toBe(201)
  return idIn(answer)
}

async function list(token: string, query = '') {
  const { status, body, headers } = await service.get(`/media?${query}`, { token })
  expect(status).toBe(200)
  const { items, next_cursor } = body.success
  return { ids: items.map(({ id }: { id: string }) => id) as string[], items, next: next_cursor, headers }
}

interface PlanNode {
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: PlanNode[]
}

/** Runs a query, and its statement once more for its plan. */
async function explained<Row>(query: (db: Kysely<DB>) => Promise<Row[]>): Promise<{ rows: Row[]; plan: PlanNode }> {
  const { pool } = service.deps
  const sent: CompiledQuery[] = []
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool }), log: (event) => void sent.push(event.query) })
  const rows = await query(db)
  const [{ sql, parameters }] = sent as [CompiledQuery]
  const { rows: plans } = await pool.query(`explain (analyze, format json) ${sql}`, [...parameters])
  return { rows, plan: plans[0]['QUERY PLAN'][0].Plan }
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

const errorOf = async (path: string, token: string) => {
  const { status, body } = await service.get(path, { token })
  return [status, body.error.code, body.error.param]
}

test('a list has the clips of its token, newest first, with all their details, and no deleted ones', async () => {
  const { token, id: tokenId } = await service.newToken()
  const stranger = await service.newToken()
  await add(stranger.token)
  const ids: string[] = []
  for (const title of ['first', 'second', 'third']) {
    ids.unshift(await add(token, [['title', title]]))
    service.clock.advance({ seconds: 1 })
  }
  const { items } = await list(token)
  expect(items.map(({ title }: { title: string }) => title)).toEqual(['third', 'second', 'first'])
  expect(items[0]).toEqual((await service.get(`/media/${ids[0]}`, { token })).body.success)
  expect(items[0]).toMatchObject({ id: ids[0], token_id: tokenId, state: 'processing', sizes: {} })
  await service.call('DELETE', `/media/${ids[1]}`, { headers: { token } })
  expect((await list(token)).ids).toEqual([ids[0], ids[2]])
  expect((await list(token, `token=${tokenId}`)).ids).toHaveLength(2)
})

test('pages follow each other without a gap or a repetition, whatever is added or deleted meanwhile', async () => {
  const { token } = await service.newToken()
  const ids: string[] = []
  // All in one moment: the order is that of the ids then.
  for (let n = 0; n < 7; n++) ids.push(await add(token, [['tags', 'Paged']]))
  const first = await list(token, 'limit=3&tag=paged')
  expect(first.headers.get('link')).toBe(
    `<https://media.example/media?limit=3&tag=paged&cursor=${first.next}>; rel="next"`,
  )
  service.clock.advance({ seconds: 1 })
  await add(token, [['tags', 'paged']])
  await service.call('DELETE', `/media/${first.ids[2]}`, { headers: { token } })
  const [, link] = /<(.*)>/.exec(first.headers.get('link') ?? '') ?? []
  const second = await list(token, new URL(link as string).search.slice(1))
  const third = await list(token, `limit=3&tag=paged&cursor=${second.next}`)
  expect(third.next).toBeNull()
  expect(third.headers.get('link')).toBeNull()
  expect([...first.ids, ...second.ids, ...third.ids]).toEqual(ids.toSorted().toReversed())
})

test('a list is filtered by tag, whatever its case, by state and by nsfw', async () => {
  const { token } = await service.newToken()
  const [ready, processing, failed] = [
    await add(token, [['tags', 'Größe, cats']], gif(21, 10, [{ delay: 10 }])),
    await add(token, [
      ['tags', 'GRÖSSE,Cats'],
      ['nsfw', 'true'],
    ]),
    await add(token, [], gif(22, 10, [{ delay: 10 }])),
  ]
  const decide = (id: string, state: string, code: string | null) =>
    service.deps.pool.query(
      'update sources set state = $2, error_code = $3 where id = (select source_id from clips where id = $1)',
      [id, state, code],
    )
  await decide(ready, 'ready', null)
  await decide(failed, 'failed', 'corrupt_media')
  const found = async (query: string) => (await list(token, query)).ids.toSorted()
  expect(await found('tag=CATS')).toEqual([ready, processing].toSorted())
  expect(await found(`tag=${encodeURIComponent(' größe ')}`)).toEqual([ready])
  expect(await found('tag=cat')).toEqual([])
  expect(await found('state=ready')).toEqual([ready])
  expect(await found('state=processing')).toEqual([processing])
  expect(await found('state=failed')).toEqual([failed])
  expect(await found('nsfw=true')).toEqual([processing])
  expect(await found('nsfw=false&tag=cats')).toEqual([ready])
})

test('a list by tag follows the changes of its clips', async () => {
  const { token } = await service.newToken()
  const [kept, deleted] = [await add(token, [['tags', 'Kept,Moved']]), await add(token, [['tags', 'kept']])]
  const found = async (query: string) => (await list(token, query)).ids
  const change = (id: string, body: object) =>
    service.call('PATCH', `/media/${id}`, {
      body: JSON.stringify(body),
      headers: { token, 'content-type': 'application/json' },
    })
  expect(await found('tag=kept&nsfw=true')).toEqual([])
  await change(kept, { nsfw: true })
  expect(await found('tag=kept&nsfw=true')).toEqual([kept])
  await service.call('DELETE', `/media/${deleted}`, { headers: { token } })
  expect(await found('tag=kept')).toEqual([kept])
  await change(kept, { tags: ['kept', 'new'] })
  expect([await found('tag=moved'), await found('tag=new'), await found('tag=kept')]).toEqual([[], [kept], [kept]])
  await change(kept, { tags: null })
  expect(await found('tag=kept')).toEqual([])
})

test('an admin sees the clips of all tokens, or of one', async () => {
  const [owner, admin] = [await service.newToken(), await service.newToken({ scopes: ['admin'] })]
  const id = await add(owner.token)
  expect((await list(admin.token)).ids).toContain(id)
  expect((await list(admin.token, `token=${owner.id}`)).ids).toEqual([id])
  expect((await list(admin.token, 'token=none')).ids).toEqual([])
  expect(await errorOf('/media?token=x', admin.token)).toEqual([422, 'invalid_field', 'token'])
  expect(await errorOf(`/media?token=${admin.id}`, owner.token)).toEqual([403, 'insufficient_scope', undefined])
})

test('a refused filter names the values that it may have', async () => {
  const messageOf = async (query: string) =>
    (await service.get(`/media?${query}`, { token: service.token })).body.error.message
  expect(await messageOf('state=gone')).toBe('Not accepted: state must be processing, ready or failed.')
  expect(await messageOf('order=up')).toBe('Not accepted: order must be asc or desc.')
})

test.each(['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'cursor=', 'state=gone', 'nsfw=1', 'tag=a&tag=b'])(
  'a list asked for with %s is refused',
  async (query) => {
    const name = query.split('=')[0]
    expect(await errorOf(`/media?${query}`, service.token)).toEqual([422, 'invalid_field', name])
  },
)

test('a list needs a token that may read', async () => {
  expect((await service.get('/media')).status).toBe(401)
  const { token } = await service.newToken({ scopes: ['write', 'delete'] })
  expect((await service.get('/media', { token })).status).toBe(403)
})

const OF_VISIBILITY = 'clips_visibility_of_token_idx'

describe('a page of a list is read along an index that has its order, and reads no other clips', () => {
  let tokenId: string
  // The oldest clips are a token's; the older half of them has the tag `old`, and none has `strange`.
  beforeAll(async () => {
    tokenId = (await service.newToken()).id
    await add(service.token) // the source of all
    for (let first = 1; first <= 20_000; first += 1_000) {
      await service.deps.pool.query(
        `insert into clips (id, token_id, source_id, source_kind, created_at, visibility, tag_keys, nsfw)
         select 'a' || lpad(n::text, 7, '0'), case when n <= 6000 then $1::uuid end, sources.id, 'upload',
           '2020-01-01'::timestamptz + n * '1 s'::interval, case when n <= 40 or n > 6000 then 'private' else 'public' end,
           case when n <= 3000 then array['old', 'small'] when n > 6000 then array['strange'] else '{}' end, n % 100 = 0
         from generate_series($2::int, $2 + 999) n, (select id from sources limit 1) sources`,
        [tokenId, first],
      )
    }
    await service.deps.pool.query('vacuum analyze clips, clip_tags')
  })
  afterAll(() => service.deps.pool.query('truncate clips cascade'))

  test.for<[string, Partial<ClipFilter> & { isOfToken?: true }, number, string]>([
    ['all clips', {}, 50, 'clips_newest_idx'],
    ['all clips of nsfw', { nsfw: true }, 50, 'clips_newest_idx'],
    ['a token', { isOfToken: true }, 50, 'clips_of_token_idx'],
    [
      'a time',
      { from: new Date('2020-01-01T00:10:00Z'), to: new Date('2020-01-01T00:10:30Z') },
      30,
      'clips_newest_idx',
    ],
    ['a token and nsfw', { isOfToken: true, nsfw: true }, 50, 'clips_of_token_idx'],
    ['a visibility that few clips of a token have', { isOfToken: true, visibility: 'private' }, 40, OF_VISIBILITY],
    ['the usual visibility', { isOfToken: true, visibility: 'public' }, 50, OF_VISIBILITY],
    ['a visibility that only others use', { isOfToken: true, visibility: 'unlisted' }, 0, OF_VISIBILITY],
    ['a tag of old clips', { tagKey: 'old' }, 50, 'clip_tags_newest_idx'],
    ['a tag and nsfw', { tagKey: 'old', nsfw: true }, 30, 'clip_tags_newest_idx'],
    ['a tag of old clips and a token', { isOfToken: true, tagKey: 'small' }, 50, 'clip_tags_of_token_idx'],
    ['a tag that only others use', { isOfToken: true, tagKey: 'strange' }, 0, 'clip_tags_of_token_idx'],
    ['an unused tag', { tagKey: 'unused' }, 0, 'clip_tags_newest_idx'],
  ])('by %s', async ([, { isOfToken, ...chosen }, found, index]) => {
    const filter = {
      tokenId: isOfToken && tokenId,
      tagKey: undefined,
      state: undefined,
      nsfw: undefined,
      visibility: undefined,
      from: undefined,
      to: undefined,
      now: new Date(),
      ...chosen,
    }
    const { rows, plan } = await explained((db) =>
      listClips(db, filter, { after: undefined, order: 'desc', limit: 50 }),
    )
    expect(rows).toHaveLength(found)
    const scans = nodesOf(plan).filter((node) => node['Relation Name']?.startsWith('clip'))
    expect(scans.map((node) => node['Index Name'])).toContain(index)
    for (const scan of scans) expect(scan['Actual Rows'] * scan['Actual Loops']).toBeLessThanOrEqual(found + 1)
    for (const scan of scans) expect(scan['Rows Removed by Filter'] ?? 0).toBe(0)
  })
})

describe('a change of a clip', () => {
  const change = (id: string, body: unknown, token = service.token) =>
    service.call('PATCH', `/media/${id}`, {
      body: JSON.stringify(body),
      headers: { token, 'content-type': 'application/json' },
    })

  test('is normalised like the fields of an import; null removes, and unnamed fields stay', async () => {
    const id = await add(service.token, [
      ['title', 'Old'],
      ['tags', 'one,two'],
      ['nsfw', 'true'],
      ['attribution_site', 'reddit'],
    ])
    const first = await change(id, { title: '  New\u0007  title ', tags: ['B', 'b', ' c '], unknown: 1 })
    expect(first.status).toBe(200)
    expect(first.body.success).toMatchObject({
      id,
      title: 'New title',
      tags: ['B', 'c'],
      nsfw: true,
      attribution: { site: 'reddit' },
    })
    expect((await list(service.token, 'tag=b')).ids).toContain(id)
    expect((await list(service.token, 'tag=one')).ids).not.toContain(id)
    const attribution = { site: 'Twitter', user: '@ada', url: null }
    expect((await change(id, { nsfw: false, attribution })).body.success).toMatchObject({
      title: 'New title',
      nsfw: false,
      attribution: { site: 'twitter', user: 'ada' },
    })
    const nothing = { title: null, tags: null, nsfw: null, attribution: null }
    expect((await change(id, nothing)).body.success).toMatchObject({ ...nothing, tags: [], nsfw: false })
    expect((await change(id, {})).body.success).toMatchObject({ ...nothing, tags: [], nsfw: false })
  })

  test.each([
    [{ title: 'x'.repeat(201) }, 'title'],
    [{ title: 1 }, 'title'],
    [{ tags: 'a,b' }, 'tags'],
    [{ tags: ['x'.repeat(51)] }, 'tags'],
    [{ nsfw: 'yes' }, 'nsfw'],
    [{ attribution: {} }, 'attribution.site'],
    [{ attribution: { site: 'ftp://x' } }, 'attribution.site'],
    [{ attribution: { site: 'reddit', url: 'javascript:alert(1)' } }, 'attribution.url'],
    [[], undefined],
    [null, undefined],
  ])('of %j is refused and changes nothing', async (body, param) => {
    const id = await add(service.token, [['title', 'Kept']])
    const refused = await change(id, body)
    expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([422, 'invalid_field', param])
    expect((await service.get(`/media/${id}`, { token: service.token })).body.success.title).toBe('Kept')
  })

  test('is for the owner with `write`, and for admins; others do not learn that there is a clip', async () => {
    const id = await add(service.token)
    const statusFor = async (scopes: Parameters<typeof service.newToken>[0]) =>
      (await change(id, { title: 'x' }, (await service.newToken(scopes)).token)).status
    expect(await statusFor({ scopes: ['write', 'read', 'delete'] })).toBe(404)
    expect(await statusFor({ scopes: ['read', 'delete'] })).toBe(403)
    expect(await statusFor({ scopes: ['admin'] })).toBe(200)
    expect((await change('00000000', { title: 'x' })).status).toBe(404)
    await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
    expect(await change(id, { title: 'x' })).toMatchObject({ status: 410, body: { error: { code: 'gone' } } })
  })
})
