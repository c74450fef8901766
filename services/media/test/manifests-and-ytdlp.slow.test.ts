import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkYtdlp } from '../src/ingest/ytdlp/check-ytdlp.ts'
import { clip, embeddedTools } from './clips.ts'
import { idIn, startTestService, type TestService } from './service.ts'
import { installFakeYtdlp, pageThat } from './upstreams/fake-ytdlp.ts'
import { bytes, html, moved, type Replies, startFarSide } from './upstreams/far-side.ts'
import { type StreamName, serveStreams, stream } from './upstreams/streams.ts'

const far = await startFarSide(['elsewhere.example', 'cdn.elsewhere.example', 'www.facebook.com', 'video.fbcdn.net'])
const program = await installFakeYtdlp()
const streams = await serveStreams()
let service: TestService
let plain: TestService
beforeAll(async () => {
  ;[service, plain] = await Promise.all([
    startTestService({ ...far.settings, MEDIA_YTDLP_PATH: program.path }),
    startTestService(far.settings),
  ])
})
afterAll(async () => {
  far.close()
  streams.close()
  await Promise.all([service.close(), plain.close(), program.remove()])
})

const CDN = 'https://cdn.elsewhere.example'
const PAGE = 'https://elsewhere.example/page'
/** All files of a stream, at the CDN. Answers without ranges, as some do. */
async function files(name: StreamName): Promise<Replies> {
  const directory = await stream(name)
  const read = async (file: string) => [`${CDN}/${file}`, bytes(await readFile(join(directory, file)))] as const
  return Object.fromEntries(await Promise.all((await readdir(directory)).map(read)))
}
const showing = (url: string, type: string): Replies => ({
  [PAGE]: html(
    `<meta property="og:video" content="${url}"><meta property="og:video:type" content="${type}"><title>A page</title>`,
  ),
})
const refusal = (status: number, code: string, details: object = {}) => ({
  status,
  error: expect.objectContaining({
    code,
    ...(Object.keys(details).length ? { details: expect.objectContaining(details) } : {}),
  }),
})
const importing = async (by: TestService, source: string) => {
  const { status, body } = await by.importFrom({ source })
  return { status, error: body.error }
}
const traceless = async (by: TestService) => (await by.traces()).files.filter((path) => path.startsWith('work/'))

describe('a page that shows a manifest becomes a clip of four files', () => {
  test.each([
    ['HLS', 'ts.m3u8', `${CDN}/ts.m3u8`, 'application/x-mpegURL'],
    ['DASH with the sound apart', 'timeline.mpd', `${CDN}/timeline.mpd`, 'application/dash+xml'],
  ] as const)('%s', async (_, name, url, type) => {
    far.answers({ ...(await files(name)), ...showing(url, type) })
    const answer = await plain.importFrom({ source: PAGE })
    expect(answer.status).toBe(201)
    const { files: made, meta } = answer.body.success
    for (const address of Object.values<string>(made)) expect((await plain.get(address)).status).toBe(200)
    expect(meta).toMatchObject({ width: '64', height: '48' })
    const { title, has_audio } = (await plain.get(`/media/${idIn(answer)}`, { token: plain.token })).body.success
    expect(title).toBe('A page')
    if (has_audio !== undefined) expect(has_audio).toBe(true)
    expect(await traceless(plain)).toEqual([])
  })

  test('not one that leads elsewhere', async () => {
    const text = '#EXTM3U\n#EXTINF:1,\nhttp://169.254.169.254/latest/\n#EXT-X-ENDLIST\n'
    far.answers({ ...showing(`${CDN}/m.m3u8`, 'application/x-mpegURL'), [`${CDN}/m.m3u8`]: bytes(Buffer.from(text)) })
    expect(await importing(plain, PAGE)).toEqual(refusal(403, 'source_forbidden'))
    far.answers({ [`${CDN}/m.m3u8`]: bytes(Buffer.from(text)), [PAGE]: moved(`${CDN}/m.m3u8`) })
    expect(await importing(plain, PAGE)).toEqual(refusal(403, 'source_forbidden'))
    expect(await traceless(plain)).toEqual([])
  })
})

describe('yt-dlp', () => {
  const empty = (...pages: string[]): Replies => Object.fromEntries(pages.map((page) => [page, html('<p>nothing')]))
  const says = (answer: unknown) => pageThat('says', { answer: JSON.stringify(answer) })
  const mp4 = { protocol: 'https', url: `${CDN}/v.mp4`, title: 'From yt-dlp', duration: 2 }

  test('is used for a page without a clip, and our fetcher gets the file that it names', async () => {
    const page = says({ ...mp4, uploader: 'Ada' })
    far.answers({ ...empty(page), [mp4.url]: bytes(await readFile(await clip('plain.mp4'))) })
    const answer = await service.importFrom({ source: page })
    expect(answer.status).toBe(201)
    const { title, attribution } = (await service.get(`/media/${idIn(answer)}`, { token: service.token })).body.success
    expect(title).toBe('From yt-dlp')
    expect(attribution).toMatchObject({ user: 'Ada' })
    expect(far.requested()).toEqual([page, mp4.url])
    expect(await traceless(service)).toEqual([])
  })

  test('names a manifest, which we assemble', async () => {
    const page = says({ protocol: 'm3u8_native', url: `${CDN}/ts.m3u8` })
    far.answers({ ...empty(page), ...(await files('ts.m3u8')) })
    expect(await service.importFrom({ source: page })).toMatchObject({ status: 201 })
  })

  test('names a picture and a sound, which we join', async () => {
    const [picture, sound] = ['list-stream0.mp4', 'list-stream1.mp4'].map((name) => ({
      protocol: 'https',
      url: `${CDN}/${name}`,
    }))
    const page = says({ requested_formats: [picture, sound] })
    far.answers({ ...empty(page), ...(await files('list.mpd')) })
    expect(await service.importFrom({ source: page })).toMatchObject({ status: 201 })
  })

  const site = 'elsewhere.example'
  test.each([
    [
      'a page for members',
      pageThat('fails', { words: 'use --cookies to log in' }),
      refusal(422, 'site_login_required', { site }),
    ],
    [
      'a page it does not know',
      pageThat('fails', { words: 'Unsupported URL' }),
      refusal(422, 'unsupported_site_content', { site }),
    ],
    [
      'a page that is not there',
      pageThat('fails', { words: 'HTTP Error 404' }),
      refusal(424, 'source_fetch_failed', { upstream: '4xx' }),
    ],
    ['a film', says({ ...mp4, duration: 3600 }), refusal(422, 'duration_exceeded')],
    ['something live', says({ ...mp4, is_live: true }), refusal(422, 'unsupported_site_content')],
    ['nothing that passed the filter', says(null), refusal(422, 'unsupported_site_content')],
    [
      'garbage',
      pageThat('says', { answer: 'Traceback: {' }),
      refusal(424, 'source_fetch_failed', { upstream: 'bad_response' }),
    ],
    ['a crash', pageThat('dies', { of: 'itself' }), refusal(424, 'source_fetch_failed', { upstream: 'bad_response' })],
    ['a file that is too large', says({ ...mp4, filesize: 200_000_000 }), refusal(413, 'file_too_large')],
    ['an address of ours', says({ ...mp4, url: 'http://169.254.169.254/latest/' }), refusal(403, 'source_forbidden')],
    ['a file of the disk', says({ ...mp4, url: 'file:///etc/passwd' }), refusal(403, 'source_forbidden')],
  ])('finds %s', async (_, page, expected) => {
    far.answers(empty(page))
    expect(await importing(service, page)).toEqual(expected)
    expect(await traceless(service)).toEqual([])
  })

  test('is left to others by a token whose pages keep it waiting', async () => {
    const { token } = await service.newToken()
    const leave = new AbortController()
    const [page, hanging] = [says(mp4), pageThat('hangs', { seconds: '30' })]
    far.answers({ ...empty(page, hanging), [mp4.url]: bytes(await readFile(await clip('plain.mp4'))) })
    const slow = Array.from({ length: 3 }, () =>
      fetch(`${service.url}/media/import`, {
        method: 'POST',
        body: JSON.stringify({ source: hanging }),
        headers: { token: service.token, 'content-type': 'application/json' },
        signal: leave.signal,
      }).catch(() => undefined),
    )
    await expect.poll(() => far.requested(), { interval: 20 }).toEqual([hanging, hanging, hanging])
    expect((await service.importFrom({ source: page }, { token })).status).toBe(201)
    leave.abort()
    await Promise.all(slow)
  })

  test('is not asked where there is none', async () => {
    const page = says(mp4)
    far.answers(empty(page))
    expect(await importing(plain, page)).toEqual(refusal(422, 'unsupported_site_content'))
    expect(await importing(plain, 'https://www.facebook.com/reel/1')).toEqual(refusal(422, 'site_login_required'))
  })

  test('is checked at start: its version, and whether it is too old', async () => {
    const logged: unknown[] = []
    const log = (level: string) => (facts: object, text: string) => logged.push([level, facts, text])
    const logger = { info: log('info'), warn: log('warn'), error: log('error') } as never
    const look = async (path: string) =>
      checkYtdlp(path, {
        ...{ limiters: embeddedTools.limiters, log: logger, signal: new AbortController().signal },
        now: new Date('2026-11-21'),
      })
    const [old, broken] = await Promise.all([
      installFakeYtdlp({ version: '2026.05.01' }),
      installFakeYtdlp({ version: 'unknown' }),
    ])
    for (const path of [program.path, old.path, broken.path]) await look(path)
    expect(logged).toMatchObject([
      ['info', { version: '2026.11.01', days: 20 }, 'yt-dlp found'],
      ['warn', { version: '2026.05.01', days: 204 }, expect.stringContaining('180 days')],
      ['error', {}, expect.any(String)],
    ])
    await Promise.all([old, broken].map(({ directory }) => rm(directory, { recursive: true })))
  })

  test('that cannot be run is reported at the start', async () => {
    await expect(startTestService({ MEDIA_YTDLP_PATH: '/nowhere/yt-dlp' })).rejects.toThrow('/nowhere/yt-dlp')
  })
})
