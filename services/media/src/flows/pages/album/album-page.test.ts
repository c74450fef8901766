// Page, player, feed and oEmbed of an album: their texts and pictures, and their headers for caches and robots.
import { describe, expect } from 'vitest'
import { test } from '../../../../test/service.ts'
import { elementsOf } from '../testing/markup.ts'
import { addAlbum, addClip, change, fillAlbum, linkTo } from './testing/albums.ts'

const HTML = { accept: 'text/html' }
const GERMAN = { ...HTML, 'accept-language': 'de-AT,de;q=0.9' }

/** Markup, characters that XML forbids, half of a pair, and 200 characters from right to left. */
const MARKUP = `</script></style></title>--><img src=x onerror=alert(1)>"'><svg/onload=alert(2)>&lt;]]>`
const CONTROL = 'a\u0001b\u0008c\u001fd\ufffee\u2028'
const RIGHT_TO_LEFT = `\u202e${'\u05d0'.repeat(199)}`

const pathsOf = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, path = '']) => path)

describe('hostile texts', () => {
  test.for([
    ['markup', MARKUP],
    ['control characters', CONTROL],
    ['right to left', RIGHT_TO_LEFT],
  ])('%s: every door stays well-formed and says them as they are', async ([, text], { service }) => {
    const clip = await addClip(service)
    // Fields are cleaned; rows may be older than the rule.
    await service.deps.pool.query('update clips set title = $2 where id = $1', [clip, text])
    const album = await addAlbum(service, { clips: [clip] })
    await service.deps.pool.query('update albums set title = $2, description = $2 where id = $1', [album.id, text])
    const page = await service.get(album.page, HTML)
    const elements = elementsOf(page.text)
    expect(
      elements.filter(({ attributes }) => Object.keys(attributes).some((key) => /^(on|style$)/.test(key))),
    ).toEqual([])
    expect(elements.filter(({ name }) => name === 'svg')).toEqual([])
    const title = elements.find(({ attributes }) => attributes.property === 'og:title')
    expect(title?.attributes.content).toBe(text)
    const [, json = ''] = /<script type="application\/ld\+json">(.*?)<\/script>/s.exec(page.text) ?? []
    expect(JSON.parse(json)).toMatchObject({ name: text, description: text, video: { name: text } })

    const embed = elementsOf((await service.get(album.embed, HTML)).text)
    expect(embed.find(({ name }) => name === 'nav')?.attributes['aria-label']).toBe(text)

    const feed = (await service.get(`/a/${album.id}/feed.xml`)).text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids these
    expect(feed).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/)
    expect(elementsOf(feed.replace(/^<\?xml.*\?>\n/, '')).filter(({ name }) => name === 'title')).toHaveLength(2)

    const oembed = await service.get(album.oembed)
    expect(oembed.body.title).toBe(text)
    const [frame, ...others] = elementsOf(oembed.body.html)
    expect([frame?.name, frame?.attributes.title, others]).toEqual(['iframe', text, []])
  })
})

describe('the page of an album', () => {
  test('names what it shows in English, or in German where the browser prefers it, and caches know', async ({
    service,
  }) => {
    const album = await addAlbum(service, { description: 'Two\nlines' })
    const english = await service.get(album.page, HTML)
    expect(english.headers.get('vary')).toBe('Accept, Accept-Language')
    expect(english.text).toContain('<html lang="en">')
    expect(english.text).toContain('There are no clips in this album.')
    expect(english.text).toContain('<p class="description" dir="auto">Two\nlines</p>')
    const german = await service.get(album.page, GERMAN)
    expect(german.text).toContain('<html lang="de">')
    expect(german.text).toContain('In diesem Album sind keine Clips.')
    expect((await service.get(album.embed, GERMAN)).text).toContain('In diesem Album sind keine Clips.')
    const missing = await service.get('/a/Unknown0', GERMAN)
    expect([missing.status, missing.headers.get('cache-control')]).toEqual([404, 'no-store'])
    expect(missing.text).toContain('Dieses Album gibt es nicht.')
    expect((await service.get('/a/Unknown0')).body.error.code).toBe('not_found')
  })

  test('is asked for again and answers 304 until something changes', async ({ service }) => {
    const clip = await addClip(service)
    const album = await addAlbum(service, { clips: [clip] })
    for (const path of [album.page, album.embed, `/a/${album.id}/feed.xml`, album.oembed]) {
      const first = await service.get(path, HTML)
      expect(first.headers.get('cache-control')).toBe('public, no-cache')
      const known = { ...HTML, 'if-none-match': first.headers.get('etag') ?? '' }
      expect((await service.get(path, known)).status).toBe(304)
    }
    const { headers } = await service.get(album.page, HTML)
    await change(service, clip, { title: 'Another title' })
    expect((await service.get(album.page, { ...HTML, 'if-none-match': headers.get('etag') ?? '' })).status).toBe(200)
  })

  test('reserves the size of each still, which is loaded late, and shows its colours before', async ({ service }) => {
    const clip = await addClip(service)
    const album = await addAlbum(service, { clips: [clip] })
    const { text, headers } = await service.get(album.page, HTML)
    const image = elementsOf(text).find(({ name }) => name === 'img')
    expect(image?.attributes).toMatchObject({
      src: `https://files.example/f/${clip}/w320.webp`,
      ...{ width: '20', height: '12', loading: 'lazy', alt: '' },
    })
    expect(text).toMatch(/\.p0 \{ background-image: url\(data:image\/bmp;base64,[\w+/=]+\) \}/)
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-\S+' 'sha256-\S+'; img-src \S+favicon.svg https:\/\/files.example data:; media-src https:\/\/files.example; script-src https:\/\/media.example\/assets\/album.js https:\/\/media.example\/assets\/previews.js; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    )
  })

  test('announces feed and oEmbed of a public album, and keeps others from search engines', async ({ service }) => {
    const clips = [await addClip(service)]
    const linksOf = (text: string) =>
      elementsOf(text).flatMap(({ name, attributes }) =>
        name === 'link' && attributes.rel === 'alternate' ? [attributes.type] : [],
      )
    const open = await service.get((await addAlbum(service, { clips })).page, HTML)
    expect(linksOf(open.text)).toEqual(['application/atom+xml', 'application/json+oembed', 'text/xml+oembed'])
    expect(open.headers.get('x-robots-tag')).toBeNull()
    expect(open.text).not.toContain('name="robots"')
    const unlisted = await service.get((await addAlbum(service, { clips, visibility: 'unlisted' })).page, HTML)
    expect(linksOf(unlisted.text)).toEqual([])
    expect(unlisted.text).toContain('property="og:image"')
    expect(unlisted.headers.get('x-robots-tag')).toBe('noindex')
    expect(unlisted.text).toContain('<meta name="robots" content="noindex">')
    const { id } = await addAlbum(service, { clips, visibility: 'private' })
    const secret = await service.get((await linkTo(service, id)).page, HTML)
    expect([secret.headers.get('x-robots-tag'), secret.headers.get('referrer-policy')]).toEqual([
      'noindex',
      'no-referrer',
    ])
    expect(secret.headers.get('cache-control')).toBe('private, no-cache')
  })

  test('has 60 clips, and an address of the next ones, which a link keeps', async ({ service }) => {
    const like = await addClip(service)
    const { id } = await addAlbum(service, { visibility: 'private' })
    await fillAlbum(service, { id, like, count: 130 })
    const { page } = await linkTo(service, id)
    const seen: string[] = []
    const sizes: number[] = []
    for (let address: string | undefined = page; address; ) {
      const { text } = await service.get(address, HTML)
      const shown = pathsOf(text, /<li><a href="[^"]*\/gif\/(\w+)/g)
      seen.push(...shown)
      sizes.push(shown.length)
      address = pathsOf(text, /<a class="onward" href="([^"]*)" rel="next">/g)[0]?.replaceAll('&amp;', '&')
    }
    expect(sizes).toEqual([60, 60, 10])
    expect(new Set(seen).size).toBe(130)
    expect(seen).toEqual(seen.toSorted())
  })

  test.for(['', '0', '1.short', '9999999999.Copy0001', 'x', '-1.Copy0001'])(
    'begins at the first clip after a position that is none: %s',
    async (after, { service }) => {
      const clip = await addClip(service)
      const album = await addAlbum(service, { clips: [clip] })
      const { text } = await service.get(`${album.page}?after=${after}&after=2`, HTML)
      expect(text).toContain(`/gif/${clip}`)
    },
  )
})

describe('the player of an album', () => {
  test('shows one clip after another in the order of its owner, without script', async ({ service }) => {
    const clips = [await addClip(service), await addClip(service), await addClip(service)]
    const album = await addAlbum(service, { clips, title: 'Trip' })
    const { text, headers } = await service.get(`${album.embed}?at=${clips[1]}`, HTML)
    expect(text).toContain(`<link rel="canonical" href="https://media.example/gif/${clips[1]}">`)
    expect(text).toContain('<span class="place">2 / 3</span>')
    expect(text).toContain(`rel="prev" href="${album.embed}?at=${clips[0]}" aria-label="Previous clip"`)
    expect(text).toContain(`rel="next" href="${album.embed}?at=${clips[2]}" aria-label="Next clip"`)
    expect(headers.get('content-security-policy')).not.toContain('frame-ancestors')
    for (const at of ['Unknown0', '%00']) {
      const first = await service.get(`${album.embed}?at=${at}`, HTML)
      expect(first.text).toContain('<span class="place">1 / 3</span>')
      expect(first.text).not.toContain('rel="prev"')
    }
  })

  test('keeps a sensitive clip behind a click', async ({ service }) => {
    const album = await addAlbum(service, { clips: [await addClip(service, [['nsfw', 'true']])] })
    expect((await service.get(album.embed, GERMAN)).text).toMatch(
      /<details class="gate">.*Heikel.*<video.*<\/details>/s,
    )
  })
})

describe('the feed of an album', () => {
  test('has the 50 clips that were added last, the newest first', async ({ service }) => {
    const like = await addClip(service)
    const album = await addAlbum(service, {})
    const copies = await fillAlbum(service, { id: album.id, like, count: 60 })
    await service.deps.pool.query(
      `update album_items set added_at = timestamptz '2026-01-01' + position * interval '1 day' where album_id = $1`,
      [album.id],
    )
    const { text, headers } = await service.get(`/a/${album.id}/feed.xml`)
    expect(headers.get('content-type')).toBe('application/atom+xml; charset=utf-8')
    const ids = pathsOf(text, /<id>[^<]*\/gif\/(\w+)<\/id>/g)
    expect(ids).toEqual(copies.toReversed().slice(0, 50))
    expect(text).toContain('<updated>2026-03-02T00:00:00.000Z</updated>')
    expect(text).toContain(`<link rel="self" type="application/atom+xml" href="${album.page}/feed.xml"/>`)
    expect(text).toContain(`<link rel="enclosure" type="video/mp4" href="https://files.example/f/${copies[59]}.mp4"/>`)
  })
})

describe('the oEmbed of an album', () => {
  test('is rich, no larger than asked for, and found by page and player', async ({ service }) => {
    const clip = await addClip(service)
    const album = await addAlbum(service, { clips: [clip] })
    const whole = (await service.get(album.oembed)).body
    expect(whole).toEqual({
      ...{ version: '1.0', type: 'rich', title: 'Trip', cache_age: 3600, width: 960, height: 640 },
      ...{ provider_name: expect.any(String), provider_url: 'https://media.example/' },
      html: expect.stringContaining(`<iframe src="${album.embed}" width="960" height="640"`),
      thumbnail_url: `https://files.example/f/${clip}.jpg`,
      ...{ thumbnail_width: 20, thumbnail_height: 12 },
    })
    const small = await service.get(`/oembed?url=${encodeURIComponent(album.embed)}&maxwidth=480&maxheight=9`)
    expect(small.body).toMatchObject({ width: 13, height: 9 })
    expect(small.body).not.toHaveProperty('thumbnail_url')
    expect((await service.get(`${album.oembed}&format=xml`)).text).toContain('<type>rich</type>')
  })

  test('of a private album may be kept no longer than its link', async ({ service }) => {
    const { id } = await addAlbum(service, { visibility: 'private' })
    const { page } = await linkTo(service, id, { expires_in: '10m' })
    const { body, headers } = await service.get(`/oembed?url=${encodeURIComponent(page)}`)
    expect(body.cache_age).toBeLessThanOrEqual(600)
    expect(headers.get('cache-control')).toBe('private, no-cache')
  })
})

describe('links of an album', () => {
  const post = (path: string, token: string, body: object = {}) => ({
    path,
    init: { headers: { token, 'content-type': 'application/json' }, body: JSON.stringify(body) },
  })

  test('are made and ended by the owner alone', async ({ service }) => {
    const { id } = await addAlbum(service, { visibility: 'private' })
    const { page, embed } = await linkTo(service, id)
    expect(page).toMatch(new RegExp(`^https://media.example/a/${id}\\?e=\\d+&s=[\\w-]{22}$`))
    expect(embed).toMatch(new RegExp(`^https://media.example/a/${id}/embed\\?e=\\d+&s=[\\w-]{22}$`))
    const stranger = (await service.newToken()).token
    const reader = (await service.newToken({ scopes: ['read'] })).token
    for (const [token, status] of [
      [stranger, 404],
      [reader, 403],
      ['mh_none', 401],
    ] as const) {
      for (const method of ['POST', 'DELETE']) {
        const { path, init } = post(`/albums/${id}/links`, token)
        expect([
          method,
          (await service.call(method, path, method === 'POST' ? init : { headers: { token } })).status,
        ]).toEqual([method, status])
      }
    }
    expect((await service.get(page, HTML)).status).toBe(200)
  })

  test.for(['59', '31d', 'never', 'soon'])('for %s are refused', async (span, { service }) => {
    const { id } = await addAlbum(service, { visibility: 'private' })
    const { path, init } = post(`/albums/${id}/links`, service.token, { expires_in: span })
    const { status, body } = await service.call('POST', path, init)
    expect([status, body.error.param]).toEqual([422, 'expires_in'])
  })

  test('two at once are good, both', async ({ service }) => {
    const { id } = await addAlbum(service, { visibility: 'private' })
    const made = await Promise.all([linkTo(service, id), linkTo(service, id)])
    for (const { page } of made) expect((await service.get(page, HTML)).status).toBe(200)
  })
})
