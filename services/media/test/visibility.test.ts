// Doors and states: every public address of a clip, in every state that decides who may see it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { signVariant } from '../src/flows/files/variants/signature.ts'
import { clip } from './clips.ts'
import { type Answer, idIn, startTestService, type TestService } from './service.ts'

const VARIANT_KEY = 'a key of this test alone'

const signed = (id: string) => `/v/${signVariant(VARIANT_KEY, `/w:20/${id}.jpg`)}/w:20/${id}.jpg`

const SECRET_TITLE = 'A title that only its owner may read'

let service: TestService
let admin: string

beforeAll(async () => {
  service = await startTestService({
    MEDIA_VARIANT_KEY: VARIANT_KEY,
    MEDIA_RATE_LIMIT_READ: '100000/1m',
    MEDIA_RATE_LIMIT_HEADER: 'x-client',
  })
  admin = (await service.newToken({ scopes: ['admin'] })).token
})
afterAll(() => service.close())

interface Shown {
  id: string
  /** Query of each address, by its target. */
  linked: Record<string, string>
}

const kinds = ['gif', 'jpg', 'mp4', 'webm'] as const

/** Every address without a token; `key` is what a link is signed for. */
const doors: [name: string, key: string, request: (id: string, query: string) => [path: string, headers?: object]][] = [
  ...kinds.map((kind): (typeof doors)[number] => [`${kind}`, kind, (id, query) => [`/f/${id}.${kind}${query}`]]),
  ['part of the mp4', 'mp4', (id, query) => [`/f/${id}.mp4${query}`, { range: 'bytes=0-9' }]],
  ['any version of the mp4', 'mp4', (id, query) => [`/f/${id}.mp4${query}`, { 'if-none-match': '*' }]],
  ['still of the poster', 'jpg', (id, query) => [`/f/${id}/w160.jpg${query}`]],
  ['frame of the video', 'mp4', (id, query) => [`/f/${id}/t0.jpg${query}`]],
  ['signed still', 'jpg', (id, query) => [`${signed(id)}${query}`]],
  ['saved gif', 'gif', (id, query) => [`/f/${id}.gif${query}${query ? '&' : '?'}download=1`]],
  ['page', 'page', (id, query) => [`/gif/${id}${query}`, { accept: 'text/html' }]],
  ['page for a program', 'page', (id, query) => [`/gif/${id}${query}`]],
  ['form of a report', 'page', (id, query) => [`/gif/${id}/report${query}`, { accept: 'text/html' }]],
  ['form of a report for a program', 'page', (id, query) => [`/gif/${id}/report${query}`]],
  ['embed', 'embed', (id, query) => [`/embed/${id}${query}`, { accept: 'text/html' }]],
  ['data of the element', 'page', (id, query) => [`/embed/${id}/data${query}`]],
  ['oEmbed', 'oembed', (id, query) => [`/oembed/${id}${query}`]],
  ['oEmbed as XML', 'oembed', (id, query) => [`/oembed/${id}${query}${query ? '&' : '?'}format=xml`]],
  [
    'oEmbed of a page',
    'page',
    (id, query) => [`/oembed?url=${encodeURIComponent(`https://media.example/gif/${id}${query}`)}`],
  ],
  [
    'oEmbed of a file',
    'mp4',
    (id, query) => [`/oembed?url=${encodeURIComponent(`https://files.example/f/${id}.mp4${query}`)}`],
  ],
]

/** 302: a variant that would be larger is the file. */
const shown = [200, 206, 302, 304]

/** Steps to a state, the query that a visitor has, and the status of every door. */
const states: [name: string, make: (it: Shown) => Promise<unknown>, query: string, number[]][] = [
  ['public', ({ id }) => change(id, { visibility: 'public' }), 'none', shown],
  ['public, with a wrong link', ({ id }) => change(id, { visibility: 'public' }), 'forged', shown],
  ['unlisted', ({ id }) => change(id, { visibility: 'unlisted' }), 'none', shown],
  ['expired', expire, 'none', [410]],
  ['deleted', remove, 'none', [410]],
  ['hidden', hide, 'none', [451]],
  ['hidden and shown again', (it) => hide(it).then(() => moderate(it.id, { action: 'unhide' })), 'none', shown],
  ['hidden and deleted', (it) => hide(it).then(() => remove(it)), 'none', [410]],
  ['private', makePrivate, 'none', [404]],
  ['private, with a link', makePrivate, 'linked', shown],
  ['private, with a forged link', makePrivate, 'forged', [404]],
  ['private, with the link of another address', makePrivate, 'of another', [404]],
  ['private, with a link that was made to last longer', makePrivate, 'stretched', [404]],
  ['private, after its link has ended', (it) => makePrivate(it).then(() => pass()), 'linked', [404]],
  ['private, after all links were ended', (it) => makePrivate(it).then(() => end(it)), 'linked', [404]],
  ['private and hidden', (it) => makePrivate(it).then(() => hide(it)), 'none', [404]],
  ['private and hidden, with a link', (it) => makePrivate(it).then(() => hide(it)), 'linked', [451]],
  ['private and expired', (it) => makePrivate(it).then(() => expire(it)), 'none', [404]],
  ['private and deleted', (it) => makePrivate(it).then(() => remove(it)), 'none', [404]],
  ['private and deleted, with a link', (it) => makePrivate(it).then(() => remove(it)), 'linked', [410]],
]

describe.for(states)('%s:', ([, make, query, statuses]) => {
  let it: Shown
  beforeAll(async () => {
    it = await shownClip()
    await make(it)
  })

  test.for(doors)('%s', async ([, key, request]) => {
    const queryOf: Record<string, string | undefined> = {
      none: '',
      linked: it.linked[key],
      forged: it.linked[key]?.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      'of another': it.linked[key === 'jpg' ? 'gif' : 'jpg'],
      stretched: it.linked[key]?.replace(/e=(\d+)/, (_, end) => `e=${Number(end) + 3600}`),
    }
    const [path, headers] = request(it.id, queryOf[query] ?? 'missing')
    const answer = await service.get(path, headers as Record<string, string>)
    expect(statuses).toContain(answer.status)
    if (answer.status === 302) expect((await service.get(answer.headers.get('location') ?? '')).status).toBe(200)
    if (shown.includes(answer.status)) return
    const { status } = await service.call('HEAD', path, { headers: headers as Record<string, string> })
    expect(status).toBe(answer.status)
    // A refusal is that of an address at which there never was anything, and nothing may keep it.
    expect(answer.text).not.toContain(SECRET_TITLE)
    expect(answer.headers.get('etag')).toBeNull()
    expect(answer.headers.get('cache-control') ?? 'no-store').toBe('no-store')
    if (answer.status !== 404) return
    const [unknownPath] = request('zzzzzzzz', queryOf[query] ?? '')
    const unknown = await service.get(unknownPath, headers as Record<string, string>)
    expect(comparable(answer)).toEqual(comparable(unknown))
  })
})

let reporters = 0

describe.for(states)('a report of a clip that is %s', ([, make, query]) => {
  test('is answered like that of an unknown one, and no clip changes by it', async () => {
    const it = await shownClip()
    await make(it)
    const report = (id: string, accept: string) =>
      service.call('POST', `/gif/${id}/report${query === 'linked' ? it.linked.page : ''}`, {
        body: new URLSearchParams({ reason: 'other' }),
        headers: { accept, 'x-client': `192.0.2.${reporters++ % 250}` },
      })
    for (const accept of ['text/html', '*/*']) {
      const [known, again, unknown] = [
        await report(it.id, accept),
        await report(it.id, accept),
        await report('zzzzzzzz', accept),
      ]
      expect(known.status).toBe(202)
      expect(comparable(known)).toEqual(comparable(unknown))
      expect(comparable(again)).toEqual(comparable(unknown))
    }
  })
})

const comparable = ({ status, headers, text }: Answer) => ({
  status,
  text: text.replaceAll(/"request_id":"[^"]*"/g, ''),
  headers: Object.fromEntries([...headers].filter(([name]) => !['date', 'x-request-id'].includes(name))),
})

let sources = 0

/** A clip of its own, whose bytes others share, with links that were made while it was public. */
async function shownClip(): Promise<Shown> {
  sources++
  const id = idIn(
    await service.upload(await clip('plain.gif'), [
      ['title', SECRET_TITLE],
      ['tags', `${sources}`],
    ]),
  )
  const { url, embed, files, oembed } = (await links(id)).body.success
  const queryIn = (address: string) => new URL(address).search
  const addresses = {
    page: url,
    embed: /src="([^"]*)"/.exec(embed)?.[1]?.replaceAll('&amp;', '&') ?? '',
    oembed,
    ...files,
  }
  return {
    id,
    linked: Object.fromEntries(Object.entries(addresses).map(([key, address]) => [key, queryIn(String(address))])),
  }
}

const links = (id: string, body: object = {}, token = service.token) =>
  service.call('POST', `/media/${id}/links`, {
    body: JSON.stringify(body),
    headers: { token, 'content-type': 'application/json' },
  })

const change = (id: string, changes: object, token = service.token) =>
  service.call('PATCH', `/media/${id}`, {
    body: JSON.stringify(changes),
    headers: { token, 'content-type': 'application/json' },
  })

async function makePrivate({ id }: Shown): Promise<void> {
  await change(id, { visibility: 'private' })
}

async function moderate(id: string, decision: object): Promise<void> {
  const { status } = await service.call('POST', `/media/${id}/moderation`, {
    body: JSON.stringify(decision),
    headers: { token: admin, 'content-type': 'application/json' },
  })
  expect(status).toBe(200)
}

async function hide({ id }: Shown): Promise<void> {
  await moderate(id, { action: 'hide', reason: 'spam' })
}

async function remove({ id }: Shown): Promise<void> {
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
}

const end = ({ id }: Shown) => service.call('DELETE', `/media/${id}/links`, { headers: { token: service.token } })

async function expire({ id }: Shown) {
  await change(id, { expires_in: '1m' })
  service.clock.advance({ seconds: 60 })
}

const pass = async () => service.clock.advance({ seconds: 3600 })

describe('links', () => {
  test('last an hour, or as long as asked for, but not longer than the clip', async () => {
    const { id } = await shownClip()
    const lasts = async (body: object) =>
      Math.round((Date.parse((await links(id, body)).body.success.expires_at) - +service.clock.now()) / 1000)
    expect(await lasts({})).toBeCloseTo(3600, -1)
    expect(await lasts({ expires_in: '30d' })).toBeCloseTo(2_592_000, -1)
    await change(id, { expires_in: 120 })
    expect(await lasts({ expires_in: '1h' })).toBeCloseTo(120, -1)
  })

  test.for(['59', '31d', 'never', 'soon', '-5'])('for %s are refused', async (span) => {
    const { id } = await shownClip()
    const { status, body } = await links(id, { expires_in: span })
    expect([status, body.error.param]).toEqual([422, 'expires_in'])
  })

  test('are made and ended by the owner alone', async () => {
    const { id } = await shownClip()
    const stranger = (await service.newToken()).token
    expect((await links(id, {}, stranger)).status).toBe(404)
    expect((await service.call('DELETE', `/media/${id}/links`, { headers: { token: stranger } })).status).toBe(404)
    expect((await service.call('POST', `/media/${id}/links`)).status).toBe(401)
  })

  test('two at once are good, both', async () => {
    const { id } = await shownClip()
    await change(id, { visibility: 'private' })
    const made = await Promise.all([links(id), links(id)])
    for (const { body } of made) expect((await service.get(body.success.files.mp4)).status).toBe(200)
  })

  test('the page of a link leads only to addresses that it signs, and is hidden from the sites that it leads to', async () => {
    const { id, linked } = await shownClip()
    await change(id, { visibility: 'private' })
    const page = await service.get(`/gif/${id}${linked.page}`, { accept: 'text/html' })
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('cache-control')).toBe('private, no-cache')
    expect(page.headers.get('x-robots-tag')).toBe('noindex')
    expect(page.text).not.toMatch(/property="og:|name="twitter:|oembed"|ld\+json/)
    const addresses = [...page.text.matchAll(/(?:src|href|poster)="([^"]*\/(?:f|gif|embed)\/[^"]*)"/g)]
    const paths = [...new Set(addresses.map(([, address = '']) => address.replaceAll('&amp;', '&')))]
    expect(paths.length).toBeGreaterThan(5)
    for (const path of paths) expect([path, (await service.get(path)).status]).toEqual([path, 200])
  })

  test('a file of a link may be kept as long as the link, and by its viewer alone', async () => {
    const { id, linked } = await shownClip()
    await change(id, { visibility: 'private' })
    const { headers } = await service.get(`/f/${id}.mp4${linked.mp4}`)
    const [, seconds] = /^private, max-age=(\d+), immutable$/.exec(headers.get('cache-control') ?? '') ?? []
    expect(Number(seconds)).toBeGreaterThan(3500)
    expect(Number(seconds)).toBeLessThanOrEqual(3600)
  })
})

test('an unlisted clip is kept from search engines, and plays everywhere else', async () => {
  const { id } = await shownClip()
  await change(id, { visibility: 'unlisted' })
  const page = await service.get(`/gif/${id}`, { accept: 'text/html' })
  expect(page.headers.get('x-robots-tag')).toBe('noindex')
  expect(page.text).toContain('<meta name="robots" content="noindex">')
  expect(page.text).not.toMatch(/json\+oembed|ld\+json/)
  expect(page.text).toContain('og:video')
  expect((await service.get(`/f/${id}.mp4`)).headers.get('x-robots-tag')).toBe('noindex')
})

test('a clip that was uploaded as private was never public, and its owner sees all of it', async () => {
  const id = idIn(await service.upload(await clip('plain.gif'), [['visibility', 'private']]))
  expect((await service.get(`/f/${id}.mp4`)).status).toBe(404)
  const { body } = await service.get(`/media/${id}`, { token: service.token })
  expect(body.success).toMatchObject({ state: 'ready', visibility: 'private', expires_at: null, sliding: false })
  const { items } = (await service.get('/media', { token: service.token })).body.success
  expect(items.map((item: { id: string }) => item.id)).toContain(id)
})

test('a private clip shares the bytes of a public one, but neither its addresses nor its visibility', async () => {
  const [secret, open] = [await shownClip(), await shownClip()]
  await change(secret.id, { visibility: 'private' })
  expect((await service.get(`/f/${open.id}.mp4`)).status).toBe(200)
  expect((await service.get(`/f/${secret.id}.mp4`)).status).toBe(404)
  expect((await service.get(`/f/${open.id}.mp4${secret.linked.mp4}`)).status).toBe(200)
  await change(open.id, { visibility: 'private' })
  expect((await service.get(`/f/${open.id}.mp4${secret.linked.mp4}`)).status).toBe(404)
})

test('the owner of a hidden clip learns that it is hidden, and why', async () => {
  const it = await shownClip()
  await hide(it)
  const { body } = await service.get(`/media/${it.id}`, { token: service.token })
  expect(body.success).toMatchObject({ state: 'hidden', hidden_reason: 'spam' })
})
