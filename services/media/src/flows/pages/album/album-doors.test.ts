// Doors of an album and states of its clips. A door is an address by which a visitor meets a clip in it, for each
// visibility of the album. The rule is in core/albums/shown-items.store.ts.
import { describe, expect, test as plain } from 'vitest'
import { type Answer, startTestService, type TestService, test } from '../../../../test/service.ts'
import { elementsOf } from '../testing/markup.ts'
import { type Album, addAlbum, addClip, addItems, change, changeAlbum, linkTo, steps } from './testing/albums.ts'

const HTML = { accept: 'text/html' }

const unescaped = (text: string) => text.replaceAll('&amp;', '&')

/** Ids of clips that the grid links to, in order. */
const gridOf = ({ text }: Answer) => [
  ...new Set([...text.matchAll(/<a href="[^"]*\/gif\/(\w{8})/g)].map(([, id]) => id)),
]

/** Ids of clips that the player shows, by its arrows. */
async function walk(service: TestService, embed: string): Promise<string[]> {
  const shown: string[] = []
  for (let address: string | undefined = embed; address && shown.length < 10; ) {
    const { text } = await service.get(address, HTML)
    const [, id] = /<link rel="canonical" href="[^"]*\/gif\/(\w{8})/.exec(text) ?? []
    if (id) shown.push(id)
    const [, next] = /rel="next" href="([^"]+)"/.exec(text) ?? []
    address = next && unescaped(next)
  }
  return shown
}

const idsIn = (text: string | undefined) => [...(text ?? '').matchAll(/\/f\/(\w{8})\./g)].map(([, id]) => id)

/** The clip of each kind of preview. */
async function previewsOf(service: TestService, { page, oembed }: Album) {
  const { text } = await service.get(page, HTML)
  const meta = elementsOf(text).find(({ attributes }) => attributes.property === 'og:image')
  const [, json] = /<script type="application\/ld\+json">(.*?)<\/script>/s.exec(text) ?? []
  const { body } = await service.get(oembed)
  return {
    openGraph: idsIn(meta?.attributes.content)[0],
    jsonLd: idsIn(json && JSON.parse(json).video.contentUrl)[0],
    oembed: idsIn(body.thumbnail_url)[0],
  }
}

type State = keyof typeof steps
type Row = [state: State, inOpen: boolean, inPrivate: boolean, inPreviews: boolean]

const ROWS: Row[] = [
  ['public', true, true, true],
  ['unlisted', true, true, false],
  ['private', false, true, false],
  ['sensitive', true, true, false],
  ['hidden', false, false, false],
  ['blocked', false, false, false],
  ['expired', false, false, false],
  ['deleted', false, false, false],
  ['failed', false, false, false],
  ['processing', false, false, false],
  ['taken out', false, false, false],
]

describe.for(ROWS)('a clip that is %s', ([state, inOpen, inPrivate, inPreviews]) => {
  test(`shows in an open album: ${inOpen}, in a private one: ${inPrivate}, in previews: ${inPreviews}`, async ({
    service,
  }) => {
    const [subject, other] = [await addClip(service), await addClip(service)]
    const clips = [subject, other]
    const [open, unlisted, secret] = [
      await addAlbum(service, { clips }),
      await addAlbum(service, { clips, visibility: 'unlisted' }),
      await addAlbum(service, { clips, visibility: 'private' }),
    ]
    await steps[state](service, subject, [open.id, unlisted.id, secret.id])
    const shown = inOpen ? clips : [other]

    expect(gridOf(await service.get(open.page, HTML))).toEqual(shown)
    expect(await walk(service, open.embed)).toEqual(shown)
    const feed = await service.get(`/a/${open.id}/feed.xml`)
    expect([...feed.text.matchAll(/<id>[^<]*\/gif\/(\w{8})<\/id>/g)].map(([, id]) => id).toSorted()).toEqual(
      shown.toSorted(),
    )
    const preview = inPreviews ? subject : other
    expect(await previewsOf(service, open)).toEqual({ openGraph: preview, jsonLd: preview, oembed: preview })

    expect(gridOf(await service.get(unlisted.page, HTML))).toEqual(shown)
    expect(await walk(service, unlisted.embed)).toEqual(shown)
    expect((await service.get(`/a/${unlisted.id}/feed.xml`)).status).toBe(404)
    expect(await previewsOf(service, unlisted)).toEqual({ openGraph: preview, jsonLd: undefined, oembed: preview })

    for (const path of ['', '/embed', '/feed.xml', `/embed?at=${subject}`]) {
      expect((await service.get(`/a/${secret.id}${path}`, HTML)).status).toBe(404)
    }
    expect((await service.get(secret.oembed)).status).toBe(404)
    const link = await linkTo(service, secret.id)
    const page = await service.get(link.page, HTML)
    expect(gridOf(page)).toEqual(inPrivate ? clips : [other])
    expect(page.text).not.toMatch(/property="og:|name="twitter:|oembed"|ld\+json|atom\+xml/)
    expect(await walk(service, link.embed)).toEqual(inPrivate ? clips : [other])
    const oembed = await service.get(`/oembed?url=${encodeURIComponent(link.page)}`)
    expect(idsIn(oembed.body.thumbnail_url)[0]).toBe(preview)
    expect((await service.get(`/a/${secret.id}/feed.xml${new URL(link.page).search}`)).status).toBe(404)
  })
})

test('an album of sensitive clips alone has no picture in previews and is not indexed', async ({ service }) => {
  const clip = await addClip(service, [['nsfw', 'true']])
  const album = await addAlbum(service, { clips: [clip] })
  expect(await previewsOf(service, album)).toEqual({ openGraph: undefined, jsonLd: undefined, oembed: undefined })
  const { text } = await service.get(album.page, HTML)
  const elements = elementsOf(text)
  // Without a picture in the head, previews take one of the page.
  expect(elements.filter(({ name }) => name === 'img')).toEqual([])
  expect(text).toMatch(/<details class="gate">.*<video poster=.*<\/details>/s)
  expect(text).toContain('<meta name="robots" content="noindex">')
  expect(text).toContain('<meta name="rating" content="adult">')
  const feed = (await service.get(`/a/${album.id}/feed.xml`)).text
  expect(feed).toContain(`/gif/${clip}`)
  expect(feed).not.toContain(`/f/${clip}`)
})

/** Addresses of a private clip that the link of an album opens. */
async function signedFor(service: TestService, page: string, clip: string) {
  const grid = unescaped((await service.get(page, HTML)).text)
  const [, clipPage = ''] = new RegExp(`href="([^"]*/gif/${clip}[^"]*)"`).exec(grid) ?? []
  const [, still = ''] = new RegExp(`src="([^"]*/f/${clip}/w320[^"]*)"`).exec(grid) ?? []
  const opened = await service.get(clipPage, HTML)
  const text = unescaped(unescaped(opened.text))
  const first = (pattern: RegExp) => pattern.exec(text)?.[1] ?? ''
  return {
    page: clipPage,
    embed: first(/src=&quot;([^&]*\/embed\/[^&]*(?:&[aes]=[\w-]+)*)&quot;/),
    mp4: first(/src="([^"]*\.mp4[^"]*)"/),
    jpg: first(/poster="([^"]*\.jpg[^"]*)"/),
    report: first(/href="([^"]*\/report[^"]*)"/),
    still,
    oembed: `/oembed?url=${encodeURIComponent(clipPage)}`,
  }
}

const statusesOf = async (service: TestService, addresses: Record<string, string>) => {
  const entries = Object.entries(addresses).map(
    async ([name, address]): Promise<[string, number]> => [name, (await service.get(address, HTML)).status],
  )
  return Object.fromEntries(await Promise.all(entries))
}

const all = (status: number) => ({
  ...{ page: status, embed: status, mp4: status, jpg: status, report: status, still: status, oembed: status },
})

const OK = { ...all(200), still: expect.toBeOneOf([200, 302]) }

/** A private clip in a private album with a link, and the addresses that it opens. */
async function linked(service: TestService) {
  const clip = await addClip(service, [['visibility', 'private']])
  const album = await addAlbum(service, { clips: [clip], visibility: 'private' })
  const link = await linkTo(service, album.id)
  return { clip, album, link, signed: await signedFor(service, link.page, clip) }
}

describe('an address of a private clip that is signed for an album', () => {
  test('opens its page and all that a link to the page opens, for its viewer alone', async ({ service }) => {
    const { signed } = await linked(service)
    expect(new Set(Object.values(signed)).size).toBe(7)
    expect(await statusesOf(service, signed)).toEqual(OK)
    const page = await service.get(signed.page, HTML)
    expect(page.headers.get('cache-control')).toBe('private, no-cache')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('x-robots-tag')).toBe('noindex')
    expect((await service.get(signed.mp4)).headers.get('cache-control')).toMatch(/^private, max-age=\d+, immutable$/)
    const addresses = [...unescaped(page.text).matchAll(/(?:src|href|poster)="([^"]*\/(?:f|gif|embed)\/[^"]*)"/g)]
    for (const [, address = ''] of addresses)
      expect([address, (await service.get(address)).status]).toEqual([address, 200])
  })

  test.for([
    ['private', OK],
    ['hidden', all(451)],
    ['blocked', all(404)],
    ['expired', all(410)],
    ['deleted', all(404)],
    ['failed', { ...all(404), report: 200 }],
    ['taken out', all(404)],
  ] as const)('of a clip that is %s answers accordingly', async ([state, statuses], { service }) => {
    const { clip, album, signed } = await linked(service)
    await steps[state](service, clip, [album.id])
    expect(await statusesOf(service, signed)).toEqual(statuses)
  })

  test.for(['public', 'unlisted'])(
    'ends when the album is made %s, which shows no private clips',
    async (visibility, { service }) => {
      const { album, link, signed } = await linked(service)
      await changeAlbum(service, album.id, { visibility })
      expect(await statusesOf(service, signed)).toEqual(all(404))
      expect(gridOf(await service.get(link.page, HTML))).toEqual([])
    },
  )

  test('ends with the album', async ({ service }) => {
    const { album, link, signed } = await linked(service)
    await service.call('DELETE', `/albums/${album.id}`, { headers: { token: service.token } })
    expect(await statusesOf(service, { ...signed, album: link.page })).toEqual({ ...all(404), album: 404 })
  })

  test('ends with all links of the album', async ({ service }) => {
    const { album, link, signed } = await linked(service)
    const path = `/albums/${album.id}/links`
    expect((await service.call('DELETE', path, { headers: { token: service.token } })).status).toBe(204)
    expect(await statusesOf(service, { ...signed, album: link.page })).toEqual({ ...all(404), album: 404 })
    expect((await service.get((await linkTo(service, album.id)).page, HTML)).status).toBe(200)
  })

  test('opens no other clip, and the clip in no other album', async ({ service }) => {
    const { clip, album, link, signed } = await linked(service)
    const inside = await addClip(service, [['visibility', 'private']])
    await addItems(service, album.id, [inside])
    const elsewhere = await addAlbum(service, { clips: [clip], visibility: 'private' })
    const { oembed: _, ...plain } = signed
    const changed = (from: string | RegExp, to: string) =>
      Object.fromEntries(Object.entries(plain).map(([name, address]) => [name, address.replace(from, to)]))
    const { oembed: __, ...refused } = all(404)
    for (const addresses of [
      changed(clip, inside),
      changed(`a=${album.id}`, `a=${elsewhere.id}`),
      changed(`a=${album.id}&`, ''),
      changed(/e=(\d+)/, 'e=99999999999'),
      changed(/\?.*/, new URL(link.page).search),
      changed(/\?.*/, `?a=${album.id}&${new URL(link.page).search.slice(1)}`),
    ]) {
      expect(addresses).not.toEqual(plain)
      expect(await statusesOf(service, addresses)).toEqual(refused)
    }
    const { search } = new URL(signed.page)
    expect((await service.get(`/a/${album.id}${search}`, HTML)).status).toBe(404)
    expect((await service.get(`/a/${album.id}/embed${search}`, HTML)).status).toBe(404)
  })

  test('leads neither to details nor to changes', async ({ service }) => {
    const { clip, album, signed } = await linked(service)
    const { search } = new URL(signed.page)
    for (const [method, path] of [
      ['GET', `/media/${clip}`],
      ['DELETE', `/media/${clip}`],
      ['PATCH', `/media/${clip}`],
      ['POST', `/media/${clip}/links`],
      ['POST', `/albums/${album.id}/links`],
      ['DELETE', `/albums/${album.id}/links`],
    ] as const) {
      expect([path, (await service.call(method, path + search)).status]).toEqual([path, 401])
    }
    expect((await service.get(signed.page, HTML)).status).toBe(200)
  })

  test('of the player shows the player alone: neither the page nor the form of a report', async ({ service }) => {
    const { clip, link } = await linked(service)
    const { text } = await service.get(link.embed, HTML)
    expect(text).not.toContain('/report')
    expect(text).not.toMatch(/href="[^"]*\/a\/\w{8}\?/)
    const [, src = ''] = /<source src="([^"]*\.mp4[^"]*)"/.exec(text) ?? []
    expect((await service.get(unescaped(src))).status).toBe(200)
    const { search } = new URL(link.embed)
    for (const path of [`/gif/${clip}`, `/embed/${clip}`, `/f/${clip}.mp4`, new URL(link.page).pathname]) {
      expect([path, (await service.get(path + search, HTML)).status]).toEqual([path, 404])
    }
  })
})

plain('a link ends when it says, and its clips with it', async () => {
  const service = await startTestService()
  const { album, link, signed } = await linked(service)
  const short = await linkTo(service, album.id, { expires_in: '10m' })
  expect(Date.parse(short.expires_at) - service.clock.now().getTime()).toBeGreaterThan(598_000)
  service.clock.advance({ seconds: 600 })
  expect((await service.get(short.page, HTML)).status).toBe(404)
  expect((await service.get(short.embed, HTML)).status).toBe(404)
  expect(await statusesOf(service, signed)).toEqual(OK)
  service.clock.advance({ seconds: 3000 })
  expect((await service.get(link.page, HTML)).status).toBe(404)
  expect(await statusesOf(service, signed)).toEqual(all(404))
  await service.close()
})

test('clips of an open album have their own addresses, with views as ever; the album counts none', async ({
  service,
}) => {
  const clip = await addClip(service)
  const album = await addAlbum(service, { clips: [clip], visibility: 'unlisted' })
  const browser = { ...HTML, 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' }
  const viewsOf = async () => (await service.get(`/media/${clip}/views`, { token: service.token })).body.success.total
  await service.get(album.page, browser)
  await service.deps.viewCounter.write()
  expect(await viewsOf()).toEqual({ page: 0, embed: 0, file: 0 })
  await service.get(album.embed, browser)
  await service.get(`/gif/${clip}`, browser)
  await service.deps.viewCounter.write()
  expect(await viewsOf()).toEqual({ page: 1, embed: 1, file: 0 })
  await change(service, clip, { visibility: 'private' })
  expect(gridOf(await service.get(album.page, HTML))).toEqual([])
})
