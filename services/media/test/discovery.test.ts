import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { apiError } from '../src/errors.ts'
import { clip, lyingClip } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'
import { bytes, html, json, moved, type Replies, type Reply, startFarSide, status } from './upstreams/far-side.ts'

const HOSTS = ['site.example', 'cdn.example', 'streamable.com', 'ajax.streamable.com', 'cdn.streamable.com']
const far = await startFarSide([...HOSTS, 'short.example', 'www.reddit.com', 'www.instagram.com'])
const settings = { ...far.settings, MEDIA_WORKERS_ENABLED: 'false', MEDIA_QUEUE_LIMIT: '10000' }
const content = { mp4: await readFile(await clip('plain.mp4')), gif: await readFile(await clip('plain.gif')) }
const mp4 = bytes(content.mp4)
const gif = bytes(content.gif)
const PAGE = 'https://site.example/watch/1'

/** Calls handed on to yt-dlp or the manifest reader. */
const handed: unknown[] = []
let service: TestService
let helped: TestService
beforeAll(async () => {
  const sha256 = createHash('sha256').update(content.mp4).digest('hex')
  ;[service, helped] = await Promise.all([
    startTestService(settings),
    startTestService(settings, {
      assembleManifest: async (source, { path, maxBytes, hosts }) => {
        handed.push({ ...source, maxBytes, hosts })
        await writeFile(path, content.mp4, { flag: 'wx' })
        return { file: { bytes: content.mp4.length, sha256, contentType: undefined } }
      },
      extractPage: async (url) => {
        handed.push(url)
        return { sources: [{ kind: 'file', url: 'https://cdn.example/a.mp4' }], title: 'Extracted' }
      },
    }),
  ])
})
beforeEach(() => {
  handed.length = 0
})
afterAll(async () => {
  far.close()
  await Promise.all([service.close(), helped.close()])
})

async function imported(source: string, by = service) {
  const answer = await by.importFrom({ source }, { prefer: 'respond-async' })
  if (answer.status !== 201) return { status: answer.status, ...answer.body.error }
  const {
    title,
    attribution,
    nsfw,
    source: kept,
  } = (await by.get(`/media/${idIn(answer)}`, { token: by.token })).body.success
  return { title, attribution, nsfw, type: kept.type }
}

const head = (...tags: string[]) => `<!doctype html><html><head>${tags.join('')}</head><body><p>Hello</p></body></html>`
const meta = (name: string, content: string) => `<meta property="${name}" content="${content}">`
const ld = (data: unknown) => `<script type="application/ld+json">${JSON.stringify(data)}</script>`

/** The page, and the addresses that are asked for after it; the last one is the clip, and whatever is not it is 404. */
test.for<[string, string, string[]]>([
  ['og:video', head(meta('og:video', 'https://cdn.example/a.mp4')), ['https://cdn.example/a.mp4']],
  [
    'the secure spelling of an og:video',
    head(meta('og:video', 'http://cdn.example/a.mp4'), meta('og:video:secure_url', 'https://cdn.example/b.mp4')),
    ['https://cdn.example/b.mp4'],
  ],
  [
    'the stream of the player, where og:video is a page',
    head(
      meta('og:video', 'https://site.example/player/1'),
      meta('og:video:type', 'text/html'),
      meta('twitter:player:stream', '/stream/1'),
      meta('twitter:player:stream:content_type', 'video/mp4; codecs="avc1"'),
    ),
    ['https://site.example/stream/1'],
  ],
  [
    'the mp4 of an og:video in several types',
    head(
      ...[meta('og:video:url', 'https://cdn.example/a.webm'), meta('og:video:type', 'video/webm')],
      ...[meta('og:video:url', 'https://cdn.example/a'), meta('og:video:type', 'video/mp4')],
      ...[meta('og:video:url', 'https://cdn.example/a.swf'), meta('og:video:type', 'application/x-shockwave-flash')],
    ),
    ['https://cdn.example/a'],
  ],
  [
    'the larger of two',
    head(
      ...[meta('og:video', '/360.mp4'), meta('og:video:height', '360')],
      ...[meta('og:video', '/720.mp4'), meta('og:video:height', '720')],
    ),
    ['https://site.example/720.mp4'],
  ],
  [
    'the one on the same site',
    head(meta('og:video', 'https://cdn.example/a.mp4'), meta('og:video', '/b.mp4')),
    ['https://site.example/b.mp4'],
  ],
  [
    'the next one, where one is not there or is something else',
    head(meta('og:video', '/missing.mp4'), meta('og:video', '/picture.mp4'), meta('og:video', '/c.mp4')),
    ['https://site.example/missing.mp4', 'https://site.example/picture.mp4', 'https://site.example/c.mp4'],
  ],
  [
    'JSON-LD in a list',
    head(ld([{ '@type': 'WebPage' }, { '@type': 'VideoObject', contentUrl: '/a.mp4' }])),
    ['https://site.example/a.mp4'],
  ],
  [
    'JSON-LD in a graph, of several types, among broken scripts',
    head(
      '<script type="application/ld+json">{"@type":</script>',
      ld({ '@graph': [{ '@type': 'Article', video: { '@type': ['Thing', 'VideoObject'], contentUrl: '/a.mp4' } }] }),
    ),
    ['https://site.example/a.mp4'],
  ],
  ['<video src>', '<body><video src="a.mp4" controls></video>', ['https://site.example/watch/a.mp4']],
  [
    'the <source> that is an mp4, and no source of a picture',
    '<picture><source src="x.mp4"></picture><video><source src="a.webm" type="video/webm"><source src="a" type="video/mp4"></video>',
    ['https://site.example/watch/a'],
  ],
  [
    'an address without a type or an ending',
    '<video src="/clip?id=1&amp;q=2"></video>',
    ['https://site.example/clip?id=1&q=2'],
  ],
  [
    'what the head says before what the body shows',
    `${head(ld({ '@type': 'VideoObject', contentUrl: '/said.webm' }))}<video height="1080" src="/banner.mp4"></video>`,
    ['https://site.example/said.webm'],
  ],
  ['an alternate of the page', head('<link rel="alternate" type="video/mp4" href="/a">'), ['https://site.example/a']],
  ['a gif as the picture of the page', head(meta('og:image', '/a.gif')), ['https://site.example/a.gif']],
  [
    'relative to the base',
    head('<base href="https://cdn.example/x/">', meta('og:video', '../a.mp4')),
    ['https://cdn.example/a.mp4'],
  ],
  [
    'what oEmbed shows',
    head('<link rel="alternate" type="application/json+oembed" href="/oembed?url=1">'),
    ['https://site.example/oembed?url=1', 'https://cdn.example/o.mp4'],
  ],
  [
    'the player of a site that we know',
    head(meta('og:video', 'https://streamable.com/e/abc123'), meta('og:video:type', 'text/html')),
    ['https://ajax.streamable.com/videos/abc123', 'https://cdn.streamable.com/a.mp4'],
  ],
  [
    'a page of 3 MB, by its first two',
    `${head(meta('og:video', '/a.mp4'))}${'<p>filler</p>'.repeat(250_000)}`,
    ['https://site.example/a.mp4'],
  ],
  ['a head without a body', `<title>x</title>${meta('og:video', '/a.mp4')}`, ['https://site.example/a.mp4']],
])('finds %s', async ([, page, requested]) => {
  const replies: Replies = {
    'https://site.example/picture.mp4': bytes(Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')),
    'https://site.example/oembed': json({ html: '<video src="https://cdn.example/o.mp4"></video>' }),
    'https://ajax.streamable.com/videos/abc123': json({
      status: 2,
      files: { mp4: { url: 'https://cdn.streamable.com/a.mp4' } },
    }),
  }
  const last = requested.at(-1) ?? ''
  far.answers({ [PAGE]: html(page), ...replies, [last]: last.endsWith('.gif') ? gif : mp4 })
  expect(await imported(PAGE)).toMatchObject({ type: last.endsWith('.gif') ? 'gif' : 'mp4' })
  expect(far.requested()).toEqual([PAGE, ...requested])
})

const nothing = { status: 422, code: 'unsupported_site_content' }
test.for<[string, string, object, string[]?]>([
  ['a page of text', head('<title>Hello</title>'), nothing],
  [
    'a refresh, which is not followed',
    head('<meta http-equiv="refresh" content="0;url=https://cdn.example/a.mp4">'),
    nothing,
  ],
  ['a picture', head(meta('og:image', '/a.jpg')), nothing],
  [
    'addresses that are none',
    head(meta('og:video', 'javascript:alert(1)'), meta('og:video', `/${'a'.repeat(3000)}.mp4`)),
    nothing,
  ],
  ['a frame of a site that we do not know', '<iframe src="https://cdn.example/player"></iframe>', nothing],
  ['a player that is a page', head(meta('og:video', '/player'), meta('og:video:type', 'text/html')), nothing],
  ['a page in a page', head(meta('og:video', '/page')), nothing, ['https://site.example/page']],
  [
    'a file that is gone',
    head(meta('og:video', '/a.mp4')),
    { status: 424, code: 'source_fetch_failed' },
    ['https://site.example/a.mp4'],
  ],
  [
    'an address inside',
    head(meta('og:video', 'http://169.254.169.254/a.mp4')),
    { status: 403, code: 'source_forbidden' },
  ],
  [
    'the page of a dead site',
    head(meta('og:video', 'https://gfycat.com/ifr/AbcDef')),
    { status: 422, code: 'site_gone' },
  ],
])('does not find a clip in %s', async ([, page, is, requested = []]) => {
  const before = await service.traces()
  far.answers({ [PAGE]: html(page), 'https://site.example/page': html(head(meta('og:video', '/again.mp4'))) })
  expect(await imported(PAGE)).toMatchObject(is)
  expect(far.requested()).toEqual([PAGE, ...requested])
  expect(await service.traces()).toEqual(before)
})

test('a page leads to one more page at most', async () => {
  const post = 'https://www.reddit.com/comments/1abcde/.json?raw_json=1'
  far.answers({
    [post]: json([{ data: { children: [{ data: { url: PAGE } }] } }]),
    [PAGE]: html(head(meta('twitter:player', 'https://streamable.com/e/abc123'))),
  })
  expect(await imported('https://www.reddit.com/comments/1abcde')).toMatchObject(nothing)
  expect(far.requested()).toEqual([post, PAGE])
})

test('a hostile page costs little: thousands of URLs, nested elements, nested JSON', async () => {
  const pages = [
    head(...Array.from({ length: 5000 }, (_, index) => meta('og:video', `/${index}.mp4`))),
    `${'<b>'.repeat(400_000)}${'</i>'.repeat(200_000)}<video src="/a.mp4"></video>`,
    `<p ${Array.from({ length: 100_000 }, (_, index) => `a${index}=""`).join(' ')}>`,
    head(`<script type="application/ld+json">${'['.repeat(500_000)}</script>`),
    head(ld(Array.from({ length: 100_000 }, () => ({ '@graph': [{}] })))),
  ]
  for (const page of pages) {
    far.answers({ [PAGE]: html(page) })
    expect(await imported(PAGE)).toMatchObject({ status: expect.toSatisfy((code) => code === 422 || code === 424) })
    expect(far.requested().length).toBeLessThanOrEqual(7)
  }
})

describe('the description of a clip on its page', () => {
  const clipAt = { 'https://site.example/a.mp4': mp4 }
  const site = { site: 'https://site.example/', url: PAGE }
  test.for<[string, string, object]>([
    [
      'Open Graph',
      head('<title>Page</title>', meta('og:title', 'Ducks &amp; geese'), meta('og:video', '/a.mp4')),
      { title: 'Ducks & geese', attribution: site, nsfw: false },
    ],
    [
      'JSON-LD',
      head(ld({ '@type': 'VideoObject', name: 'Ducks', author: { name: 'Ada' }, contentUrl: '/a.mp4' })),
      { title: 'Ducks', attribution: { ...site, user: 'Ada' } },
    ],
    ['its title', head('<title>\n A <b>page</title>', meta('og:video', '/a.mp4')), { title: 'A <b>page' }],
    ['nothing', head(meta('og:video', '/a.mp4')), { title: null }],
    ['adults', head('<meta name="RATING" content="Adult">', meta('og:video', '/a.mp4')), { nsfw: true }],
  ])('%s', async ([, page, is]) => {
    far.answers({ [PAGE]: html(page), ...clipAt })
    expect(await imported(PAGE)).toMatchObject(is)
  })

  test('oEmbed adds the author; when it fails the author is left out', async () => {
    const page = html(
      head(
        meta('og:title', 'Ducks'),
        meta('og:video', '/a.mp4'),
        '<link type="application/json+oembed" rel="alternate" href="/o">',
      ),
    )
    for (const [reply, user] of [
      [json({ title: 'Not this', author_name: 'Ada' }), 'Ada'],
      [status(500), undefined],
      [moved('http://169.254.169.254/'), undefined],
    ] as [Reply, string?][]) {
      far.answers({ [PAGE]: page, 'https://site.example/o': reply, ...clipAt })
      const attribution = { ...site, ...(user ? { user } : {}) }
      expect(await imported(PAGE)).toMatchObject({ title: 'Ducks', attribution })
    }
  })

  test.for<[string, string, Buffer]>([
    ['the header', 'text/html; charset=iso-8859-1', Buffer.from('<title>É</title>', 'latin1')],
    ['the page', 'text/html', Buffer.from('<meta charset="windows-1252"><title>É</title>', 'latin1')],
    [
      'the page, the old way',
      'text/html',
      Buffer.from('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><title>É</title>', 'latin1'),
    ],
    ['a byte order mark', 'text/html', Buffer.from('\ufeff<title>É</title>', 'utf16le')],
    ['nobody: UTF-8', 'text/html', Buffer.from('<title>É</title>')],
    ['a header that names none there is', 'text/html; charset=klingon', Buffer.from('<title>É</title>')],
  ])('in the encoding given by %s', async ([, type, text]) => {
    const video =
      type.includes('html') && text.includes(0)
        ? Buffer.from('<video src=/a.mp4>', 'utf16le')
        : Buffer.from('<video src=/a.mp4>')
    far.answers({ [PAGE]: bytes(Buffer.concat([text, video]), { 'content-type': type }), ...clipAt })
    expect(await imported(PAGE)).toMatchObject({ title: 'É' })
  })

  test('even of a page that comes compressed unrequested; a bomb is refused', async () => {
    const page = Buffer.from(head('<title>Packed</title>', meta('og:video', '/a.mp4')))
    for (const [encoding, packed] of [
      ['gzip', gzipSync(page)],
      ['br', brotliCompressSync(page)],
    ] as const) {
      far.answers({ [PAGE]: bytes(packed, { 'content-type': 'text/html', 'content-encoding': encoding }), ...clipAt })
      expect(await imported(PAGE)).toMatchObject({ title: 'Packed' })
    }
    const upstream = { status: 424, details: { upstream: 'bad_response' } }
    for (const [encoding, packed] of [
      ['gzip', gzipSync(Buffer.alloc(50_000_000))],
      ['gzip', page],
      ['zip', page],
    ] as const) {
      far.answers({ [PAGE]: bytes(packed, { 'content-type': 'text/html', 'content-encoding': encoding }) })
      expect(await imported(PAGE)).toMatchObject(upstream)
    }
  })
})

describe('a direct file', () => {
  const FILE = 'https://cdn.example/a.mp4'

  test('is one request, whatever it is called, and nothing is said about it', async () => {
    far.answers({ 'https://cdn.example/a.html': bytes(content.gif, { 'content-type': 'text/html' }) })
    expect(await imported('https://cdn.example/a.html')).toEqual({
      title: null,
      attribution: null,
      nsfw: false,
      type: 'gif',
    })
    expect(far.requested()).toEqual(['https://cdn.example/a.html'])
  })

  test('that redirects to the page of a known site is left to that site', async () => {
    far.answers({ 'https://short.example/1': moved('https://gfycat.com/AbcDef') })
    expect(await imported('https://short.example/1')).toMatchObject({ code: 'site_gone' })
    expect(far.requested()).toEqual(['https://short.example/1'])
  })

  /** Begins with a real header, promises 100 MB, and shows when it is hung up on. */
  const endless =
    (start: Buffer, length: number, hungUp: () => void): Reply =>
    (_request, response) => {
      response.on('close', hungUp).writeHead(200, { 'content-length': length })
      response.write(Buffer.concat([start, Buffer.alloc(100_000)]))
    }

  test('whose header declares too long a clip is refused at once, and its connection closed', async () => {
    for (const start of [await lyingClip('faststart.mp4', 20), await clip('long.mp4')]) {
      const header = (await readFile(start)).subarray(0, 64 * 1024)
      // One with its header at the end says nothing in time.
      if (!header.includes('moov')) continue
      let hangUp = () => {}
      const hungUp = new Promise<void>((resolve) => {
        hangUp = resolve
      })
      far.answers({ [FILE]: endless(header, 100_000_000, hangUp) })
      expect(await imported(FILE)).toMatchObject({ code: 'duration_exceeded', details: { limit: 30 } })
      await hungUp
    }
  })

  test('is as long as its picture, even if its header counts sound that lasts longer', async () => {
    const webm = await readFile(await clip('sound-goes-on.webm'))
    // An element that says nothing makes it large enough to be judged by its header.
    const filler = Buffer.concat([Buffer.from('ec01000000000fffff', 'hex'), Buffer.alloc(0xfffff)])
    far.answers({ [FILE]: bytes(Buffer.concat([webm, filler])) })
    expect(await imported(FILE)).toMatchObject({ type: 'webm' })
  })

  test('that is small is judged by its pictures, not by its header', async () => {
    far.answers({ [FILE]: bytes(await readFile(await lyingClip('faststart.mp4', 20))) })
    expect(await imported(FILE)).toMatchObject({ type: 'mp4' })
  })
})

describe('sources for other extractors', () => {
  const hls = 'https://cdn.example/a.m3u8'

  test.for<[string, string, Replies, object]>([
    ['a playlist', hls, { [hls]: bytes(Buffer.from('#EXTM3U\n#EXT-X-VERSION:3\n')) }, { url: hls, format: 'hls' }],
    [
      'a DASH manifest',
      'https://cdn.example/a',
      { 'https://cdn.example/a': bytes(Buffer.from('<?xml version="1.0"?>\n<!-- x -->\n<MPD xmlns="urn:x">')) },
      { url: 'https://cdn.example/a', format: 'dash' },
    ],
    ['a page with one', PAGE, { [PAGE]: html(head(meta('og:video', hls))) }, { url: hls, format: 'hls' }],
    [
      'a post with sound',
      'https://www.reddit.com/comments/1abcde',
      {
        'https://www.reddit.com/comments/1abcde/.json': json([
          {
            data: {
              children: [
                {
                  data: {
                    secure_media: {
                      reddit_video: {
                        dash_url: 'https://v.redd.it/x/DASHPlaylist.mpd?a=1&amp;b=2',
                        fallback_url: 'https://v.redd.it/x/DASH_720.mp4',
                      },
                    },
                  },
                },
              ],
            },
          },
        ]),
      },
      {
        url: 'https://v.redd.it/x/DASHPlaylist.mpd?a=1&b=2',
        format: 'dash',
        hosts: ['reddit.com', 'redd.it', 'redditmedia.com'],
      },
    ],
  ])('%s is handed on by its kind', async ([, source, replies, is]) => {
    far.answers(replies)
    expect(await imported(source, helped)).toMatchObject({ type: 'mp4' })
    expect(handed).toEqual([{ kind: 'manifest', maxBytes: 157_286_400, hosts: undefined, ...is }])
  })

  test('a manifest of nothing is no clip', async () => {
    far.answers({ [hls]: bytes(Buffer.from('#EXTM3U\n')) })
    expect(await imported(hls)).toMatchObject(nothing)
  })

  test.for<[string, Replies]>([
    ['https://www.facebook.com/watch?v=1', {}],
    [
      'https://www.instagram.com/p/CAbc_12-x/',
      { 'https://www.instagram.com/p/CAbc_12-x/embed/captioned/': status(403) },
    ],
    ['https://www.reddit.com/comments/1abcde', { 'https://www.reddit.com/comments/1abcde/.json': status(429) }],
    [PAGE, { [PAGE]: html('<p>script only') }],
  ])('a page that only yt-dlp can read is passed to it: %s', async ([source, replies]) => {
    far.answers({ ...replies, 'https://cdn.example/a.mp4': mp4 })
    expect(await imported(source, helped)).toMatchObject({ title: 'Extracted' })
    expect(handed).toEqual([source])
  })

  test('is run once, and its refusal is final', async () => {
    const refusing = await startTestService(settings, {
      extractPage: async (url) => {
        handed.push(url)
        throw apiError('site_login_required')
      },
    })
    for (const source of ['https://www.facebook.com/watch?v=1', 'https://www.instagram.com/p/CAbc_12-x/']) {
      far.answers({ 'https://www.instagram.com/p/CAbc_12-x/embed/captioned/': status(403) })
      expect(await imported(source, refusing)).toMatchObject({ code: 'site_login_required' })
    }
    expect(handed).toEqual(['https://www.facebook.com/watch?v=1', 'https://www.instagram.com/p/CAbc_12-x/'])
    await refusing.close()
  })

  test.for<[string, Replies, string]>([
    ['https://gfycat.com/AbcDef', {}, 'site_gone'],
    ['https://www.reddit.com/comments/1abcde', {}, 'source_fetch_failed'],
    [
      'https://cdn.example/a.txt',
      { 'https://cdn.example/a.txt': bytes(Buffer.from('hello')) },
      'unsupported_media_type',
    ],
    ['https://cdn.example/missing.mp4', {}, 'source_fetch_failed'],
  ])('a source that is settled without yt-dlp is not passed to it: %s', async ([source, replies, code]) => {
    far.answers(replies)
    expect(await imported(source, helped)).toMatchObject({ code })
    expect(handed).toEqual([])
  })
})
