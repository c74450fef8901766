import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSemaphore } from '@services/common/concurrency/semaphore'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { clip, embeddedTools } from '../../../test/clips.ts'
import { listFiles } from '../../../test/service.ts'
import { type StreamSite, serveStreams } from '../../../test/upstreams/streams.ts'
import type { Config } from '../../config.ts'
import { busy } from '../../errors.ts'
import { openWorkDirectory } from '../../make/jobs/work-directory.ts'
import { probe } from '../../make/probe/probe.ts'
import { createRemote, type Remote } from '../remote/fetch-remote.ts'
import type { AssembleManifest } from '../sites/site.ts'
import { assembleManifest } from './assemble-manifest.ts'

let site: StreamSite
let root: string
let deps: Parameters<typeof assembleManifest>[0] & { work: Awaited<ReturnType<typeof openWorkDirectory>> }
const remotes: Remote[] = []

beforeAll(async () => {
  site = await serveStreams()
})
afterAll(() => site.close())
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'manifests-'))
  site.hits.length = 0
  deps = {
    // The metadata address and everything else of this machine stays forbidden.
    remote: createRemote({ allowCidrs: ['127.0.0.1/32'] }),
    work: await openWorkDirectory(root),
    tools: embeddedTools,
    probes: createSemaphore({ atOnce: 4, waiting: 10, waitMs: 600_000 }, busy),
    config: { source: { maxSeconds: 30, maxSourceSeconds: 600, maxBytes: 0, maxSide: 0 } } as Config,
  }
  remotes.push(deps.remote)
})
afterEach(async () => {
  for (const name of Object.keys(site.answers)) delete site.answers[name]
  await deps.remote.close()
  await deps.work.close()
  await rm(root, { recursive: true })
})

const say = (path: string, text: string) => {
  site.answers[path] = (_request, response) => response.end(text)
  return site.url + path
}
const never = new AbortController().signal
type Asked = Parameters<AssembleManifest>
const assembled = (
  source: Asked[0],
  { totalMs = 600_000, ...options }: Partial<Asked[1]> & { totalMs?: number } = {},
) => {
  const endsAt = performance.now() + totalMs
  return assembleManifest(deps, source, {
    path: join(root, 'clip'),
    maxBytes: 1_000_000,
    endsAt,
    key: 'one',
    signal: never,
    ...options,
  })
}
const assemble = async (...given: Parameters<typeof assembled>) => (await assembled(...given)).file
const hls = (url: string): Asked[0] => ({ kind: 'manifest', format: 'hls', url })
const dash = (url: string): Asked[0] => ({ kind: 'manifest', format: 'dash', url })
const playlist = (...lines: string[]) =>
  ['#EXTM3U', '#EXT-X-TARGETDURATION:1', ...lines, '#EXT-X-ENDLIST', ''].join('\n')
const mpd = (inside: string) => `<MPD type="static" mediaPresentationDuration="PT2S"><Period>${inside}</Period></MPD>`
const files = () => listFiles(root)

/** The build of 2018 gives the last frame of a fragmented mp4 no time. */
const ALL = expect.toSatisfy((frames: number) => frames === 20 || frames === 19)

describe('a good stream becomes one file with its picture and its sound', () => {
  const master = (sound: string) =>
    say(
      '/master.m3u8',
      `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="b",URI="${sound}"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\n/picture.m3u8/picture.m3u8\n`,
    )

  test.each([
    ['segments of MPEG-TS', 'hls', '/ts.m3u8/ts.m3u8'],
    ['one fragmented mp4 in byte ranges', 'hls', '/ranges.m3u8/ranges.m3u8'],
    ['a master with the sound apart', 'hls', '/master.m3u8'],
    ['DASH with a timeline', 'dash', '/timeline.mpd/timeline.mpd'],
    ['DASH with a template', 'dash', '/template.mpd/template.mpd'],
    ['DASH with a list of byte ranges', 'dash', '/list.mpd/list.mpd'],
  ] as const)('%s', async (_, kind, path) => {
    master('sound.m3u8/sound.m3u8')
    const file = await assemble({ kind: 'manifest', format: kind, url: site.url + path })
    expect(file).toMatchObject({ contentType: 'video/mp4', bytes: (await stat(join(root, 'clip'))).size })
    const info = await probe(embeddedTools, join(root, 'clip'))
    expect(info).toMatchObject({ type: 'mp4', width: 64, height: 48, frames: ALL, hasAudio: true })
    expect(info.durationSeconds).toBeGreaterThanOrEqual(1.9)
    expect(info.durationSeconds).toBeLessThan(2.1)
    expect(await files()).toEqual(['clip'])
  })

  test.each([
    ['segments of MPEG-TS', 'hls', '/ts.m3u8/ts.m3u8', 4],
    ['a master with the sound apart', 'hls', '/master.m3u8', 8],
    ['DASH with a timeline', 'dash', '/timeline.mpd/timeline.mpd', 7],
    ['DASH with a template', 'dash', '/template.mpd/template.mpd', 7],
  ] as const)('and of a part only the segments that overlap it are fetched: %s', async (_, kind, path, most) => {
    master('sound.m3u8/sound.m3u8')
    const edit = { start: 1.6, duration: 0.2 }
    const { missingSeconds } = await assembled({ kind: 'manifest', format: kind, url: site.url + path }, { edit })
    expect(missingSeconds).toBe(1)
    expect(site.hits.length).toBeLessThanOrEqual(most)
    const info = await probe(embeddedTools, join(root, 'clip'), { edit: { ...edit, missingSeconds: 1 } })
    expect(info).toMatchObject({ durationSeconds: 0.2, frames: 2, hasAudio: true })
    expect(info.edited).toMatchObject({ edit: { start: 1.6, duration: 0.2 }, cut: { skippedFrames: 6 } })
  })

  test('a part of a film costs three segments; one behind its end costs none', async () => {
    const lines = Array.from({ length: 50 }, (_, at) => [`#EXTINF:6,`, `/film-${at}`]).flat()
    const url = say('/film.m3u8', playlist(...lines))
    await expect(assemble(hls(url), { edit: { start: 200, duration: 6 } })).rejects.toMatchObject({
      code: 'source_fetch_failed',
    })
    expect(new Set(site.hits)).toEqual(new Set(['/film.m3u8', '/film-33', '/film-34']))
    site.hits.length = 0
    await expect(assemble(hls(url), { edit: { start: 300, duration: 6 } })).rejects.toMatchObject({
      code: 'edit_out_of_range',
    })
    await expect(assemble(hls(url))).rejects.toMatchObject({ code: 'duration_exceeded' })
    expect(site.hits).toEqual(['/film.m3u8', '/film.m3u8'])
  })

  test('the same stream twice is the same file', async () => {
    const first = await assemble(hls(`${site.url}/ts.m3u8/ts.m3u8`))
    await rm(join(root, 'clip'))
    expect(await assemble(hls(`${site.url}/ts.m3u8/ts.m3u8`))).toEqual(first)
  })

  test('byte ranges that touch are fetched at once, even from a server that knows no ranges', async () => {
    const { answers } = site
    const ranges = `${site.url}/ranges.m3u8/ranges.m3u8`
    const first = await assemble(hls(ranges))
    expect(site.hits).toHaveLength(2)
    await rm(join(root, 'clip'))
    const whole = Buffer.from(await (await fetch(`${site.url}/ranges.m3u8/ranges.m4s`)).arrayBuffer())
    answers['/ranges.m3u8/ranges.m4s'] = (_request, response) => response.end(Buffer.concat([whole, Buffer.alloc(9)]))
    expect(await assemble(hls(ranges))).toEqual(first)
  })

  test('DASH whose files have their index inside', async () => {
    const set = (type: string, file: string) =>
      `<AdaptationSet contentType="${type}"><Representation id="1" mimeType="${type}/mp4" bandwidth="1"><BaseURL>/list.mpd/${file}</BaseURL><SegmentBase indexRange="700-800"><Initialization range="0-699"/></SegmentBase></Representation></AdaptationSet>`
    const url = say('/base.mpd', mpd(set('video', 'list-stream0.mp4') + set('audio', 'list-stream1.mp4')))
    await assemble(dash(url))
    expect(await probe(embeddedTools, join(root, 'clip'))).toMatchObject({ frames: ALL, hasAudio: true })
  })

  test('two webms stay a webm', async () => {
    const set = (type: string) =>
      `<AdaptationSet><Representation id="1" mimeType="${type}/webm" bandwidth="1"><BaseURL>/${type === 'video' ? 'picture' : 'sound'}.webm/${type === 'video' ? 'picture' : 'sound'}.webm</BaseURL></Representation></AdaptationSet>`
    const url = say('/webm.mpd', mpd(set('video') + set('audio')))
    expect(await assemble(dash(url))).toMatchObject({ contentType: 'video/webm' })
    expect(await probe(embeddedTools, join(root, 'clip'))).toMatchObject({ type: 'webm', frames: ALL, hasAudio: true })
  })

  test('sound in bare AAC', async () => {
    say('/bare.m3u8', playlist('#EXTINF:2,', '/sound.aac/sound.aac'))
    const url = master('/bare.m3u8')
    await assemble(hls(url))
    expect(await probe(embeddedTools, join(root, 'clip'))).toMatchObject({ frames: ALL, hasAudio: true })
  })

  test('a picture and a sound that no manifest names together', async () => {
    const [picture, sound] = ['/list.mpd/list-stream0.mp4', '/list.mpd/list-stream1.mp4'].map((path) => site.url + path)
    await assemble({ kind: 'separate', picture: picture ?? '', sound: sound ?? '' })
    expect(await probe(embeddedTools, join(root, 'clip'))).toMatchObject({ frames: ALL, hasAudio: true })
  })

  test('of several variants the best one up to 1080p is fetched, and no other', async () => {
    const variant = (size: string, uri: string, codecs = 'avc1.64001f') =>
      `#EXT-X-STREAM-INF:BANDWIDTH=1000,RESOLUTION=${size},CODECS="${codecs}"\n${uri}\n`
    const url = say(
      '/variants.m3u8',
      `#EXTM3U\n${variant('3840x2160', 'no1')}${variant('640x360', 'no2')}${variant('1080x1920', '/ts.m3u8/ts.m3u8')}${variant('1920x1080', 'no3', 'dvh1.05')}`,
    )
    await assemble(hls(url))
    expect(site.hits.filter((path) => path.startsWith('/no'))).toEqual([])
  })

  test('headers for the site are sent with every request', async () => {
    const seen: (string | undefined)[] = []
    const body = playlist('#EXTINF:1,', '/piece.ts')
    for (const path of ['/list.m3u8', '/piece.ts']) {
      site.answers[path] = (request, response) => {
        seen.push(request.headers.referer)
        response.end(path === '/list.m3u8' ? body : '')
      }
    }
    const headers = { referer: 'https://site.example/' }
    await expect(assemble({ ...hls(`${site.url}/list.m3u8`), headers })).rejects.toThrow()
    expect(seen).toEqual([headers.referer, headers.referer])
  })
})

const second = (uri: string) => ['#EXTINF:1,', uri]
const forbidden = { code: 'source_forbidden' }
const unsupported = (reason: string) => ({ code: 'unsupported_site_content', details: { reason } })
const failed = (upstream: string) => ({ code: 'source_fetch_failed', details: { upstream } })

describe('refused before any segment is fetched', () => {
  test.each([
    ['31 seconds', playlist(...Array.from({ length: 31 }, () => second('/p')).flat()), { code: 'duration_exceeded' }],
    ['a variant that is itself', '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/m\n', unsupported('nested')],
    ['a piece that is a file', playlist(...second('/p'), ...second('file:///etc/passwd')), forbidden],
    ['a beginning that is a file', playlist('#EXT-X-MAP:URI="file:///p"', ...second('/p')), forbidden],
    ['a variant that is a file', '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfile:///p\n', forbidden],
    ['a piece of another site', playlist(...second('/p'), ...second('http://other.example/p')), forbidden],
    ['what is no address', playlist(...second('http://:::/')), forbidden],
    ['more than 1 MiB', `#EXTM3U\n${'#'.repeat(1024 ** 2)}`, unsupported('too_large')],
    [
      'what the parser works on without end',
      `#EXTM3U\n#EXT-X-STREAM-INF:${','.repeat(900_000)}`,
      unsupported('unreadable'),
    ],
  ])('%s', async (_, text, refusal) => {
    const url = say('/m', text)
    await expect(assemble(hls(url))).rejects.toMatchObject(refusal)
    expect(site.hits.filter((path) => path !== '/m')).toEqual([])
    expect(await files()).toEqual([])
  })
})

describe('a segment that goes wrong leaves nothing behind', () => {
  const redirect = (location: string) =>
    (site.answers['/p'] = (_request, response) => response.writeHead(302, { location }).end())

  test('it is missing', async () => {
    const url = say('/m', playlist(...second('/ts.m3u8/ts0.ts'), ...second('/p')))
    await expect(assemble(hls(url))).rejects.toMatchObject(failed('4xx'))
    expect(await files()).toEqual([])
  })

  test.each(['http://169.254.169.254/latest/', 'http://[::1]/', 'file:///etc/passwd'])(
    'it redirects to %s',
    async (location) => {
      redirect(location)
      const url = say('/m', playlist(...second('/p')))
      await expect(assemble(hls(url))).rejects.toMatchObject({ code: 'source_forbidden' })
      // Not even where the resolver allows it.
      const hosts = ['169.254.169.254', '[::1]']
      await expect(assemble(hls(url), { hosts: hosts })).rejects.toMatchObject({ code: 'source_forbidden' })
      expect(await files()).toEqual([])
    },
  )

  test('neither a segment nor a redirect touches a socket of this machine', async () => {
    const canary = createServer((socket) => socket.destroy()).listen(0, '127.0.0.2')
    onTestFinished(() => void canary.close())
    await once(canary, 'listening')
    let touched = 0
    canary.on('connection', () => touched++)
    const target = `http://127.0.0.2:${(canary.address() as { port: number }).port}/`
    redirect(target)
    const inside = say('/m', playlist(...second(target)))
    const behind = say('/m2', playlist(...second('/p')))
    for (const url of [inside, behind]) {
      for (const hosts of [undefined, ['127.0.0.2']]) {
        await expect(assemble(hls(url), { hosts: hosts })).rejects.toMatchObject({ code: 'source_forbidden' })
      }
    }
    expect(touched).toBe(0)
  })

  test('the pieces together exceed the limit, though each is below it', async () => {
    const url = `${site.url}/ts.m3u8/ts.m3u8`
    // The mp4 would not be: TS takes a quarter more.
    const maxBytes = 33_000
    await expect(assemble(hls(url), { maxBytes })).rejects.toMatchObject({ code: 'file_too_large' })
    expect(await files()).toEqual([])
  })

  test('it never ends', async () => {
    site.answers['/p'] = (_request, response) => {
      const write = () => response.write(Buffer.alloc(65_536))
      response.on('drain', write)
      while (write());
    }
    const url = say('/m', playlist(...second('/p')))
    await expect(assemble(hls(url))).rejects.toMatchObject({ code: 'file_too_large' })
    expect(await files()).toEqual([])
  })

  test('it hangs until the total time has passed', async () => {
    site.answers['/p'] = () => {}
    const url = say('/m', playlist(...second('/p')))
    await expect(assemble(hls(url), { totalMs: 1500 })).rejects.toMatchObject(failed('timeout'))
    expect(await files()).toEqual([])
  })

  test('the caller disconnects', async () => {
    const gone = new AbortController()
    site.answers['/p'] = () => gone.abort(new Error('gone'))
    const url = say('/m', playlist(...second('/p'), ...second('/ts.m3u8/ts0.ts')))
    await expect(assemble(hls(url), { signal: gone.signal })).rejects.toThrow('gone')
    expect(await files()).toEqual([])
  })

  test.each([
    ['text', 'hello', unsupported('unreadable')],
    ['nothing', '', unsupported('unreadable')],
    ['another playlist', playlist(...second('file:///etc/passwd')), unsupported('unreadable')],
    ['the beginning of an mp4 and then nonsense', '\0\0\0\x20ftypisom', { code: 'corrupt_media' }],
  ])('it is %s', async (_, text, refusal) => {
    say('/p', text)
    const url = say('/m', playlist(...second('/p')))
    await expect(assemble(hls(url))).rejects.toMatchObject(refusal)
    expect(await files()).toEqual([])
  })
})

test('a source whose playlist declares it short is measured by the probe', async () => {
  const { readFile } = await import('node:fs/promises')
  const long = await readFile(await clip('long.mp4'))
  site.answers['/p'] = (_request, response) => response.end(long)
  await assemble(hls(say('/m', playlist(...second('/p')))))
  await expect(probe(embeddedTools, join(root, 'clip'))).rejects.toMatchObject({ code: 'duration_exceeded' })
})
