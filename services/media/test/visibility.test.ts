// Links to private clips, and what their owner learns. The visibility of a clip at each address: endpoints/.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clip } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

interface Shown {
  id: string
  /** Query of each address, by its target. */
  linked: Record<string, string>
}

/** A clip of its own, whose bytes others share, with links that were made while it was public. */
async function shownClip(): Promise<Shown> {
  const id = idIn(await service.ready(await clip('plain.gif')))
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

const change = (id: string, changes: object) =>
  service.call('PATCH', `/media/${id}`, {
    body: JSON.stringify(changes),
    headers: { token: service.token, 'content-type': 'application/json' },
  })

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
  const id = idIn(await service.ready(await clip('plain.gif'), [['visibility', 'private']]))
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
  const { id } = await shownClip()
  const { token } = await service.newToken({ scopes: ['admin'] })
  await service.call('POST', `/media/${id}/moderation`, {
    body: JSON.stringify({ action: 'hide', reason: 'spam' }),
    headers: { token, 'content-type': 'application/json' },
  })
  const { body } = await service.get(`/media/${id}`, { token: service.token })
  expect(body.success).toMatchObject({ state: 'hidden', hidden_reason: 'spam' })
})
