// Albums and their clips by the API. Clips that visitors are shown: shown-items.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { type Answer, idIn, startTestService, type TestService } from '../../../test/service.ts'
import { elementsOf } from '../pages/testing/markup.ts'

const FILE = gif(20, 12, [{ delay: 10 }])

let service: TestService
let token: string
let admin: string
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '100000' })
  token = service.token
  admin = (await service.newToken({ scopes: ['admin'] })).token
})
afterAll(() => service.close())

const sql = (text: string, values: unknown[] = []) => service.deps.pool.query(text, values)

const send = (
  method: string,
  path: string,
  { body, as = token, headers = {} }: { body?: unknown; as?: string; headers?: Record<string, string> } = {},
): Promise<Answer> => {
  const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  const text = body === undefined ? {} : { body: JSON.stringify(body) }
  return service.call(method, path, { ...text, headers: { token: as, ...type, ...headers } })
}

async function newAlbum(body: object = {}, as = token): Promise<{ id: string; etag: string }> {
  const { status, body: answer } = await send('POST', '/albums', { body: { title: 'Trip', ...body }, as })
  expect(status).toBe(201)
  return answer.success
}

async function newClips(number: number, as = token): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < number; n++) ids.push(idIn(await service.ready(FILE, [], { token: as })))
  return ids
}

async function itemsOf(id: string, as = token): Promise<string[]> {
  const { body } = await send('GET', `/albums/${id}`, { as })
  return body.success.items.map((item: { id: string }) => item.id)
}

const codeOf = ({ status, body }: Answer) => [status, body?.error?.code]

/** Inserts clips of one source at once. */
async function manyClips(number: number): Promise<string[]> {
  const [model = ''] = await newClips(1)
  const { rows } = await sql(
    `insert into clips (id, token_id, source_id, source_kind, created_at)
     select substr(md5(random()::text || n), 1, 8), token_id, source_id, 'upload', now()
     from clips, generate_series(1, $2::int) n where id = $1 returning id`,
    [model, number],
  )
  return rows.map(({ id }) => id)
}

describe('an album', () => {
  test('is made, read, changed and deleted, and its clips stay', async () => {
    const made = await send('POST', '/albums', {
      body: { title: '  Two   weeks ', description: 'By the sea\nand back', visibility: 'unlisted' },
    })
    expect(made.status).toBe(201)
    const { success: album } = made.body
    expect(album).toMatchObject({
      ...{ title: 'Two weeks', description: 'By the sea\nand back', visibility: 'unlisted', count: 0, cover: null },
      page: `https://media.example/a/${album.id}`,
      oembed: `https://media.example/oembed?url=${encodeURIComponent(`https://media.example/a/${album.id}`)}`,
      embed: expect.stringContaining(`<iframe src="https://media.example/a/${album.id}/embed"`),
    })
    expect(made.headers.get('etag')).toBe(album.etag)
    const [clip = ''] = await newClips(1)
    await send('POST', `/albums/${album.id}/items`, { body: { ids: [clip] } })
    const changed = await send('PATCH', `/albums/${album.id}`, { body: { title: 'Sea', description: null } })
    expect(changed.body.success).toMatchObject({ title: 'Sea', description: null, visibility: 'unlisted', count: 1 })
    expect(changed.body.success.cover).toBe(`https://files.example/f/${clip}.jpg`)
    const read = await send('GET', `/albums/${album.id}`)
    expect(read.body.success).toMatchObject({ ...changed.body.success, items: [{ id: clip, state: 'ready' }] })
    expect(read.headers.get('etag')).toBe(changed.body.success.etag)
    expect((await send('DELETE', `/albums/${album.id}`)).status).toBe(204)
    expect(codeOf(await send('GET', `/albums/${album.id}`))).toEqual([404, 'not_found'])
    expect((await send('GET', `/media/${clip}`)).status).toBe(200)
  })

  test.for([
    [{}, 422, 'invalid_field'],
    [{ title: ' \u200b ' }, 422, 'invalid_field'],
    [{ title: 'x'.repeat(201) }, 422, 'invalid_field'],
    [{ title: 'x', description: 'x'.repeat(1001) }, 422, 'invalid_field'],
    [{ title: 'x', visibility: 'secret' }, 422, 'invalid_field'],
  ] as const)('with the fields %j is refused', async ([body, status, code]) => {
    expect(codeOf(await send('POST', '/albums', { body }))).toEqual([status, code])
  })

  test('has links whose embed is the HTML of an iframe, as its own', async () => {
    const { id } = await newAlbum({ title: 'A "trip"', visibility: 'private' })
    const { status, body } = await send('POST', `/albums/${id}/links`, { body: { expires_in: '1h' } })
    expect(status).toBe(201)
    const [, query] = body.success.page.split('?')
    expect(query).toMatch(/^e=\d+&s=/)
    const [frame, ...others] = elementsOf(body.success.embed)
    expect([frame?.name, frame?.attributes.title, others]).toEqual(['iframe', 'A "trip"', []])
    expect((await service.get(new URL(frame?.attributes.src ?? '').pathname)).status).toBe(404)
    expect((await service.get(frame?.attributes.src ?? '')).status).toBe(200)
  })

  test('is made once for a repeat with the same Idempotency-Key', async () => {
    const request = { body: { title: 'Once' }, headers: { 'idempotency-key': 'once' } }
    const [one, other] = await Promise.all([send('POST', '/albums', request), send('POST', '/albums', request)])
    expect(other.body).toEqual(one.body)
    expect([one, other].filter(({ headers }) => headers.get('idempotency-replayed'))).toHaveLength(1)
    expect(codeOf(await send('POST', '/albums', { ...request, body: { title: 'Other' } }))).toEqual([
      409,
      'idempotency_conflict',
    ])
  })

  test('has as cover the first clip that is neither sensitive, private, hidden nor unfinished', async () => {
    const { id } = await newAlbum()
    const clips = await newClips(5)
    await send('PUT', `/albums/${id}/items`, { body: { ids: clips } })
    const [nsfw, secret, hidden, expired, shown] = clips
    await sql('update clips set nsfw = true where id = $1', [nsfw])
    await sql(`update clips set visibility = 'private' where id = $1`, [secret])
    await sql(`update clips set hidden_at = now(), hidden_reason = 'spam' where id = $1`, [hidden])
    await sql(`update clips set expires_at = '2000-01-01' where id = $1`, [expired])
    const coverOf = async () => (await send('GET', `/albums/${id}`)).body.success.cover
    expect(await coverOf()).toBe(`https://files.example/f/${shown}.jpg`)
    await send('DELETE', `/media/${shown}`)
    expect(await coverOf()).toBeNull()
  })

  test('shows its clips to its owner page by page, in any state but expired and deleted', async () => {
    const { id } = await newAlbum()
    const clips = await newClips(4)
    await send('PUT', `/albums/${id}/items`, { body: { ids: clips } })
    const [first, second, third, fourth] = clips
    await sql(`update clips set hidden_at = now(), hidden_reason = 'spam' where id = $1`, [second])
    await sql(`update clips set expires_at = '2000-01-01' where id = $1`, [third])
    const page = await send('GET', `/albums/${id}?limit=2`)
    expect(page.body.success.items).toMatchObject([{ id: first }, { id: second, state: 'hidden' }])
    const { next_cursor } = page.body.success
    expect(page.headers.get('link')).toContain(`/albums/${id}?limit=2&cursor=${next_cursor}`)
    const next = await send('GET', `/albums/${id}?limit=2&cursor=${next_cursor}`)
    expect(next.body.success).toMatchObject({ items: [{ id: fourth }], next_cursor: null })
    const huge = Buffer.from(`999999999999999.${first}`).toString('base64url')
    expect((await send('GET', `/albums/${id}?cursor=${huge}`)).body.success.items).toEqual([])
    expect(codeOf(await send('GET', `/albums/${id}?cursor=zzz`))).toEqual([422, 'invalid_field'])
  })
})

describe('another token', () => {
  test('gets the answer for an unknown album from every address, and changes nothing', async () => {
    const { id } = await newAlbum()
    const [clip = ''] = await newClips(1)
    await send('PUT', `/albums/${id}/items`, { body: { ids: [clip] } })
    const { token: other } = await service.newToken()
    const [own = ''] = await newClips(1, other)
    for (const album of [id, 'zzzzzzzz', 'not-an-id', '%00']) {
      for (const [method, path, body] of [
        ['GET', `/albums/${album}`],
        ['PATCH', `/albums/${album}`, { title: 'Mine' }],
        ['PUT', `/albums/${album}/items`, { ids: [own] }],
        ['POST', `/albums/${album}/items`, { ids: [own] }],
        ['DELETE', `/albums/${album}/items/${clip}`],
        ['DELETE', `/albums/${album}`],
      ] as const) {
        const answer = await send(method, path, { body, as: other })
        expect([path, ...codeOf(answer), answer.body.error.details]).toEqual([path, 404, 'not_found', undefined])
      }
    }
    expect((await send('GET', '/albums', { as: other })).body.success.items).toEqual([])
    expect(await itemsOf(id)).toEqual([clip])
  })

  test('has clips that are not found for an album, as unknown, deleted and expired ones', async () => {
    const { id } = await newAlbum()
    const { token: other } = await service.newToken()
    const [foreign = ''] = await newClips(1, other)
    const [own = '', deleted = '', expired = ''] = await newClips(3)
    await send('DELETE', `/media/${deleted}`)
    await sql(`update clips set expires_at = '2000-01-01' where id = $1`, [expired])
    for (const bad of [foreign, deleted, expired, 'zzzzzzzz']) {
      for (const method of ['PUT', 'POST']) {
        const answer = await send(method, `/albums/${id}/items`, { body: { ids: [own, bad] } })
        expect(codeOf(answer)).toEqual([404, 'not_found'])
        expect(answer.body.error.details).toEqual({ ids: [bad] })
      }
    }
    expect(await itemsOf(id)).toEqual([])
  })

  test('with the scope admin has all albums, and its changes are in the log', async () => {
    service.clock.advance({ seconds: 1 })
    const { id } = await newAlbum()
    const [clip = ''] = await newClips(1)
    expect((await send('PUT', `/albums/${id}/items`, { body: { ids: [clip] }, as: admin })).status).toBe(200)
    expect((await send('PATCH', `/albums/${id}`, { body: { title: 'Better' }, as: admin })).status).toBe(200)
    const { items } = (await send('GET', '/albums?limit=1', { as: admin })).body.success
    expect(items).toMatchObject([{ id, title: 'Better' }])
    const own = items[0].token_id
    expect((await send('GET', `/albums?token=${own}&limit=1`, { as: admin })).body.success.items).toMatchObject([
      { id },
    ])
    expect((await send('GET', '/albums?token=none', { as: admin })).body.success.items).toEqual([])
    // Clips of the admin's own token are not this album's.
    const [mine = ''] = await newClips(1, admin)
    const refused = await send('POST', `/albums/${id}/items`, { body: { ids: [mine] }, as: admin })
    expect(codeOf(refused)).toEqual([404, 'not_found'])
    expect((await send('DELETE', `/albums/${id}`, { as: admin })).status).toBe(204)
    const { rows } = await sql('select action, details from audit_entries where target = $1 order by created_at, id', [
      id,
    ])
    expect(rows.map(({ action }) => action).sort()).toEqual(['album_changed', 'album_changed', 'album_deleted'])
  })

  test.for([
    ['GET', '/albums', ['write']],
    ['GET', '/albums/zzzzzzzz', ['write']],
    ['POST', '/albums', ['read', 'delete']],
    ['PATCH', '/albums/zzzzzzzz', ['read', 'delete']],
    ['DELETE', '/albums/zzzzzzzz', ['read', 'delete']],
    ['PUT', '/albums/zzzzzzzz/items', ['read', 'delete']],
    ['POST', '/albums/zzzzzzzz/items', ['read', 'delete']],
    ['DELETE', '/albums/zzzzzzzz/items/zzzzzzzz', ['read', 'delete']],
  ] as const)('needs its scope for %s %s', async ([method, path, scopes]) => {
    const { token: without } = await service.newToken({ scopes: [...scopes] })
    const body = method === 'GET' || method === 'DELETE' ? undefined : { title: 'x', ids: [] }
    expect(codeOf(await send(method, path, { body, as: without }))).toEqual([403, 'insufficient_scope'])
    expect(codeOf(await send(method, path, { body, as: 'mh_unknown' }))).toEqual([401, 'token_missing_or_invalid'])
  })
})

describe('the list', () => {
  test('has the albums of the token newest first, by cursor', async () => {
    const { token: own } = await service.newToken()
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      service.clock.advance({ seconds: 1 })
      ids.unshift((await newAlbum({ title: `${n}` }, own)).id)
    }
    const page = await send('GET', '/albums?limit=2', { as: own })
    const next = await send('GET', `/albums?limit=2&cursor=${page.body.success.next_cursor}`, { as: own })
    const listed = [page, next].flatMap(({ body }) => body.success.items.map(({ id }: { id: string }) => id))
    expect(listed).toEqual(ids)
    expect(next.body.success.next_cursor).toBeNull()
    expect(page.headers.get('link')).toContain('rel="next"')
  })
})

describe('the clips', () => {
  test('are replaced, ordered, added at the end or before another, moved and taken out', async () => {
    const { id } = await newAlbum()
    const [a = '', b = '', c = '', d = ''] = await newClips(4)
    const put = await send('PUT', `/albums/${id}/items`, { body: { ids: [c, a] } })
    expect(put.body.success).toMatchObject({ id, count: 2, etag: put.headers.get('etag') })
    expect(await itemsOf(id)).toEqual([c, a])
    await send('POST', `/albums/${id}/items`, { body: { ids: [b, c] } })
    expect(await itemsOf(id)).toEqual([c, a, b])
    await send('POST', `/albums/${id}/items`, { body: { ids: [d, b], before: c } })
    expect(await itemsOf(id)).toEqual([d, b, c, a])
    expect((await send('DELETE', `/albums/${id}/items/${b}`)).status).toBe(204)
    expect(codeOf(await send('DELETE', `/albums/${id}/items/${b}`))).toEqual([404, 'not_found'])
    expect(await itemsOf(id)).toEqual([d, c, a])
    await send('PUT', `/albums/${id}/items`, { body: { ids: [] } })
    expect(await itemsOf(id)).toEqual([])
  })

  test.for([
    ['PUT', { ids: ['aaaaaaaa', 'aaaaaaaa'] }, 422, 'invalid_field'],
    ['PUT', { ids: ['no id'] }, 422, 'invalid_field'],
    ['PUT', {}, 422, 'invalid_field'],
    ['POST', { ids: [], before: 'aaaaaaaa' }, 422, 'invalid_field'],
    ['PUT', { ids: Array.from({ length: 501 }, () => 'aaaaaaaa') }, 422, 'album_full'],
  ] as const)('are refused by %s for a body that has an error', async ([method, body, status, code]) => {
    const { id } = await newAlbum()
    expect(codeOf(await send(method, `/albums/${id}/items`, { body }))).toEqual([status, code])
  })

  test('change the ETag, and a stale If-Match changes nothing', async () => {
    const { id, etag } = await newAlbum()
    const [a = '', b = ''] = await newClips(2)
    const headers = { 'if-match': etag }
    const first = await send('PUT', `/albums/${id}/items`, { body: { ids: [a] }, headers })
    expect(first.status).toBe(200)
    for (const [method, path, body] of [
      ['PUT', '/items', { ids: [b] }],
      ['POST', '/items', { ids: [b] }],
      ['DELETE', `/items/${a}`],
      ['PATCH', '', { title: 'Stale' }],
      ['DELETE', ''],
    ] as const) {
      const refused = await send(method, `/albums/${id}${path}`, { body, headers })
      expect([method, path, ...codeOf(refused)]).toEqual([method, path, 412, 'album_changed'])
      expect(refused.body.error.details).toEqual({ etag: first.headers.get('etag') })
    }
    expect((await send('GET', `/albums/${id}`)).body.success).toMatchObject({ title: 'Trip', items: [{ id: a }] })
    const match = { 'if-match': `"other", ${first.headers.get('etag')}` }
    expect((await send('PUT', `/albums/${id}/items`, { body: { ids: [b] }, headers: match })).status).toBe(200)
    expect((await send('DELETE', `/albums/${id}`, { headers: { 'if-match': '*' } })).status).toBe(204)
  })

  test('of two requests with the same ETag at once, one wins', async () => {
    const { id, etag } = await newAlbum()
    const clips = await newClips(2)
    const answers = await Promise.all(
      clips.map((clip) => send('PUT', `/albums/${id}/items`, { body: { ids: [clip] }, headers: { 'if-match': etag } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412])
  })

  test('are narrowed by GET /media?album=, with all other filters, searches and sorts', async () => {
    const { id } = await newAlbum()
    const tagged = idIn(
      await service.ready(FILE, [
        ['title', 'Zebra'],
        ['tags', 'sea'],
      ]),
    )
    const plain = idIn(await service.ready(FILE, [['title', 'Apple']]))
    const outside = idIn(
      await service.ready(FILE, [
        ['title', 'Zebra'],
        ['tags', 'sea'],
      ]),
    )
    await send('PUT', `/albums/${id}/items`, { body: { ids: [tagged, plain] } })
    const listed = async (query: string, as = token) => {
      const { status, body } = await send('GET', `/media?album=${id}${query}`, { as })
      expect(status).toBe(200)
      return body.success.items.map((item: { id: string }) => item.id)
    }
    expect((await listed('')).sort()).toEqual([tagged, plain].sort())
    expect(await listed('&tag=sea')).toEqual([tagged])
    expect(await listed('&q=zeb')).toEqual([tagged])
    expect(await listed('&q=zeb&tag=sea&sort=bytes')).toEqual([tagged])
    expect(await listed('&sort=title')).toEqual([plain, tagged])
    expect(await listed('&sort=title&order=desc&state=ready&nsfw=false')).toEqual([tagged, plain])
    expect(await listed('&state=failed')).toEqual([])
    expect((await listed('', admin)).sort()).toEqual([tagged, plain].sort())
    expect(await listed('', (await service.newToken()).token)).toEqual([])
    const page = await send('GET', `/media?album=${id}&limit=1`)
    const cursor = page.body.success.next_cursor
    expect(page.headers.get('link')).toContain(`album=${id}`)
    const next = await send('GET', `/media?album=${id}&limit=1&cursor=${cursor}`)
    expect([page, next].map(({ body }) => body.success.items[0].id).sort()).toEqual([tagged, plain].sort())
    expect(codeOf(await send('GET', '/media?album=%00'))).toEqual([422, 'invalid_field'])
    expect(await listed('')).not.toContain(outside)
  })
})

describe('limits hold for requests at once:', () => {
  test('500 clips an album', async () => {
    const { id } = await newAlbum()
    const clips = await manyClips(502)
    await send('PUT', `/albums/${id}/items`, { body: { ids: clips.slice(0, 499) } })
    const answers = await Promise.all(
      clips.slice(499).map((clip) => send('POST', `/albums/${id}/items`, { body: { ids: [clip] } })),
    )
    expect(answers.map(codeOf).sort()).toEqual([
      [200, undefined],
      [422, 'album_full'],
      [422, 'album_full'],
    ])
    expect((await send('GET', `/albums/${id}?limit=1`)).body.success.count).toBe(500)
  })

  test('50 albums a clip', async () => {
    const [clip = ''] = await newClips(1)
    const albums: string[] = []
    for (let n = 0; n < 52; n++) albums.push((await newAlbum()).id)
    const add = (id: string) => send('POST', `/albums/${id}/items`, { body: { ids: [clip] } })
    for (const id of albums.slice(0, 49)) expect((await add(id)).status).toBe(200)
    const answers = await Promise.all(albums.slice(49).map(add))
    expect(answers.map(codeOf).sort()).toEqual([
      [200, undefined],
      [422, 'too_many_albums'],
      [422, 'too_many_albums'],
    ])
    // Albums that have it already can be ordered.
    expect((await send('PUT', `/albums/${albums[0]}/items`, { body: { ids: [clip] } })).status).toBe(200)
  })

  test('1,000 albums a token', async () => {
    const own = await service.newToken()
    await sql(
      `insert into albums (id, token_id, title, visibility, created_at, updated_at)
       select substr(md5(random()::text || n), 1, 8), $1, 'x', 'public', now(), now() from generate_series(1, 999) n`,
      [own.id],
    )
    const answers = await Promise.all(
      [1, 2, 3].map(() => send('POST', '/albums', { body: { title: 'Last' }, as: own.token })),
    )
    expect(answers.map(codeOf).sort()).toEqual([
      [201, undefined],
      [422, 'too_many_albums'],
      [422, 'too_many_albums'],
    ])
  })

  test('changes of an album and deletions of its clips do not block each other', async () => {
    const { id } = await newAlbum()
    const clips = await newClips(6)
    await send('PUT', `/albums/${id}/items`, { body: { ids: clips } })
    const answers = await Promise.all([
      ...clips.slice(0, 3).map((clip) => send('DELETE', `/media/${clip}`)),
      ...[1, 2, 3].map(() => send('PUT', `/albums/${id}/items`, { body: { ids: clips.slice(2).toReversed() } })),
    ])
    expect(answers.slice(0, 3).map(({ status }) => status)).toEqual([204, 204, 204])
    for (const answer of answers.slice(3)) expect([200, 404]).toContain(answer.status)
    expect(await itemsOf(id)).not.toContain(clips[0])
    const { rows } = await sql('select clip_id from album_items where clip_id = any($1)', [clips.slice(0, 3)])
    expect(rows).toEqual([])
  })
})
