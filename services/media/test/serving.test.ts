import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect } from 'vitest'
import { errorCatalogue } from '../src/errors.ts'
import { clip, clipOf } from './clips.ts'
import { test as base, idIn } from './service.ts'

/** One clip for all tests of this file. */
const test = base.extend<object & { id: string; mp4: Buffer }>({
  id: [
    async ({ service }, use) => {
      const fields: [string, string][] = [
        ['title', '<Hello> & "you"'],
        ['tags', 'one,two'],
        ['attribution_site', 'twitter'],
        ['attribution_user', '@ada'],
      ]
      await use(idIn(await service.ready(await clip('sound.mp4'), fields)))
    },
    { scope: 'file' },
  ],
  mp4: [async ({ service, id }, use) => use((await service.get(`/f/${id}.mp4`)).bytes), { scope: 'file' }],
})

describe('files', () => {
  test('are cached forever, public, and nothing a browser would run', async ({ service, id, mp4 }) => {
    const { headers, status } = await service.get(`/f/${id}.mp4`)
    expect(status).toBe(200)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': String(mp4.length),
      'cache-control': 'public, max-age=31536000, immutable',
      etag: `"${createHash('sha256').update(mp4).digest('hex')}"`,
      'accept-ranges': 'bytes',
      'content-disposition': `inline; filename="${id}.mp4"`,
      'content-security-policy':
        "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox allow-scripts",
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
    })
    const types = { gif: 'image/gif', jpg: 'image/jpeg', webm: 'video/webm' }
    for (const [kind, type] of Object.entries(types)) {
      expect((await service.get(`/f/${id}.${kind}`)).headers.get('content-type')).toBe(type)
    }
  })

  test('are saved under the title of the clip, which caches ask for each time', async ({ service, id }) => {
    const saved = async () => (await service.get(`/f/${id}.gif?download=1`)).headers
    expect((await saved()).get('content-disposition')).toBe('attachment; filename="Hello & you.gif"')
    expect((await saved()).get('cache-control')).toBe('public, no-cache')
    const other = idIn(await service.ready(await clip('plain.gif'), [['title', 'Grüße']]))
    const { headers } = await service.get(`/f/${other}.jpg?download=1`)
    expect(headers.get('content-disposition')).toBe(
      `attachment; filename="Grue.jpg"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.jpg`,
    )
  })

  test('HEAD has the same headers without the bytes', async ({ service, id, mp4 }) => {
    const { headers, bytes, status } = await service.call('HEAD', `/f/${id}.mp4`)
    expect([status, bytes.length, headers.get('content-length')]).toEqual([200, 0, String(mp4.length)])
  })

  test.for<[string, number, number]>([
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=100-', 100, Number.POSITIVE_INFINITY],
    ['bytes=-5', -5, Number.POSITIVE_INFINITY],
    ['bytes=5-99999999', 5, Number.POSITIVE_INFINITY],
    ['bytes=-99999999', 0, Number.POSITIVE_INFINITY],
  ])('Range: %s', async ([range, from, to], { service, id, mp4 }) => {
    const { status, bytes, headers } = await service.get(`/f/${id}.mp4`, { range })
    const part = mp4.subarray(from, to === Number.POSITIVE_INFINITY ? undefined : to)
    const start = from < 0 ? mp4.length + from : from
    expect(status).toBe(206)
    expect(headers.get('content-range')).toBe(`bytes ${start}-${start + part.length - 1}/${mp4.length}`)
    expect(bytes.equals(part)).toBe(true)
  })

  test.for<[string, [number, number][]]>([
    [
      'bytes=0-1,500-503',
      [
        [0, 2],
        [500, 504],
      ],
    ],
    [
      'bytes=500-503 , 0-1,, -3',
      [
        [0, 2],
        [500, 504],
        [-3, 0],
      ],
    ],
    [
      'bytes=0-1,500-503,99999999-',
      [
        [0, 2],
        [500, 504],
      ],
    ],
  ])('Range: %s is sent in parts, in the order of the file', async ([range, parts], { service, id, mp4 }) => {
    const { status, bytes, headers } = await service.get(`/f/${id}.mp4`, { range })
    const [, boundary] = /^multipart\/byteranges; boundary=([\w-]+)$/.exec(headers.get('content-type') ?? '') ?? []
    const expected = parts.map(([from, to]) => {
      const [start, end] = [from < 0 ? mp4.length + from : from, to || mp4.length]
      const head = `content-type: video/mp4\r\ncontent-range: bytes ${start}-${end - 1}/${mp4.length}`
      return `\r\n--${boundary}\r\n${head}\r\n\r\n${mp4.toString('latin1', start, end)}`
    })
    expect([status, headers.get('content-range')]).toEqual([206, null])
    expect(Number(headers.get('content-length'))).toBe(bytes.length)
    expect(bytes.toString('latin1')).toBe(`${expected.join('')}\r\n--${boundary}--\r\n`)
  })

  test.for<[string, number, number]>([
    ['bytes=0-9,5-14', 0, 15],
    ['bytes=20-29,0-9', 0, 30],
    ['bytes=0-0,0-0,0-0,0-0,0-0,0-0', 0, 1],
    ['bytes=99999999-,3-4', 3, 5],
  ])('Range: %s is one part: what overlaps is never sent twice', async ([range, start, end], { service, id, mp4 }) => {
    const { status, bytes, headers } = await service.get(`/f/${id}.mp4`, { range })
    expect([status, headers.get('content-range')]).toEqual([206, `bytes ${start}-${end - 1}/${mp4.length}`])
    expect(bytes.equals(mp4.subarray(start, end))).toBe(true)
  })

  const SEVENTEEN = Array.from({ length: 17 }, (_, index) => `${index * 200}-${index * 200}`).join()
  test.for(['bytes=9-3', 'bytes=0-1,9-3', 'bytes=0-1,x', `bytes=${SEVENTEEN}`, 'lines=1-2', 'bytes=a-b', 'bytes=-'])(
    'Range: %s is ignored',
    async (range, { service, id, mp4 }) => {
      const { status, bytes } = await service.get(`/f/${id}.mp4`, { range })
      expect([status, bytes.length]).toEqual([200, mp4.length])
    },
  )

  test.for(['bytes=99999999-', 'bytes=-0', 'bytes=-0,99999999-'])(
    'Range: %s cannot be',
    async (range, { service, id, mp4 }) => {
      const { status, headers, body } = await service.get(`/f/${id}.mp4`, { range })
      expect([status, headers.get('content-range')]).toEqual([416, `bytes */${mp4.length}`])
      expect(body.error).toMatchObject({ code: 'range_not_satisfiable', details: { bytes: mp4.length } })
    },
  )

  test('a cached file is not sent again, and a part of another file is not continued', async ({ service, id, mp4 }) => {
    const { headers } = await service.call('HEAD', `/f/${id}.mp4`)
    const etag = headers.get('etag') as string
    const modified = headers.get('last-modified') as string
    const statusWith = async (conditions: Record<string, string>) =>
      (await service.get(`/f/${id}.mp4`, conditions)).status
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*'])
      expect(await statusWith({ 'if-none-match': known })).toBe(304)
    expect(await statusWith({ 'if-none-match': '"x"' })).toBe(200)
    expect(await statusWith({ 'if-modified-since': modified })).toBe(304)
    expect(await statusWith({ 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' })).toBe(200)
    expect(await statusWith({ 'if-none-match': '"x"', 'if-modified-since': modified })).toBe(200)
    for (const met of [etag, `"x", ${etag}`, '*']) expect(await statusWith({ 'if-match': met })).toBe(200)
    // Strong comparison (RFC 9110 13.1.1), evaluated before If-None-Match.
    for (const other of ['"x"', `W/${etag}`]) {
      expect(await statusWith({ 'if-match': other, 'if-none-match': etag, range: 'bytes=0-0' })).toBe(412)
    }
    const old = 'Thu, 01 Jan 1970 00:00:00 GMT'
    expect(await statusWith({ 'if-unmodified-since': old })).toBe(412)
    expect(await statusWith({ 'if-unmodified-since': modified })).toBe(200)
    expect(await statusWith({ 'if-unmodified-since': 'no date' })).toBe(200)
    expect(await statusWith({ 'if-match': etag, 'if-unmodified-since': old })).toBe(200)
    for (const [condition, status] of [
      [etag, 206],
      [modified, 206],
      ['"x"', 200],
      [`W/${etag}`, 200],
    ] as const) {
      expect(await statusWith({ range: 'bytes=0-0', 'if-range': condition })).toBe(status)
    }
    const refused = await service.get(`/f/${id}.mp4`, { 'if-match': '"x"' })
    expect([refused.body.error.code, refused.headers.get('etag')]).toEqual(['precondition_failed', null])
    const head = await service.call('HEAD', `/f/${id}.mp4`, { headers: { 'if-match': '"x"' } })
    expect([head.status, head.bytes.length]).toEqual([412, 0])
    expect(mp4.length).toBeGreaterThan(0)
  })

  test('no cache stores a failure under the address of a file', async ({ service }) => {
    const id = idIn(await service.ready(await clip('plain.gif')))
    const { rows } = await service.deps.pool.query(
      `select encode(r.sha256, 'hex') as sha256 from renditions r
       join clips c using (source_id) where c.id = $1 and r.kind = 'mp4'`,
      [id],
    )
    const { sha256 } = rows[0]
    const path = join(service.blobsDir, sha256.slice(0, 2), sha256.slice(2, 4), `${sha256}.mp4`)
    const failures = [await service.get(`/f/${id}.mp4`, { range: 'bytes=99999999-' })]
    await rm(path)
    failures.push(await service.get(`/f/${id}.mp4`), await service.call('HEAD', `/f/${id}.mp4`))
    failures.push(await service.get(`/f/${id}.mp4`, { range: 'bytes=0-1,500-501' }))
    // A directory can be opened and then not be read, like a volume that fails in between.
    await mkdir(path)
    failures.push(await service.get(`/f/${id}.mp4`), await service.get(`/f/${id}.mp4`, { range: 'bytes=0-1' }))
    expect(failures.map(({ status }) => status)).toEqual([416, 500, 500, 500, 500, 500])
    for (const { headers, body } of failures) {
      expect(headers.get('cache-control')).toBe('no-store')
      for (const name of ['etag', 'last-modified', 'content-disposition']) expect(headers.get(name)).toBeNull()
      if (body) expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    }
    expect((await service.call('HEAD', `/f/${id}.gif`)).headers.get('cache-control')).toContain('immutable')
  })

  test.for([
    '/f/00000000.mp4',
    '/f/short.mp4',
    '/f/00000000.exe',
    '/f/00000000.source',
    '/f/..%2f..%2fetc.mp4',
    '/f/%00.gif',
  ])('%s is 404', async (path, { service }) => {
    expect(await service.get(path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  })
})

describe('failures', () => {
  test('are problems of RFC 9457 for callers who name that form, with the members of our own', async ({ service }) => {
    const asking = { accept: 'application/json, application/problem+json;q=0.9' }
    const failures = [
      [await service.get('/f/00000000.mp4', asking), 404, 'not_found'],
      [await service.get('/nowhere', asking), 404, 'not_found'],
      [await service.call('POST', '/media/import', { headers: asking }), 401, 'token_missing_or_invalid'],
      [await service.importFrom({}, asking), 400, 'missing_source'],
    ] as const
    for (const [{ status, headers, text }, expected, code] of failures) {
      expect([status, headers.get('content-type'), headers.get('vary')]).toEqual([
        expected,
        'application/problem+json',
        'Accept',
      ])
      const requestId = headers.get('x-request-id')
      const { error, ...problem } = JSON.parse(text)
      expect(error).toMatchObject({ code, request_id: requestId })
      expect(problem).toEqual({
        type: `https://media.example/docs/errors#${code}`,
        title: errorCatalogue[code].message,
        status,
        detail: error.message,
        instance: `urn:request:${requestId}`,
        message: error.message,
        reference: `https://media.example/docs/errors#${code}`,
      })
    }
    for (const accept of ['*/*', 'application/json', 'application/problem+json;q=0', 'text/html']) {
      const { headers } = await service.get('/f/00000000.mp4', { accept })
      expect([headers.get('content-type'), headers.get('vary')]).toEqual(['application/json; charset=utf-8', 'Accept'])
    }
  })
})

describe('pages', () => {
  test('poster and videos are announced in their own size, even if the clip is larger', async ({ service }) => {
    const largeLow = ['-f', 'lavfi', '-i', 'color=s=2560x144:r=10:d=0.2', '-pix_fmt', 'yuv420p']
    const answer = await service.upload(await clipOf('2560x144.mp4', largeLow))
    expect(answer.body.success.meta).toMatchObject({ width: '2560', height: '144' })
    const id = idIn(answer)
    const { width, height } = await sharp((await service.get(`/f/${id}.jpg`)).bytes).metadata()
    expect([width, height]).toEqual([1920, 108])
    const { text } = await service.get(`/gif/${id}`)
    for (const root of ['og:image', 'og:video']) {
      expect(text).toContain(`<meta property="${root}:width" content="1920">`)
      expect(text).not.toContain(`<meta property="${root}:width" content="2560">`)
    }
    const sized = { thumbnail_width: 1920, thumbnail_height: 108 }
    expect((await service.get(`/oembed/${id}`)).body).toMatchObject(sized)
    expect((await service.get(`/oembed/${id}?maxwidth=1920`)).body).toMatchObject({ width: 960, height: 54, ...sized })
    expect(text).toContain('<meta name="twitter:player:width" content="960">')
    expect(answer.body.success.embed).toContain('width="960" height="54"')
    expect((await service.get(`/oembed/${id}?maxwidth=1919`)).body).not.toHaveProperty('thumbnail_url')
  })

  test('the page shows the clip, and its policy permits nothing from elsewhere', async ({ service, id }) => {
    const { status, text, headers } = await service.get(`/gif/${id}`)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain(`https://files.example/f/${id}.mp4`)
    expect(text).toContain('&lt;Hello&gt; &amp; &quot;you&quot;')
    expect(text).not.toContain('<Hello>')
    expect(headers.get('content-security-policy')).toMatch(/default-src 'none'; .*frame-ancestors 'none'/)
    expect(headers.get('cache-control')).toBe('public, no-cache')
  })

  test('a clip that is not safe for work has no picture and no video in any preview', async ({ service }) => {
    const id = idIn(await service.ready(await clip('plain.gif'), [['nsfw', 'true']]))
    const { text } = await service.get(`/gif/${id}`)
    const [, head = ''] = /<head>(.*)<\/head>/s.exec(text) ?? []
    expect(head).not.toMatch(/files\.example|og:(image|video):|application\/ld\+json|twitter:(image|player)/)
    expect(head).toContain('<meta name="rating" content="adult">')
    expect(text).not.toContain('<img')
    for (const path of [`/oembed/${id}`, `/oembed/${id}?format=xml`]) {
      expect((await service.get(path)).text).not.toMatch(/thumbnail|files\.example/)
    }
  })

  test('any site and application may frame the player, and its script is served', async ({ service, id }) => {
    const { status, text, headers } = await service.get(`/embed/${id}`)
    expect(status).toBe(200)
    expect(headers.get('content-security-policy')).not.toContain('frame-ancestors')
    expect(headers.get('content-security-policy')).toContain('script-src https://media.example/embed.js')
    expect(text).toContain('<script src="https://media.example/embed.js" defer>')
    const script = await service.get('/embed.js')
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  })

  test('the element learns from us what it shows, anew as soon as it changes, and that a clip is gone', async ({
    service,
  }) => {
    const id = idIn(await service.ready(await clip('plain.gif')))
    const address = `/embed/${id}/data`
    const { body, headers } = await service.get(address)
    expect(body).toMatchObject({ state: 'ready', width: 160, poster: `https://files.example/f/${id}.jpg` })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('cache-control')).toBe('public, no-cache')
    const known = { 'if-none-match': String(headers.get('etag')) }
    expect((await service.get(address, known)).status).toBe(304)

    const change = { method: 'PATCH', headers: { token: service.token, 'content-type': 'application/json' } }
    await service.call('PATCH', `/media/${id}`, { ...change, body: JSON.stringify({ nsfw: true }) })
    expect((await service.get(address, known)).body).toMatchObject({ nsfw: true })
    await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
    expect((await service.get(address)).body.error.code).toBe('gone')
    expect((await service.get('/embed/none1234/data')).body.error.code).toBe('not_found')
  })

  test.for(['/favicon.svg', '/favicon.ico'])('%s is the icon that pages name', async (path, { service, id }) => {
    const { status, headers, text } = await service.get(path)
    expect([status, headers.get('content-type')]).toEqual([200, 'image/svg+xml'])
    expect(text).toMatch(/^<svg /)
    for (const page of ['/', `/gif/${id}`, `/embed/${id}`, '/docs/errors']) {
      const { text, headers } = await service.get(page)
      expect(text).toContain('<link rel="icon" href="https://media.example/favicon.svg" type="image/svg+xml">')
      expect(headers.get('content-security-policy')).toContain('img-src https://media.example/favicon.svg')
    }
  })

  test.for(['/', '/gif/ID', '/gif/ID/delete'])(
    'the scripts of %s and their imports are allowed by its policy, and kept for ever',
    async (path, { service, id }) => {
      const { text, headers } = await service.get(path.replace('ID', id))
      const [, allowed = ''] = /script-src ([^;]+)/.exec(headers.get('content-security-policy') ?? '') ?? []
      const left = [...text.matchAll(/<script type="module" src="([^"]+)"/g)].map(([, src = '']) => src)
      expect(left).not.toEqual([])
      for (const address of left) {
        expect(allowed.split(' ').some((source) => address.startsWith(source))).toBe(true)
        const script = await service.get(address.replace('https://media.example', ''))
        expect(script.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
        left.push(...[...script.text.matchAll(/ from '([^']+)'/g)].map(([, to = '']) => new URL(to, address).href))
      }
    },
  )

  test('crawlers may read pages and files, and are kept from the API', async ({ service }) => {
    const { status, headers, text } = await service.get('/robots.txt')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(text.split('\n')).toEqual(
      expect.arrayContaining([
        'User-agent: *',
        'Allow: /$',
        'Allow: /gif/',
        'Allow: /f/',
        'Allow: /oembed',
        'Disallow: /',
      ]),
    )
    expect(text).not.toMatch(/Allow: \/(media|tus|tokens|webhooks|health)/)
  })

  test('the page at / names the documentation and the source of tokens', async ({ service }) => {
    const { status, text } = await service.get('/')
    expect([status, text]).toEqual([200, expect.stringContaining('href="https://media.example/docs"')])
    expect(text).toContain('<code>tokens create</code>')
    expect((await service.get('/docs')).status).toBe(200)
    const { body } = await service.get('/nothing')
    const { pathname, hash } = new URL(body.reference)
    expect((await service.get(pathname)).text).toContain(`id="${hash.slice(1)}"`)
  })

  test.for(['/gif/00000000', '/embed/00000000', '/oembed/00000000', '/gif/a%27b'])(
    '%s is 404',
    async (path, { service }) => {
      expect((await service.get(path)).status).toBe(404)
    },
  )
})

describe('oEmbed', () => {
  test('by id, in JSON and XML', async ({ service, id }) => {
    const { status, body, headers } = await service.get(`/oembed/${id}?maxwidth=80`)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(body).toMatchObject({ version: '1.0', type: 'video', width: 80, height: 60, title: '<Hello> & "you"' })
    const xml = await service.get(`/oembed/${id}?format=xml`)
    expect(xml.headers.get('content-type')).toBe('text/xml; charset=utf-8')
    expect(xml.text).toContain('<title>&lt;Hello&gt; &amp; &quot;you&quot;</title>')
  })

  test('by any address of the clip', async ({ service, id }) => {
    const addresses = [
      `https://media.example/gif/${id}`,
      `https://media.example/embed/${id}?x=1`,
      `https://files.example/f/${id}.webm`,
      // People type addresses, and old pages have them without the s.
      `http://media.example/gif/${id}`,
      `http://files.example/f/${id}.av1.mp4`,
    ]
    for (const url of addresses) {
      expect((await service.get(`/oembed?url=${encodeURIComponent(url)}`)).body).toMatchObject({ type: 'video' })
    }
  })

  test.for<[string, number]>([
    ['/oembed', 400],
    ['/oembed?url=', 400],
    ['/oembed?url=nonsense', 404],
    ['/oembed?url=https%3A%2F%2Felsewhere.example%2Fgif%2FID', 404],
    ['/oembed?url=https%3A%2F%2Fmedia.example:444%2Fgif%2FID', 404],
    ['/oembed?url=ftp%3A%2F%2Fmedia.example%2Fgif%2FID', 404],
    ['/oembed?url=https%3A%2F%2Fmedia.example%2Fgif%2F00000000', 404],
    ['/oembed/ID?format=yaml', 501],
  ])('%s is %i', async ([path, status], { service, id }) => {
    expect((await service.get(path.replace('ID', id))).status).toBe(status)
  })
})

describe('details and deletion', () => {
  test('are for the owner and for admins; to others the clip does not exist', async ({ service, id }) => {
    const details = await service.get(`/media/${id}`, { token: service.token })
    expect(details.body.success).toMatchObject({
      id,
      state: 'ready',
      progress: 1,
      title: '<Hello> & "you"',
      tags: ['one', 'two'],
      nsfw: false,
      attribution: { site: 'twitter', user: 'ada' },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      source: { kind: 'upload', type: 'mp4' },
      sizes: { gif: { width: 80, height: 60 }, jpg: {}, mp4: {}, webm: {} },
      page: `https://media.example/gif/${id}`,
    })
    const stranger = await service.newToken()
    const admin = await service.newToken({ scopes: ['admin'] })
    const as = async (method: string, token: string) =>
      (await service.call(method, `/media/${id}`, { headers: { token } })).status
    expect(await as('GET', stranger.token)).toBe(404)
    expect(await as('DELETE', stranger.token)).toBe(404)
    expect(await as('GET', admin.token)).toBe(200)
  })

  test('an unknown address has a page with a link onwards', async ({ service }) => {
    for (const path of ['/gif/unknownunknown', '/embed/unknownunknown']) {
      const { status, text } = await service.get(path, { accept: 'text/html,*/*;q=0.8' })
      expect([path, status]).toEqual([path, 404])
      expect(text).toContain('href="https://media.example/"')
    }
  })

  test('a deleted clip is gone everywhere, with all text of its owner', async ({ service }) => {
    const id = idIn(await service.ready(await clip('plain.gif'), [['title', 'secret']]))
    // Files that were asked for a moment ago are remembered: not beyond the deletion.
    expect((await service.get(`/f/${id}.gif`)).status).toBe(200)
    const remove = () => service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
    expect(await remove()).toMatchObject({ status: 204, text: '' })
    expect((await remove()).status).toBe(410)
    for (const path of [`/f/${id}.gif`, `/gif/${id}`, `/embed/${id}`, `/oembed/${id}`]) {
      expect(await service.get(path)).toMatchObject({ status: 410, body: { error: { code: 'gone' } } })
    }
    // Browsers get a page in words, in a frame too.
    for (const [path, frames] of [
      [`/gif/${id}`, /frame-ancestors 'none'$/],
      [`/embed/${id}`, /form-action 'none'$/],
    ] as const) {
      const { status, text, headers } = await service.get(path, { accept: 'text/html,*/*;q=0.8' })
      expect([status, headers.get('content-type')]).toEqual([410, 'text/html; charset=utf-8'])
      expect(text).toContain('This media item was removed.')
      expect(text).toContain('href="https://media.example/"')
      expect(headers.get('content-security-policy')).toMatch(frames)
      expect([headers.get('cache-control'), headers.get('vary')]).toEqual(['no-store', 'Accept'])
    }
    expect((await service.get(`/media/${id}`, { token: service.token })).status).toBe(410)
    const { rows } = await service.deps.pool.query('select * from clips where id = $1', [id])
    expect(JSON.stringify(rows)).not.toContain('secret')
  })
})

describe('every address', () => {
  test.for<[string, string, number, string]>([
    ['GET', '/nothing/here', 404, 'not_found'],
    ['PUT', '/media/upload', 405, 'method_not_allowed'],
    ['PUT', '/media/import', 405, 'method_not_allowed'],
    ['POST', '/gif/00000000', 405, 'method_not_allowed'],
    ['GET', '/media/import?source=https://example.com/a.mp4', 401, 'token_missing_or_invalid'],
    ['GET', '/media/upload', 405, 'method_not_allowed'],
    ['GET', '/%E0%A4%A', 400, 'invalid_request'],
    ['GET', `/gif/${'x'.repeat(300)}`, 404, 'not_found'],
  ])('%s %s is %i in the one form of errors', async ([method, path, status, code], { service }) => {
    const response = await fetch(service.url + path, { method })
    const body = (await response.json()) as { message: string }
    expect(response.status).toBe(status)
    expect(body).toEqual({
      error: { code, message: body.message, request_id: response.headers.get('x-request-id') },
      message: expect.stringMatching(/.+/),
      reference: `https://media.example/docs/errors#${code}`,
    })
    expect(status === 405 ? response.headers.get('allow') : 'x').toBeTruthy()
  })

  test('refuses each method that it does not document, and names those it has', async ({ service }) => {
    const { body } = await service.get('/openapi.json')
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
    for (const [path, operations] of Object.entries<object>(body.paths)) {
      for (const method of methods.filter((method) => !(method.toLowerCase() in operations))) {
        // There it carries the other methods of tus, by `X-HTTP-Method-Override`.
        if (path === '/tus/{id}' && method === 'POST') continue
        const answer = await service.call(method, path.replaceAll(/\{\w+\}/g, '00000000'))
        expect([method, path, answer.status]).toEqual([method, path, 405])
        const allowed = answer.headers.get('allow')?.split(', ') ?? []
        expect(allowed).toEqual(expect.arrayContaining(Object.keys(operations).map((name) => name.toUpperCase())))
      }
    }
  })

  test('is in the OpenAPI document', async ({ service }) => {
    const { body } = await service.get('/openapi.json')
    expect(Object.keys(body.paths).toSorted()).toEqual([
      '/a/{id}',
      '/a/{id}/embed',
      '/a/{id}/feed.xml',
      ...['/albums', '/albums/{id}', '/albums/{id}/items', '/albums/{id}/items/{clip}', '/albums/{id}/links'],
      '/audit',
      '/embed/{id}',
      '/embed/{id}/data',
      '/f/{id}.{kind}',
      '/f/{id}/{variant}',
      '/gif/{id}',
      '/gif/{id}/report',
      '/health',
      '/health/live',
      '/health/ready',
      '/media',
      '/media/archive',
      '/media/bulk',
      '/media/events',
      '/media/import',
      '/media/tags',
      '/media/upload',
      '/media/{id}',
      '/media/{id}/copies',
      '/media/{id}/deliveries',
      '/media/{id}/events',
      '/media/{id}/links',
      '/media/{id}/moderation',
      '/media/{id}/moderation/{kind}',
      '/media/{id}/views',
      '/oembed',
      '/oembed/{id}',
      '/queue',
      '/queue/dead',
      '/queue/dead/{id}',
      '/queue/dead/{id}/retry',
      '/reports',
      '/reports/{id}',
      '/session',
      '/settings',
      '/sharex.sxcu',
      '/storage',
      '/storage/check',
      '/tokens',
      '/tokens/{id}',
      '/tokens/{id}/sessions',
      '/tokens/{id}/usage',
      '/tus',
      '/tus/{id}',
      '/usage',
      '/v/{signature}/{options}/{file}',
      '/views',
      '/webhooks',
      '/webhooks/{id}',
      '/webhooks/{id}/deliveries',
      '/webhooks/{id}/deliveries/{delivery}/replay',
    ])
    expect(body.paths['/media/upload'].post.requestBody.content['multipart/form-data'].schema.required).toEqual([
      'file',
    ])
  })

  test('documents 408 and 504 where a body or a clip can time out', async ({ service }) => {
    const { body } = await service.get('/openapi.json')
    const operations = Object.entries<Record<string, { responses: object }>>(body.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => ({ name: `${method} ${path}`, responses })),
    )
    const telling = (status: number) =>
      operations.filter(({ responses }) => status in responses).map(({ name }) => name)
    expect(telling(408)).toEqual(telling(413))
    expect(telling(504)).toEqual([
      'post /media/upload',
      'post /tus',
      'patch /tus/{id}',
      'post /media/import',
      'get /media/import',
      'post /media/{id}/copies',
    ])
  })

  test('lets browsers of any site in, with a token or without', async ({ service }) => {
    const preflight = await service.call('OPTIONS', '/media/import', {
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'token',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toMatch(/\bToken\b/)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
  })

  test('every answer keeps browsers on TLS if the service is reached by it', async ({ service, id }) => {
    for (const path of ['/health', `/f/${id}.mp4`, `/gif/${id}`, '/media/nothing', '/nothing', '/%E0%A4%A']) {
      const { headers } = await service.get(path)
      expect([path, headers.get('strict-transport-security')]).toEqual([path, 'max-age=31536000'])
    }
  })

  test('health answers without a token', async ({ service }) => {
    for (const path of ['/health', '/health/live', '/health/ready']) expect((await service.get(path)).status).toBe(200)
  })
})

test('addresses that consist of dots are answered as fast as any other', async ({ service }) => {
  // Read again for each dot, all of them would take minutes.
  for (let request = 0; request < 400; request++) {
    expect((await service.call('POST', `/f/${'.'.repeat(15_900)}/`)).status).toBe(404)
  }
})
