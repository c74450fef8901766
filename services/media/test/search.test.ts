import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { type FormFields, idIn, startTestService, type TestService } from './service.ts'

let service: TestService

// Fields of clips, made or not: without a worker no test waits for one.
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

const queryOf = (query: Record<string, string>) => new URLSearchParams(query).toString()

async function list(token: string, query: Record<string, string>) {
  const { status, body, headers } = await service.get(`/media?${queryOf(query)}`, { token })
  expect(status).toBe(200)
  const { items, next_cursor } = body.success
  return {
    ids: items.map(({ id }: { id: string }) => id) as string[],
    titles: items.map(({ title }: { title: string | null }) => title) as (string | null)[],
    next: next_cursor as string | null,
    link: headers.get('link'),
  }
}

const change = (token: string, id: string, body: object) =>
  service.call('PATCH', `/media/${id}`, {
    body: JSON.stringify(body),
    headers: { token, 'content-type': 'application/json' },
  })

const remove = (token: string, id: string) => service.call('DELETE', `/media/${id}`, { headers: { token } })

const refusal = async (query: string, token = service.token) => {
  const { status, body } = await service.get(`/media?${query}`, { token })
  return [status, body.error.code, body.error.param]
}

describe('a search', () => {
  test('finds clips that have all words in title, tags and author, the last one by its beginning', async () => {
    const { token } = await service.newToken()
    const clip = await add(token, [
      ['title', 'A red fox jumps'],
      ['tags', 'wild animals,Night'],
      ['attribution_site', 'reddit'],
      ['attribution_user', 'ada_l'],
    ])
    const other = await add(token, [['title', 'Red foxes and reddish leaves']])
    const found = async (q: string) => (await list(token, { q })).ids
    expect(await found('fox')).toEqual([other, clip].toSorted().toReversed())
    for (const q of ['red fox', 'RED Fo', 'r'])
      expect([q, await found(q)]).toEqual([q, [other, clip].toSorted().toReversed()])
    for (const q of [
      'fox red',
      'fox jum',
      'jumps fox',
      'animals',
      'night wild red',
      'ada',
      'l ada',
      'jumps animals ada',
    ])
      expect([q, await found(q)]).toEqual([q, [clip]])
    for (const q of ['foxes', 'leaves red', 'foxes redd']) expect([q, await found(q)]).toEqual([q, [other]])
    for (const q of ['fo red', 'redd fox', 'ox', 'fox cat', 'foxess', 'reddit'])
      expect([q, await found(q)]).toEqual([q, []])
  })

  test.each([
    ['Größe ÉCOLE', ['grosse', 'größe', 'gros', 'école', 'ecole', 'ECO', 'e\u0301cole']],
    ['ΣΊΣΥΦΟΣ Ёлка', ['σισυφος', 'Σίσυφος', 'елка', 'ЁЛКА']],
    ["l’amour, don't/stop_it (now)", ['amour', "don't", 'stop', 'it now', '"now"']],
    ['ｆｕｌｌ ﬁn İstanbul', ['full', 'fin', 'istanbul']],
    ['東京タワーの夜', ['東京', '京', '夜', 'タワー']],
    ['한국어 영화', ['한국', '영화']],
    ['hot🔥fire', ['🔥', 'hot', 'fire']],
  ])('of %s ignores case, accents and forms of characters', async (title, searches) => {
    const { token } = await service.newToken()
    const id = await add(token, [['title', title]])
    for (const q of searches) expect([q, (await list(token, { q })).ids]).toEqual([q, [id]])
  })

  test.each(['fox & !cat', "'fox' | cat", 'fox:*', 'fox <-> cat', "fox\\' cat:A", '((fox', 'fox%', 'fox_'])(
    'reads %s as plain words',
    async (q) => {
      const { token } = await service.newToken()
      const [fox, both] = [await add(token, [['title', 'fox']]), await add(token, [['title', 'fox cat a']])]
      const { ids } = await list(token, { q })
      expect(ids.toSorted()).toEqual((q.includes('cat') ? [both] : [fox, both]).toSorted())
    },
  )

  test('follows changes at once, and never finds deleted clips', async () => {
    const { token } = await service.newToken()
    const [kept, deleted] = [await add(token, [['title', 'moon base']]), await add(token, [['title', 'moon dust']])]
    const found = async (q: string) => (await list(token, { q })).ids
    await remove(token, deleted)
    expect(await found('moon')).toEqual([kept])
    await change(token, kept, { title: 'sun', tags: ['warm'], attribution: { site: 'reddit', user: 'helios' } })
    expect(await Promise.all(['moon', 'sun', 'warm', 'helios'].map(found))).toEqual([[], [kept], [kept], [kept]])
    await change(token, kept, { title: null, tags: null, attribution: null })
    expect(await Promise.all(['sun', 'warm', 'helios'].map(found))).toEqual([[], [], []])
    await change(token, kept, { title: 'sun' })
    await remove(token, kept)
    expect(await found('sun')).toEqual([])
    const { rows } = await service.deps.pool.query(
      'select (select count(*) from clip_words where clip_id = any ($1)) + (select count(*) from clip_search where clip_id = any ($1)) as n',
      [[kept, deleted]],
    )
    expect(rows).toEqual([{ n: 0 }])
  })

  test('obeys the other filters', async () => {
    const { token } = await service.newToken()
    const plain = await add(token, [['title', 'owl']], gif(31, 10, [{ delay: 10 }]))
    service.clock.advance({ seconds: 60 })
    const later = service.deps.now().toISOString()
    const special = await add(token, [
      ['title', 'owl two'],
      ['tags', 'Bird'],
      ['nsfw', 'true'],
    ])
    await service.deps.pool.query(
      `update sources set state = 'failed', error_code = 'corrupt_media' where id = (select source_id from clips where id = $1)`,
      [plain],
    )
    for (const sort of ['created', 'title', 'bytes', 'duration']) {
      const found = async (query: Record<string, string>) => (await list(token, { q: 'owl', sort, ...query })).ids
      expect(await found({ tag: 'bird' })).toEqual([special])
      expect(await found({ nsfw: 'true' })).toEqual([special])
      expect(await found({ nsfw: 'false' })).toEqual([plain])
      expect(await found({ state: 'failed' })).toEqual([plain])
      expect(await found({ state: 'processing' })).toEqual([special])
      expect(await found({ from: later })).toEqual([special])
      expect(await found({ to: later })).toEqual([plain])
      expect(await found({ from: later, nsfw: 'false' })).toEqual([])
    }
  })

  test('is for the clips of the token; admins search all clips, those of a token, or those without', async () => {
    const [owner, stranger, admin] = [
      await service.newToken(),
      await service.newToken(),
      await service.newToken({ scopes: ['admin'] }),
    ]
    const id = await add(owner.token, [['title', 'zeppelin']])
    await service.deps.pool.query(`
      insert into clips (id, source_id, title, source_kind, created_at)
      select 'without1', source_id, 'zeppelins', 'upload', created_at - interval '1 day' from clips where id = '${id}'`)
    const found = async (token: string, query: Record<string, string> = {}) =>
      Promise.all(
        ['created', 'title', 'bytes', 'duration'].map(async (sort) =>
          (await list(token, { q: 'zepp', sort, ...query })).ids.toSorted(),
        ),
      )
    const four = (ids: string[]) => Array(4).fill(ids)
    expect(await found(owner.token)).toEqual(four([id]))
    expect(await found(stranger.token)).toEqual(four([]))
    expect(await found(admin.token)).toEqual(four([id, 'without1'].toSorted()))
    expect(await found(admin.token, { token: owner.id })).toEqual(four([id]))
    expect(await found(admin.token, { token: 'none' })).toEqual(four(['without1']))
    expect(await found(admin.token, { token: 'none', order: 'asc' })).toEqual(four(['without1']))
  })

  test('of at most a hundred words of a clip, so that no upload makes rows without end', async () => {
    const { token } = await service.newToken()
    const tags = Array.from({ length: 30 }, (_, n) => Array.from({ length: 8 }, (_, m) => `w${n}x${m}`).join(' '))
    const id = await add(token, [['title', 'first'], ...tags.map((tag): [string, string] => ['tags', tag])])
    const { rows } = await service.deps.pool.query('select count(*)::integer as n from clip_words where clip_id = $1', [
      id,
    ])
    expect(rows).toEqual([{ n: 100 }])
    expect((await list(token, { q: 'first w0x0' })).ids).toEqual([id])
  })
})

test('clips that any other statement adds, changes and deletes are found as they are', async () => {
  const { pool } = service.deps
  const { token, id: tokenId } = await service.newToken()
  const own = await add(token, [['title', 'shared apple']])
  const insert = `insert into clips (id, token_id, source_id, title, tags, tag_keys, nsfw, attribution, source_kind, created_at)
    select $1, $2, source_id, $3, '{Old Tag}', '{old tag}', false, '{"site":"reddit","user":"foreign"}', 'upload', created_at
    from clips where id = $4`
  for (const id of ['foreign1', 'foreign2', 'foreign3']) await pool.query(insert, [id, tokenId, `Shared ${id}`, own])
  const found = async (q: string) => (await list(token, { q, sort: 'title' })).ids
  expect(await found('shared')).toEqual([own, 'foreign1', 'foreign2', 'foreign3'])
  expect(await found('old tag foreign1')).toEqual(['foreign1'])
  const tagged = async () => (await list(token, { tag: 'old tag' })).ids
  expect(await tagged()).toEqual(['foreign3', 'foreign2', 'foreign1'])
  await pool.query(`update clips set title = 'Other' where id = 'foreign1' and deleted_at is null`)
  await pool.query(
    `update clips set source_id = null, title = null, tags = '{}', tag_keys = '{}', attribution = null, source_url = null,
      deleted_at = now() where id = 'foreign2'`,
  )
  await pool.query(`delete from clips where id = 'foreign3'`)
  expect([await found('shared'), await found('other'), await found('foreign')]).toEqual([
    [own],
    ['foreign1'],
    ['foreign1'],
  ])
  expect(await tagged()).toEqual(['foreign1'])
})

describe('a sorted list', () => {
  let token: string
  /** Pairs of clips with the same title, time or bytes, and clips without a title. */
  let clips: { id: string; title: string; frames: number; created: number }[]

  beforeAll(async () => {
    ;({ token } = await service.newToken())
    clips = []
    for (let n = 0; n < 9; n++) {
      const title = ['', 'banana', 'Äpfel', 'Banana', 'apfel', '', 'Zoo', 'École', 'echo'][n] as string
      const frames = 2 + Math.floor(n / 2)
      const picture = gif(
        40,
        10,
        Array.from({ length: frames }, () => ({ delay: 10 })),
      )
      const id = await add(token, [['title', title ? `${title} page` : '']], picture)
      clips.push({ id, title: title ? `${title} page` : '', frames, created: service.deps.now().getTime() })
      if (n % 2) service.clock.advance({ seconds: 1 })
    }
  })

  const folded = (title: string) => title.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()
  const compare = <Key>(one: Key, other: Key) => (one < other ? -1 : one > other ? 1 : 0)
  const keys = {
    created: ({ created }: (typeof clips)[number]) => created,
    title: ({ title }: (typeof clips)[number]) => folded(title),
    bytes: ({ frames }: (typeof clips)[number]) => frames,
    duration: ({ frames }: (typeof clips)[number]) => frames,
  }
  const sorted = (sort: keyof typeof keys, order: string, matching = clips) => {
    const ascending = matching.toSorted(
      (one, other) => compare<string | number>(keys[sort](one), keys[sort](other)) || compare(one.id, other.id),
    )
    return (order === 'asc' ? ascending : ascending.toReversed()).map(({ id }) => id)
  }

  async function pages(query: Record<string, string>, between: (page: number) => Promise<unknown> = async () => {}) {
    const ids: string[] = []
    for (let page = 0, cursor: string | null = ''; cursor !== null; page++) {
      const { ids: some, next, link } = await list(token, { limit: '2', ...query, ...(cursor && { cursor }) })
      expect(some.length).toBeLessThanOrEqual(2)
      if (next) {
        const [, url] = /^<(.*)>; rel="next"$/.exec(link ?? '') ?? []
        expect(Object.fromEntries(new URL(url as string).searchParams)).toEqual({ limit: '2', ...query, cursor: next })
      } else expect(link).toBeNull()
      ids.push(...some)
      cursor = next
      await between(page)
    }
    return ids
  }

  test.each(
    (['created', 'title', 'bytes', 'duration'] as const).flatMap((sort) =>
      ['asc', 'desc'].flatMap((order) => [[sort, order, ''] as const, [sort, order, 'pa'] as const]),
    ),
  )(
    'by %s, %s, search "%s": pages follow each other without a gap or a repetition among equal keys',
    async (sort, order, q) => {
      const query = { sort, order, ...(q && { q }) }
      const expected = sorted(sort, order, q ? clips.filter(({ title }) => title !== '') : clips)
      const added: string[] = []
      // Clips come and go while the pages are read.
      const ids = await pages(query, async (page) => {
        if (page > 1) return
        service.clock.advance({ seconds: 0.001 })
        added.push(await add(token, [['title', page ? 'a page' : 'zz page']]))
      })
      for (const id of added) await remove(token, id)
      expect(ids.filter((id) => !added.includes(id))).toEqual(expected)
      expect(new Set(ids).size).toBe(ids.length)
    },
  )

  test('is ascending by title and descending otherwise, without `order`', async () => {
    for (const [sort, order] of Object.entries({ created: 'desc', title: 'asc', bytes: 'desc', duration: 'desc' })) {
      expect((await list(token, { sort })).ids).toEqual(sorted(sort as keyof typeof keys, order))
    }
  })

  test('has only clips from `from` on and before `to`', async () => {
    const times = [...new Set(clips.map(({ created }) => created))]
    const [from, to] = [times[1] as number, times[3] as number]
    const within = clips.filter(({ created }) => created >= from && created < to)
    const range = { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
    for (const sort of ['created', 'title', 'bytes', 'duration'] as const) {
      expect(await pages({ sort, order: 'asc', ...range })).toEqual(sorted(sort, 'asc', within))
      expect(await pages({ sort, order: 'desc', q: 'page', ...range })).toEqual(
        sorted(
          sort,
          'desc',
          within.filter(({ title }) => title),
        ),
      )
    }
    const day = range.from.slice(0, 10)
    expect((await list(token, { from: day })).ids.length).toBeGreaterThan(0)
    expect((await list(token, { to: '1999-12-31' })).ids).toEqual([])
    expect((await list(token, { from: range.from.replace('Z', '+00:00') })).ids).not.toEqual([])
  })

  test('refuses the cursors of other lists', async () => {
    const lists = [
      {},
      { sort: 'title' },
      { sort: 'title', order: 'desc' },
      { order: 'asc' },
      { q: 'page' },
      { q: 'pag' },
      { q: 'page', sort: 'bytes' },
      { q: 'page', nsfw: 'false' },
      { from: '2000-01-01' },
    ] as Record<string, string>[]
    const cursors = await Promise.all(
      lists.map(async (query) => (await list(token, { limit: '1', ...query })).next as string),
    )
    for (const [n, query] of lists.entries()) {
      for (const [m, cursor] of cursors.entries()) {
        if (n === m) expect((await list(token, { ...query, cursor })).ids).not.toEqual([])
        else expect(await refusal(queryOf({ ...query, cursor }), token)).toEqual([422, 'invalid_field', 'cursor'])
      }
    }
  })

  test('refuses cursors that it did not write', async () => {
    const { next } = await list(token, { sort: 'title', limit: '1' })
    const [name] = JSON.parse(Buffer.from(next as string, 'base64url').toString())
    for (const forged of [
      [name],
      [name, 1, 'abcdefgh'],
      [name, 'a\0', 'abcdefgh'],
      [name, 'a', 'x'],
      { 0: name },
      null,
      1,
    ]) {
      const cursor = Buffer.from(JSON.stringify(forged)).toString('base64url')
      expect(await refusal(queryOf({ sort: 'title', cursor }), token)).toEqual([422, 'invalid_field', 'cursor'])
    }
  })
})

test.each([
  'q=',
  'q=%20',
  'q=!!%20%26',
  'q=%00',
  `q=${'a'.repeat(201)}`,
  `q=${Array.from({ length: 17 }, (_, n) => `w${n}`).join('+')}`,
  'q=a&q=b',
  'sort=size',
  'sort=',
  'order=up',
  'sort=title&order=',
  'from=yesterday',
  'from=2026-02-30',
  'from=0000-01-01',
  'from=2026-01-01T00:00',
  'to=9999999',
  'to=2026-13-01T00:00:00Z',
])('a list asked for with %s is refused', async (query) => {
  const [, name] = /([a-z]+)=[^&]*$/.exec(query) ?? []
  expect(await refusal(query)).toEqual([422, 'invalid_field', name])
})

test('a range that ends before it begins is refused', async () => {
  expect(await refusal('from=2026-01-02&to=2026-01-02')).toEqual([422, 'invalid_field', 'to'])
})
