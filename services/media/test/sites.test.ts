import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clip } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'
import { bytes, html, json, moved, type Replies, type Reply, startFarSide, status } from './upstreams/far-side.ts'

/** Every host that a row below names; a request to any other host reaches the real network and fails. */
const HOSTS = [
  ...['giphy.com', 'i.giphy.com', 'media.giphy.com', 'media2.giphy.com', 'api.giphy.com', 'gph.is'],
  ...['imgur.com', 'i.imgur.com', 'api.imgur.com', 'streamable.com', 'ajax.streamable.com', 'cdn.streamable.com'],
  ...['tenor.com', 'media.tenor.com', 'www.reddit.com', 'old.reddit.com', 'oauth.reddit.com', 'v.redd.it'],
  ...['preview.redd.it', 'i.redd.it', 't.co', 'x.com', 'cdn.syndication.twimg.com', 'video.twimg.com'],
  ...['www.instagram.com', 'scontent.cdninstagram.com', 'elsewhere.example', 'gfycat.com'],
]
const far = await startFarSide(HOSTS)
const mp4 = bytes(await readFile(await clip('plain.mp4')))
const png: Reply = bytes(Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), { 'content-type': 'video/mp4' })
const settings = { ...far.settings, MEDIA_WORKERS_ENABLED: 'false', MEDIA_QUEUE_LIMIT: '10000' }

let plain: TestService
let keyed: TestService
beforeAll(async () => {
  const keys = {
    MEDIA_GIPHY_API_KEY: 'giphy-key',
    MEDIA_IMGUR_CLIENT_ID: 'imgur-id',
    MEDIA_REDDIT_CLIENT_ID: 'reddit-id',
    MEDIA_REDDIT_CLIENT_SECRET: 'reddit-secret',
  }
  ;[plain, keyed] = await Promise.all([startTestService(settings), startTestService({ ...settings, ...keys })])
})
afterAll(async () => {
  far.close()
  await Promise.all([plain.close(), keyed.close()])
})

const importFrom = (service: TestService, body: object) => service.importFrom(body, { prefer: 'respond-async' })

/** Result of an import: the requests on the way, and the clip. */
async function imported(service: TestService, body: object) {
  const answer = await importFrom(service, body)
  if (answer.status !== 201) return { status: answer.status, ...answer.body.error }
  const { title, nsfw, attribution } = (await service.get(`/media/${idIn(answer)}`, { token: service.token })).body
    .success
  return { title, nsfw, attribution }
}

interface Row {
  source: string
  replies: Replies
  /** Requests in order; the last one is the file. */
  requested: string[]
  is: object
}

const clipIs = (title: string | null, attribution: object, nsfw = false) => ({ title, nsfw, attribution })
const failure = (code: string, details?: object) => ({
  status: code === 'source_fetch_failed' ? 424 : 422,
  code,
  ...(details ? { details } : {}),
})
const failed = (site: string, upstream: string, reason?: string) =>
  failure('source_fetch_failed', { upstream, site, ...(reason ? { reason } : {}) })

async function holds(service: TestService, { source, replies, requested, is }: Row): Promise<void> {
  far.answers(replies)
  expect(await imported(service, { source })).toMatchObject(is)
  expect(far.requested()).toEqual(requested)
}

describe('giphy', () => {
  const page = 'https://giphy.com/gifs/AbCdEf123'
  const cdn = 'https://i.giphy.com/media/AbCdEf123'
  const head = '<meta property="og:title" content="Ducks GIF - Find &amp; Share on GIPHY">'
  const by = { site: 'https://giphy.com/', url: page }
  test.for<[string, Row]>([
    [
      'the original where there is one',
      {
        source: 'https://giphy.com/gifs/ducks-swim-AbCdEf123',
        replies: { [page]: html(head), [`${cdn}/source.mp4`]: mp4 },
        requested: [page, `${cdn}/source.mp4`],
        is: clipIs('Ducks GIF', by),
      },
    ],
    [
      'else the best of the others, refused ones left out',
      {
        source: 'https://media2.giphy.com/media/v1.Y2lkPTc5MA/AbCdEf123/giphy.webp',
        replies: { [page]: status(403), [`${cdn}/source.mp4`]: status(403), [`${cdn}/giphy.mp4`]: mp4 },
        requested: [page, `${cdn}/source.mp4`, `${cdn}/giphy-hd.mp4`, `${cdn}/giphy.mp4`],
        is: clipIs(null, by),
      },
    ],
    [
      'a short link',
      {
        source: 'https://gph.is/2abc',
        replies: { 'https://gph.is/2abc': moved(page), [page]: html(head), [`${cdn}/source.mp4`]: mp4 },
        requested: ['https://gph.is/2abc', page, `${cdn}/source.mp4`],
        is: clipIs('Ducks GIF', by),
      },
    ],
    ['deleted', { source: page, replies: {}, requested: [page], is: failed('giphy', '4xx', 'not_found') }],
    [
      'rate limited, and nothing on the CDN',
      {
        source: page,
        replies: { [page]: status(429) },
        requested: [
          ...[page, `${cdn}/source.mp4`, `${cdn}/giphy-hd.mp4`, `${cdn}/giphy.mp4`],
          'https://media.giphy.com/media/AbCdEf123/giphy.mp4',
        ],
        is: failure('source_fetch_failed', { upstream: '4xx' }),
      },
    ],
  ])('%s', ([, row]) => holds(plain, row))

  test('with a key: rating, name and title', () => {
    const api = 'https://api.giphy.com/v1/gifs/AbCdEf123?api_key=giphy-key'
    const file = 'https://media.giphy.com/media/AbCdEf123/giphy.mp4'
    const data = { title: 'Ducks', username: 'ada', rating: 'r', images: { original_mp4: { mp4: file } } }
    return holds(keyed, {
      source: page,
      replies: { [api]: json({ data }), [file]: mp4 },
      requested: [api, `${cdn}/source.mp4`, file],
      is: clipIs('Ducks', { ...by, user: 'ada' }, true),
    })
  })
})

describe('imgur', () => {
  const gifv = 'https://i.imgur.com/AbCdE12.gifv'
  const file = 'https://i.imgur.com/AbCdE12.mp4'
  const gif = 'https://i.imgur.com/AbCdE12.gif'
  const by = { site: 'https://imgur.com/', url: 'https://imgur.com/AbCdE12' }
  const page = `<meta name="twitter:player:stream" content="${file}"><meta property="og:title" content="A cat - Imgur">
    <div class="video-elements"><video><source src="//i.imgur.com/AbCdE12.mp4"></video></div>`
  test.for<[string, Row]>([
    [
      'the mp4 beside every moving image',
      {
        source: 'https://imgur.com/a-cat-AbCdE12',
        replies: { [gifv]: html(page), [file]: mp4 },
        requested: [gifv, file],
        is: clipIs('A cat', by),
      },
    ],
    [
      'a page that tells nothing any more',
      { source: gif, replies: { [gifv]: html('<p>'), [file]: mp4 }, requested: [gifv, file], is: clipIs(null, by) },
    ],
    [
      'a still',
      {
        source: 'https://i.imgur.com/AbCdE12.png',
        replies: { [gifv]: html('<p>'), [file]: png, [gif]: png },
        requested: [gifv, file, gif],
        is: { status: 415 },
      },
    ],
    [
      'an image that was removed',
      {
        source: gif,
        replies: { [gifv]: moved('https://i.imgur.com/removed.png'), 'https://i.imgur.com/removed.png': png },
        requested: [gifv, 'https://i.imgur.com/removed.png'],
        is: failed('imgur', '4xx', 'not_found'),
      },
    ],
    [
      'rate limited',
      { source: gif, replies: { [gifv]: status(429) }, requested: [gifv], is: failed('imgur', '4xx', 'rate_limited') },
    ],
    [
      'closed to a country',
      { source: gif, replies: { [gifv]: status(451) }, requested: [gifv], is: failed('imgur', '4xx', 'refused') },
    ],
    [
      'an album without a clip',
      {
        source: 'https://imgur.com/a/AbCdE',
        replies: { 'https://imgur.com/a/AbCdE': html('<meta property="og:image" content="/x.jpg">') },
        requested: ['https://imgur.com/a/AbCdE'],
        is: failure('unsupported_site_content', { site: 'imgur' }),
      },
    ],
  ])('%s', ([, row]) => holds(plain, row))

  const query = '?client_id=imgur-id&include=media%2Caccount'
  const album = `https://api.imgur.com/post/v1/albums/AbCdE${query}`
  const still = { id: 'Still', type: 'image', ext: 'jpg', url: 'https://i.imgur.com/Still.jpg', metadata: {} }
  const moving = {
    ...{ id: 'AbCdE12', type: 'video', ext: 'mp4', url: file, size: 1234 },
    metadata: { is_animated: true, has_sound: true, duration: 2.5 },
  }
  const albumIs = { site: 'https://imgur.com/', user: 'ada', url: 'https://imgur.com/a/AbCdE' }
  test.for<[string, Row]>([
    [
      'the first that moves in an album',
      {
        source: 'https://imgur.com/gallery/cats-AbCdE',
        replies: {
          [album]: json({ title: 'Cats', is_mature: true, account: { username: 'ada' }, media: [still, moving] }),
          [file]: mp4,
        },
        requested: [album, file],
        is: clipIs('Cats', albumIs, true),
      },
    ],
    [
      'a gallery that is an image',
      {
        source: 'https://imgur.com/gallery/AbCdE',
        replies: { [album.replace('albums', 'media')]: json({ media: [moving] }), [file]: mp4 },
        requested: [album, album.replace('albums', 'media'), file],
        is: clipIs(null, { site: 'https://imgur.com/', url: 'https://imgur.com/a/AbCdE' }),
      },
    ],
    [
      'too long',
      {
        source: 'https://imgur.com/a/AbCdE',
        replies: { [album]: json({ media: [{ ...moving, metadata: { is_animated: true, duration: 44.5 } }] }) },
        requested: [album],
        is: failure('duration_exceeded', { limit: 30, actual: 44.5 }),
      },
    ],
    [
      'too large',
      {
        source: 'https://imgur.com/a/AbCdE',
        replies: { [album]: json({ media: [{ ...moving, url: `${file}?1`, size: 200_000_000 }] }) },
        requested: [album, file],
        is: { status: 413, code: 'file_too_large' },
      },
    ],
    [
      'only stills',
      {
        source: 'https://imgur.com/a/AbCdE',
        replies: { [album]: json({ media: [still] }) },
        requested: [album],
        is: failure('unsupported_site_content', { site: 'imgur' }),
      },
    ],
    [
      'another shape',
      {
        source: 'https://imgur.com/a/AbCdE',
        replies: { [album]: json({ data: {} }) },
        requested: [album],
        is: failed('imgur', 'bad_response', 'changed'),
      },
    ],
  ])('with a client id: %s', ([, row]) => holds(keyed, row))
})

describe('streamable', () => {
  const api = 'https://ajax.streamable.com/videos/abc123'
  const big = 'https://cdn.streamable.com/video/mp4/abc123.mp4?Expires=1&Signature=x'
  const small = 'https://cdn.streamable.com/video/mp4-mobile/abc123.mp4'
  const video = {
    ...{ status: 2, percent: 100, title: '', reddit_title: 'Goal', duration: 12.5 },
    files: {
      'mp4-mobile': { status: 2, url: small.slice('https:'.length), width: 640, height: 360, size: 1000, bitrate: 9e5 },
      mp4: { status: 2, url: big.slice('https:'.length), width: 1280, height: 720, size: 2000, bitrate: 2e6 },
      original: {},
    },
  }
  const row = (content: unknown, is: object, requested = [api], more: Replies = {}): Row => ({
    source: 'https://streamable.com/e/abc123',
    replies: { [api]: json(content), ...more },
    requested,
    is,
  })
  const by = { site: 'https://streamable.com/', url: 'https://streamable.com/abc123' }
  test.for<[string, Row]>([
    ['the largest', row(video, clipIs('Goal', by), [api, big], { [big]: mp4 })],
    ['a smaller one when that is missing', row(video, clipIs('Goal', by), [api, big, small], { [small]: mp4 })],
    [
      'a smaller one when that is over the limit',
      row(
        { ...video, files: { ...video.files, mp4: { ...video.files.mp4, size: 157_286_401 } } },
        clipIs('Goal', by),
        [api, small],
        { [small]: mp4 },
      ),
    ],
    ['31 s', row({ ...video, duration: 30.6 }, failure('duration_exceeded', { limit: 30, actual: 30.6 }))],
    [
      'what may be a picture of 30 s and a sound that goes on',
      row({ ...video, duration: 30.3 }, clipIs('Goal', by), [api, big], { [big]: mp4 }),
    ],
    ['still being made', row({ ...video, status: 1 }, failed('streamable', 'bad_response', 'not_ready'))],
    ['broken', row({ ...video, status: 3 }, failure('unsupported_site_content', { site: 'streamable' }))],
    ['no file', row({ ...video, files: {} }, failure('unsupported_site_content', { site: 'streamable' }))],
    ['another shape', row({ clip: 1 }, failed('streamable', 'bad_response', 'changed'))],
    ['no JSON', { ...row({}, failed('streamable', 'bad_response', 'changed')), replies: { [api]: html('<p>hello') } }],
    ['deleted', { ...row({}, failed('streamable', '4xx', 'not_found')), replies: {} }],
    [
      'private',
      { ...row({}, failure('site_login_required', { site: 'streamable' })), replies: { [api]: status(401) } },
    ],
    ['rate limited', { ...row({}, failed('streamable', '4xx', 'rate_limited')), replies: { [api]: status(429) } }],
    ['down', { ...row({}, failed('streamable', '5xx')), replies: { [api]: status(502) } }],
    [
      'hung up',
      { ...row({}, failed('streamable', 'unreachable')), replies: { [api]: (request) => request.socket.destroy() } },
    ],
    [
      'files on a host that is not its own',
      row(
        { ...video, files: { mp4: { url: 'https://elsewhere.example/a.mp4' } } },
        failure('unsupported_site_content'),
      ),
    ],
    [
      'files that redirect to one',
      row(video, failure('unsupported_site_content'), [api, big, small], {
        [big]: moved('https://elsewhere.example/a.mp4'),
        [small]: moved('https://elsewhere.example/a.mp4'),
      }),
    ],
    [
      'a redirect of the site itself to one',
      {
        ...row({}, failed('streamable', 'bad_response', 'changed')),
        replies: { [api]: moved('https://elsewhere.example/') },
      },
    ],
  ])('%s', ([, given]) => holds(plain, given))
})

describe('tenor', () => {
  const page = 'https://tenor.com/view/happy-dance-gif-12345'
  const file = 'https://media.tenor.com/AAAAPo/happy-dance.mp4'
  const gif = 'https://media.tenor.com/AAAAC/happy-dance.gif'
  const store = (gifs: unknown) =>
    html(`<script id="store-cache" type="text/x-cache">${JSON.stringify({ gifs })}</script>`)
  const formats = { gif: { url: gif, size: 9 }, mp4: { url: file, size: 5, duration: 1.2 }, loopedmp4: { url: file } }
  const result = { media_formats: formats, title: '', content_description: 'Happy dance', user: { username: 'ada' } }
  const by = { site: 'https://tenor.com/', user: 'ada', url: page }
  test.for<[string, Row]>([
    [
      'by the data in the page',
      {
        source: 'https://tenor.com/de/view/happy-dance-gif-12345',
        replies: { [page]: store({ byId: { 12345: { results: [result] } } }), [file]: mp4 },
        requested: [page, file],
        is: clipIs('Happy dance', by),
      },
    ],
    [
      'a short link',
      {
        source: 'https://tenor.com/bXyZ1.gif',
        replies: {
          'https://tenor.com/bXyZ1.gif': moved(page),
          [page]: store({ byId: { 12345: { results: [result] } } }),
          [file]: mp4,
        },
        requested: ['https://tenor.com/bXyZ1.gif', page, file],
        is: clipIs('Happy dance', by),
      },
    ],
    [
      'by Open Graph, where the data is gone',
      {
        source: page,
        replies: { [page]: html(`<meta property="og:video" content="${file}">`), [file]: mp4 },
        requested: [page, file],
        is: clipIs(null, { site: 'https://tenor.com/', url: page }),
      },
    ],
    ['deleted', { source: page, replies: {}, requested: [page], is: failed('tenor', '4xx', 'not_found') }],
    [
      'rate limited',
      { source: page, replies: { [page]: status(429) }, requested: [page], is: failed('tenor', '4xx', 'rate_limited') },
    ],
    [
      'a wall',
      {
        source: page,
        replies: { [page]: html('<p>Are you human?', 403) },
        requested: [page],
        is: failed('tenor', '4xx', 'refused'),
      },
    ],
    [
      'changed',
      {
        source: page,
        replies: { [page]: store({ list: [] }) },
        requested: [page],
        is: failed('tenor', 'bad_response', 'changed'),
      },
    ],
  ])('%s', ([, row]) => holds(plain, row))
})

const mpdOf = (file: string) =>
  '<MPD type="static" mediaPresentationDuration="PT2S"><Period><AdaptationSet>' +
  `<Representation id="1" bandwidth="1" mimeType="video/mp4"><BaseURL>${file}</BaseURL></Representation>` +
  '</AdaptationSet></Period></MPD>'

describe('reddit', () => {
  const api = 'https://www.reddit.com/comments/1abcde/.json?raw_json=1'
  const old = 'https://old.reddit.com/'
  const file = 'https://v.redd.it/xyz/DASH_720.mp4?source=fallback'
  const video = { fallback_url: file, dash_url: 'https://v.redd.it/xyz/DASHPlaylist.mpd', duration: 2, is_gif: true }
  const post = {
    ...{ title: 'Cat & dog', author: 'ada', over_18: true, permalink: '/r/cats/comments/1abcde/cat/' },
    secure_media: { reddit_video: video },
  }
  const listing = (data: object, code = 200) => json([{ data: { children: [{ data }] } }, {}], code)
  const by = { site: 'reddit', user: 'ada' }
  const source = 'https://old.reddit.com/r/cats/comments/1abcde/cat/'
  const row = (data: object, is: object, requested = [api], more: Replies = {}): Row => ({
    source,
    replies: { [api]: listing(data), ...more },
    requested,
    is,
  })
  const without = { ...post, secure_media: null }
  const preview = 'https://preview.redd.it/a.gif?format=mp4&s=1'
  test.for<[string, Row]>([
    ['a silent video', row(post, clipIs('Cat & dog', by, true), [api, file], { [file]: mp4 })],
    [
      'a video with sound, which only the manifest has, by its pictures where the manifest is missing',
      row(
        { ...post, secure_media: { reddit_video: { ...video, is_gif: false, has_audio: true } } },
        clipIs('Cat & dog', by, true),
        [api, video.dash_url, file],
        { [file]: mp4 },
      ),
    ],
    [
      'a video with sound by its pictures, where the manifest leads to what nobody can put together',
      row(
        { ...post, secure_media: { reddit_video: { ...video, is_gif: false, has_audio: true } } },
        clipIs('Cat & dog', by, true),
        [api, video.dash_url, 'https://v.redd.it/xyz/a.mp4', file],
        {
          [video.dash_url]: bytes(Buffer.from(mpdOf('a.mp4')), { 'content-type': 'application/dash+xml' }),
          'https://v.redd.it/xyz/a.mp4': bytes(Buffer.from('000000186674797069736f6d00000000ffffffffffffffff', 'hex')),
          [file]: mp4,
        },
      ),
    ],
    [
      'a crosspost of one',
      row({ ...without, crosspost_parent_list: [post] }, clipIs('Cat & dog', by, true), [api, file], { [file]: mp4 }),
    ],
    [
      'what was made of a gif',
      row(
        {
          ...without,
          url: 'https://i.redd.it/a.gif',
          preview: { images: [{ variants: { mp4: { source: { url: preview.replace('&', '&amp;') } } } }] },
        },
        clipIs('Cat & dog', by, true),
        [api, preview],
        { [preview]: mp4 },
      ),
    ],
    [
      'the first that moves in a gallery',
      row(
        {
          ...without,
          gallery_data: { items: [{ media_id: 'still' }, { media_id: 'moving' }] },
          media_metadata: { still: { e: 'Image', s: {} }, moving: { e: 'AnimatedImage', s: { mp4: preview } } },
        },
        clipIs('Cat & dog', by, true),
        [api, preview],
        { [preview]: mp4 },
      ),
    ],
    [
      'a link to another site, and who posted it',
      row(
        { ...without, url: 'https://streamable.com/abc123' },
        clipIs('Cat & dog', by, true),
        [api, 'https://ajax.streamable.com/videos/abc123', 'https://cdn.streamable.com/a.mp4'],
        {
          'https://ajax.streamable.com/videos/abc123': json({
            status: 2,
            title: 'Not this one',
            files: { mp4: { url: 'https://cdn.streamable.com/a.mp4' } },
          }),
          'https://cdn.streamable.com/a.mp4': mp4,
        },
      ),
    ],
    [
      'a link to a page that calls itself unsafe',
      row(
        { ...without, over_18: false, url: 'https://elsewhere.example/page' },
        clipIs('Cat & dog', by, true),
        [api, 'https://elsewhere.example/page', 'https://elsewhere.example/a.mp4'],
        {
          'https://elsewhere.example/page': html(
            '<meta name="rating" content="mature"><title>Not this</title><meta property="og:video" content="/a.mp4">',
          ),
          'https://elsewhere.example/a.mp4': mp4,
        },
      ),
    ],
    ['a link to a site that is gone', row({ ...without, url: 'https://gfycat.com/AbcDefGhi' }, failure('site_gone'))],
    [
      'a video that is too long',
      row({ ...post, secure_media: { reddit_video: { ...video, duration: 32 } } }, failure('duration_exceeded')),
    ],
    ['text', row({ ...without, is_self: true, url: source }, failure('unsupported_site_content', { site: 'reddit' }))],
    [
      'a picture',
      row({ ...without, url: 'https://i.redd.it/a.jpg' }, failure('unsupported_site_content', { site: 'reddit' })),
    ],
    ['deleted', row({ ...post, removed_by_category: 'deleted' }, failed('reddit', '4xx', 'not_found'))],
    ['not there', { ...row(post, failed('reddit', '4xx', 'not_found')), replies: {} }],
    [
      'a private community',
      {
        ...row(post, failure('site_login_required', { site: 'reddit' })),
        replies: { [api]: json({ reason: 'private', error: 403 }, 403) },
      },
    ],
    [
      'a banned community',
      {
        ...row(post, failed('reddit', '4xx', 'not_found')),
        replies: { [api]: json({ reason: 'banned', error: 404 }, 404) },
      },
    ],
    ['rate limited', { ...row(post, failed('reddit', '4xx', 'rate_limited')), replies: { [api]: status(429) } }],
    [
      'another shape',
      { ...row(post, failed('reddit', 'bad_response', 'changed')), replies: { [api]: json({ kind: 'Listing' }) } },
    ],
    ...[['loid=visitor; Domain=reddit.com; Secure'], ['edge=1; Path=/', 'loid=visitor; Domain=reddit.com; Secure']].map(
      (cookies): [string, Row] => [
        `a wall that opens for visitors with a number, among ${cookies.length} cookies`,
        {
          ...row(post, clipIs('Cat & dog', by, true), [api, old, api, file]),
          replies: {
            [api]: (request, response, body) => {
              const isKnown = request.headers.cookie === 'loid=visitor; over18=1'
              return (isKnown ? listing(post) : html('<p>Blocked', 403))(request, response, body)
            },
            [old]: json({}, 200, { 'set-cookie': cookies }),
            [file]: mp4,
          },
        },
      ],
    ),
    [
      'a wall that does not',
      {
        ...row(post, failed('reddit', '4xx', 'refused'), [api, old]),
        replies: { [api]: html('<p>Blocked', 403), [old]: html('<p>Blocked', 403) },
      },
    ],
    [
      'a share link',
      {
        source: 'https://www.reddit.com/r/cats/s/AbC123dEf?utm=1',
        replies: {
          'https://www.reddit.com/r/cats/s/AbC123dEf': moved('/r/cats/comments/1abcde/cat/?share_id=1'),
          [api]: listing(post),
          [file]: mp4,
        },
        requested: ['https://www.reddit.com/r/cats/s/AbC123dEf', api, file],
        is: clipIs('Cat & dog', by, true),
      },
    ],
  ])('%s', ([, given]) => holds(plain, given))

  test('with an application: through its own host, which alone gets the key', async () => {
    const grant = 'https://www.reddit.com/api/v1/access_token'
    const own = 'https://oauth.reddit.com/comments/1abcde?raw_json=1'
    const seen: unknown[] = []
    await holds(keyed, {
      source,
      replies: {
        [grant]: (request, response, body) => {
          seen.push([request.method, request.headers.authorization, body])
          json({ access_token: 'granted' })(request, response, body)
        },
        [own]: (request, response, body) => {
          seen.push(request.headers.authorization)
          listing(post)(request, response, body)
        },
        [file]: (request, response, body) => {
          seen.push(request.headers.authorization)
          mp4(request, response, body)
        },
      },
      requested: [grant, own, file],
      is: clipIs('Cat & dog', by, true),
    })
    const basic = `Basic ${Buffer.from('reddit-id:reddit-secret').toString('base64')}`
    expect(seen).toEqual([['POST', basic, 'grant_type=client_credentials'], 'Bearer granted', undefined])
  })
})

describe('twitter', () => {
  const api = 'https://cdn.syndication.twimg.com/tweet-result'
  const requested = `${api}?id=1629307668568633344&token=3y6mctgwzxo&lang=en`
  const file = 'https://video.twimg.com/ext_tw_video/1/pu/vid/1280x720/a.mp4?tag=12'
  const low = 'https://video.twimg.com/ext_tw_video/1/pu/vid/320x180/a.mp4?tag=12'
  const clipOf = (url: string, length = 2000) => ({
    type: 'video',
    video_info: {
      duration_millis: length,
      variants: [
        { content_type: 'application/x-mpegURL', url: 'https://video.twimg.com/a.m3u8' },
        { content_type: 'video/mp4', bitrate: 256_000, url: low },
        { content_type: 'video/mp4', bitrate: 2_176_000, url },
      ],
    },
  })
  const post = {
    __typename: 'Tweet',
    text: 'Ducks &amp; geese https://t.co/AbC',
    user: { screen_name: 'ada' },
    possibly_sensitive: true,
    mediaDetails: [{ type: 'photo' }, clipOf(file), { ...clipOf(low), type: 'animated_gif' }],
  }
  const source = 'https://x.com/ada/status/1629307668568633344'
  const by = { site: 'twitter', user: 'ada' }
  const row = (reply: Reply, is: object, more: Replies = {}): Row => ({
    source,
    replies: { [api]: reply, ...more },
    requested: [requested, ...Object.keys(more)],
    is,
  })
  test.for<[string, Row]>([
    ['the most bits', row(json(post), clipIs('Ducks & geese', by, true), { [file]: mp4 })],
    [
      'the second video, where the address says so',
      { ...row(json(post), clipIs('Ducks & geese', by, true), { [low]: mp4 }), source: `${source}/video/2` },
    ],
    ['too long', row(json({ ...post, mediaDetails: [clipOf(file, 140_000)] }), failure('duration_exceeded'))],
    [
      'no video',
      row(
        json({ ...post, mediaDetails: [{ type: 'photo' }] }),
        failure('unsupported_site_content', { site: 'twitter' }),
      ),
    ],
    [
      'protected or adult',
      row(json({ __typename: 'TweetTombstone' }), failure('site_login_required', { site: 'twitter' })),
    ],
    ['deleted', row(status(404), failed('twitter', '4xx', 'not_found'))],
    ['rate limited', row(status(429), failed('twitter', '4xx', 'rate_limited'))],
    ['another shape', row(json({}), failed('twitter', 'bad_response', 'changed'))],
    [
      'a short link to a post',
      {
        source: 'https://t.co/AbC',
        replies: { 'https://t.co/AbC': moved(source), [api]: json(post), [file]: mp4 },
        requested: ['https://t.co/AbC', requested, file],
        is: clipIs('Ducks & geese', by, true),
      },
    ],
    [
      'a short link to a file elsewhere',
      {
        source: 'https://t.co/AbC',
        replies: {
          'https://t.co/AbC': moved('https://elsewhere.example/a.mp4'),
          'https://elsewhere.example/a.mp4': mp4,
        },
        requested: ['https://t.co/AbC', 'https://elsewhere.example/a.mp4'],
        is: clipIs(null, null as never),
      },
    ],
  ])('%s', ([, given]) => holds(plain, given))
})

describe('instagram', () => {
  const embed = 'https://www.instagram.com/p/CAbc_12-x/embed/captioned/'
  const file = 'https://scontent.cdninstagram.com/v/a.mp4?efg=1&oh=2'
  const escaped = JSON.stringify(
    JSON.stringify({ shortcode_media: { is_video: true, video_url: file, owner: { username: 'ada' } } }),
  )
  const source = 'https://www.instagram.com/reel/CAbc_12-x/?igsh=1'
  const login = failure('site_login_required', { site: 'instagram' })
  const row = (reply: Reply, is: object, more: string[] = []): Row => ({
    source,
    replies: { [embed]: reply, [file]: mp4 },
    requested: [embed, ...more],
    is,
  })
  test.for<[string, Row]>([
    [
      'what the page for embedding gives away',
      row(
        html(`<script>init({"contextJSON":${escaped.replaceAll('/', '\\/').replaceAll('&', '\\\\u0026')}})</script>`),
        clipIs(null, { site: 'instagram', user: 'ada' }),
        [file],
      ),
    ],
    [
      'or says in its head',
      row(
        html(`<meta property="og:video" content="${file.replace('&', '&amp;')}">`),
        clipIs(null, { site: 'instagram' } as never),
        [file],
      ),
    ],
    ['a post without a video', row(html('<script>{"is_video":false}</script>'), failure('unsupported_site_content'))],
    ['nothing given away', row(html('<div class="EmbedBrokenMedia">'), login)],
    ['deleted', row(status(404), failed('instagram', '4xx', 'not_found'))],
    ['rate limited', row(status(429), failed('instagram', '4xx', 'rate_limited'))],
    ['refused', row(status(403), login)],
  ])('%s', ([, given]) => holds(plain, given))

  // All others wait while one page is read. This one took 13 s.
  test('a page of endless quotes is parsed in no time', async () => {
    const before = process.cpuUsage()
    await holds(plain, row(html(`"video_url":"a${'\\'.repeat(4_100)}b`.repeat(480)), login))
    // Processor time, which other load on the machine does not change.
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000)
  })

  test('the login page, to which every visitor is sent', () =>
    holds(plain, {
      source,
      replies: {
        [embed]: moved('https://www.instagram.com/accounts/login/?next=x'),
        'https://www.instagram.com/accounts/login/': html('<p>Log in'),
      },
      requested: [embed, 'https://www.instagram.com/accounts/login/?next=x'],
      is: login,
    }))
})

describe('sites that are never requested', () => {
  test.for<[string, object]>([
    ['https://www.facebook.com/watch?v=123', failure('site_login_required', { site: 'facebook' })],
    ['https://fb.watch/AbC_1/', failure('site_login_required', { site: 'facebook' })],
    ['https://gfycat.com/AbcDefGhi', failure('site_gone', { site: 'gfycat', ended: '2023-09-01' })],
    ['https://thumbs.gfycat.com/AbcDefGhi-mobile.mp4', failure('site_gone', { site: 'gfycat', ended: '2023-09-01' })],
    ['https://vine.co/v/hUgLw2Ydd5a', failure('site_gone', { site: 'vine', ended: '2017-01-17' })],
  ])('%s', ([source, is]) => holds(plain, { source, replies: {}, requested: [], is }))

  test('a site that the operator disabled', async () => {
    const service = await startTestService(
      { ...settings, MEDIA_IMPORT_SITES: 'imgur' },
      { extractPage: async () => expect.unreachable('yt-dlp is no way round it') },
    )
    const off = (site: string) => failure('unsupported_site_content', { site, reason: 'switched_off' })
    await holds(service, { source: 'https://giphy.com/gifs/AbCdEf123', replies: {}, requested: [], is: off('giphy') })
    const page = 'https://elsewhere.example/page'
    const replies = { [page]: html('<video src="/a.mp4">'), 'https://elsewhere.example/a.mp4': mp4 }
    await holds(service, { source: page, replies, requested: [page], is: off('other') })
    const file = 'https://elsewhere.example/a.mp4'
    await holds(service, { source: file, replies, requested: [file], is: clipIs(null, null as never) })
    await service.close()
  })
})

describe('fields of the caller', () => {
  const api = 'https://ajax.streamable.com/videos/abc123'
  const file = 'https://cdn.streamable.com/a.mp4'
  const answer = (title: string) =>
    far.answers({ [api]: json({ status: 2, title, files: { mp4: { url: file } } }), [file]: mp4 })
  const source = 'https://streamable.com/abc123'

  test('take precedence over those of the site', async () => {
    answer('Theirs')
    const mine = { title: 'Mine', attribution: { site: 'twitter', user: 'me' } }
    expect(await imported(plain, { source, ...mine })).toEqual({ ...mine, nsfw: false })
  })

  test('also when it says that a clip is safe', async () => {
    const page = 'https://elsewhere.example/page'
    const head = '<meta name="rating" content="RTA-5042-1996-1400-1577-RTA"><meta property="og:video" content="/a.mp4">'
    far.answers({ [page]: html(head), 'https://elsewhere.example/a.mp4': mp4 })
    expect(await imported(plain, { source: page })).toMatchObject({ nsfw: true })
    expect(await imported(plain, { source: page, nsfw: false })).toMatchObject({ nsfw: false })
    expect(await imported(plain, { source: page, nsfw: null })).toMatchObject({ nsfw: true })
  })

  test('a title of the site is cut, never refused, and cleaned like one of the caller', async () => {
    answer(`${'ä'.repeat(300)}`)
    expect(await imported(plain, { source })).toMatchObject({ title: `${'ä'.repeat(199)}…` })
    answer(' a\u0000\n\u202eb ')
    expect(await imported(plain, { source, title: ' ' })).toMatchObject({ title: 'a b' })
    answer('   ')
    expect(await imported(plain, { source })).toMatchObject({ title: null })
  })
})
