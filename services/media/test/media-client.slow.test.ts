import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { launchBrowser } from '@services/common/testing/http/browser'
import { createFarServer } from '@services/common/testing/http/far-server'
import { typedClient } from '@services/common/testing/http/typed-client'
import { expect, onTestFinished } from 'vitest'
import { createMediaClient } from '../../../packages/media-client/src/media-client.ts'
import { clip } from './clips.ts'
import { startTestService, test } from './service.ts'

const PACKAGE = join(import.meta.dirname, '../../../packages/media-client')
const TSC = join(import.meta.dirname, '../../../node_modules/typescript/bin/tsc')

/** Types of the client beside those of the document. */
const PROGRAM = `
import type { components, paths } from './api.js'

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
type Document = components['schemas']
type Body<Path extends '/media/upload' | '/media/import', Type extends string> =
  NonNullable<paths[Path]['post']['requestBody']>['content'] extends infer Content
    ? Type extends keyof Content ? keyof Content[Type] : never
    : never

const inClip: Clip = {} as Document['Clip']
const ofClip: Document['Clip'] = {} as Clip
const inResult: Result = {} as Document['Result']
const ofResult: Document['Result'] = {} as Result
const upload: Same<Exclude<keyof ClipFields, 'attribution'>, Exclude<Body<'/media/upload', 'multipart/form-data'>, 'file' | \`attribution_\${string}\`>> = true
const imported: Same<keyof ClipFields, Exclude<Body<'/media/import', 'application/json'>, 'source'>> = true
const filter: Same<keyof ListFilter, Exclude<keyof NonNullable<paths['/media']['get']['parameters']['query']>, 'limit' | 'cursor'>> = true
const texts: Same<keyof ClipChanges, keyof NonNullable<paths['/media/{id}']['patch']['requestBody']>['content']['application/json']> = true

export const run = async () => [inClip, ofClip, inResult, ofResult, upload, imported, filter, texts].length
`

test('its types are those of the document: clip, result, fields, filters and changes', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  const shapes = await readFile(join(PACKAGE, 'src/shapes.ts'), 'utf8')
  await typedClient(body, PROGRAM + shapes)
})

interface Connection {
  isOpen: boolean
  cut(): void
}

/** A proxy that cuts connections: `watch` sees each chunk before it is forwarded, upwards or downwards. */
async function startProxy(target: string, watch: (way: 'up' | 'down', text: Buffer, connection: Connection) => void) {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const server = createTcpServer((down) => {
    const up = connect(Number(port), hostname)
    const connection: Connection = { isOpen: true, cut: () => cut() }
    const cut = () => {
      connection.isOpen = false
      down.destroy()
      up.destroy()
    }
    for (const socket of [down, up]) {
      sockets.add(socket)
      socket.on('error', cut).on('close', cut)
    }
    const forward = (way: 'up' | 'down', from: Socket, to: Socket) =>
      from.on('data', (chunk: Buffer) => {
        watch(way, chunk, connection)
        if (!to.destroyed && !to.write(chunk)) {
          from.pause()
          to.once('drain', () => from.resume())
        }
      })
    forward('up', down, up)
    forward('down', up, down)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A clip made longer by bytes that its format ignores. */
async function longFile(bytes: number): Promise<Blob> {
  const box = Buffer.alloc(bytes)
  box.writeUInt32BE(bytes)
  box.write('free', 4)
  return new Blob([await readFile(await clip('plain.mp4')), box])
}

test('a connection that breaks three times resumes an upload, and sends hardly a byte twice', async ({ service }) => {
  const cuts = [1_000_000, 5_000_000, 9_000_000]
  let forwarded = 0
  const baseUrl = await startProxy(service.url, (way, { length }, { cut }) => {
    if (way === 'up') forwarded += length
    if (forwarded < (cuts[0] ?? Number.POSITIVE_INFINITY)) return
    cuts.shift()
    cut()
  })
  const client = createMediaClient({ baseUrl, token: service.token })
  const file = await longFile(10_000_000)
  const loaded: number[] = []
  const added = await client.upload(file, { resumable: true, onProgress: (progress) => loaded.push(progress.loaded) })
  expect(cuts).toEqual([])
  expect(added.state).toBe('ready')
  expect((await client.get(added.id)).source.bytes).toBe(file.size)
  expect(loaded.at(-1)).toBe(file.size)
  // Bytes in the buffers of a broken connection are lost.
  expect(forwarded).toBeLessThan(file.size * 1.6)
})

test.for([false, true])(
  'an upload whose answer is lost adds one clip (in pieces: %s)',
  async (resumable, { service }) => {
    const before = await service.countRows()
    let isLost = false
    const baseUrl = await startProxy(service.url, (way, chunk, { cut }) => {
      if (isLost || way === 'up' || !chunk.includes('x-media-state')) return
      isLost = true
      cut()
    })
    const client = createMediaClient({ baseUrl, token: service.token })
    const added = await client.upload(await longFile(resumable ? 2_000 : 1_000), { resumable })
    expect(isLost).toBe(true)
    expect(added).toMatchObject({ state: 'ready', isReplay: !resumable })
    expect((await service.countRows()).clips).toBe(before.clips + 1)
    expect((await client.get(added.id)).state).toBe('ready')
  },
)

test('an upload in pieces that loses its connection while the clip is made waits for the files', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  onTestFinished(() => service.close())
  let piece: Connection | undefined
  let isReported = false
  const baseUrl = await startProxy(service.url, (way, chunk, connection) => {
    if (way === 'up' && chunk.includes('PATCH /tus/')) piece = connection
    if (way === 'down' && chunk.includes('x-media-state: processing')) isReported = true
  })
  const upload = createMediaClient({ baseUrl, token: service.token }).upload(await longFile(5_000), { resumable: true })
  await expect.poll(async () => (await service.countRows()).clips).toBe(1)
  piece?.cut()
  await expect.poll(() => isReported).toBe(true)
  await service.startWorker()
  expect(await upload).toMatchObject({ state: 'ready', isReplay: false })
  expect((await service.countRows()).clips).toBe(1)
})

test('an abort ends an upload with its reason, and leaves nothing behind', async ({ service }) => {
  const before = await service.countRows()
  const client = createMediaClient({ baseUrl: service.url, token: service.token })
  for (const resumable of [true, false]) {
    const abort = new AbortController()
    const reason = new Error('left')
    const upload = client.upload(await longFile(20_000_000), {
      resumable,
      signal: abort.signal,
      onProgress: ({ loaded }) => loaded > 1_000_000 && abort.abort(reason),
    })
    await expect(upload).rejects.toBe(reason)
  }
  await expect.poll(async () => (await service.listFiles()).filter((path) => path.startsWith('work/'))).toEqual([])
  expect(await service.countRows()).toEqual(before)
})

test('a watch survives broken connections, yields each change once and ends with the last', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  onTestFinished(() => service.close())
  const direct = createMediaClient({ baseUrl: service.url, token: service.token })
  const { id } = await direct.upload(await longFile(3_000), { wait: 'none' })
  const lastIds: string[] = []
  let streams = 0
  const baseUrl = await startProxy(service.url, (way, chunk, { cut }) => {
    const [, lastId] = /^last-event-id: (.*?)\r$/im.exec(way === 'up' ? chunk.toString() : '') ?? []
    if (lastId) lastIds.push(lastId)
    if (way === 'down' && chunk.includes('event: processing') && streams++ === 0) setImmediate(cut)
  })
  const seen: string[] = []
  for await (const event of createMediaClient({ baseUrl, token: service.token }).watch(id)) {
    seen.push(event.type)
    if (seen.length === 1) {
      await expect.poll(() => streams).toBe(1)
      await service.startWorker()
    }
  }
  expect(seen[0]).toBe('processing')
  expect(seen.at(-1)).toBe('ready')
  expect(seen.filter((type) => type === 'ready')).toHaveLength(1)
  const again: string[] = []
  for await (const { type } of direct.watch(id)) again.push(type)
  expect(again).toEqual(['ready'])
  await expect(direct.watch('none1234').next()).rejects.toMatchObject({ code: 'not_found' })
})

test('a watch that is aborted or left closes its connection', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  onTestFinished(() => service.close())
  const streams = new Set<Connection>()
  const baseUrl = await startProxy(service.url, (way, chunk, connection) => {
    if (way === 'up' && chunk.includes('/events')) streams.add(connection)
  })
  const client = createMediaClient({ baseUrl, token: service.token })
  const { id } = await client.upload(await longFile(4_000), { wait: 'none' })
  for await (const { type } of client.watch(id)) {
    expect(type).toBe('processing')
    break
  }
  const abort = new AbortController()
  const reason = new Error('left')
  const watch = client.watch(id, { signal: abort.signal })
  await watch.next()
  const next = watch.next()
  abort.abort(reason)
  await expect(next).rejects.toBe(reason)
  await expect.poll(() => [...streams].map(({ isOpen }) => isOpen)).toEqual([false, false])
})

/** Builds the package as it is published; returns its folder. */
async function build(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'media-client-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const folder = join(root, 'node_modules/@services/media-client')
  await mkdir(folder, { recursive: true })
  const { publishConfig, ...rest } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ ...rest, ...publishConfig }))
  const args = [TSC, '-p', join(PACKAGE, 'tsconfig.build.json'), '--outDir', join(folder, 'dist')]
  await promisify(execFile)(process.execPath, args)
  return root
}

test('the published package works in plain JavaScript, and so do the examples of its README', async ({ service }) => {
  const root = await build()
  const { token } = await service.newToken()
  const far = createFarServer(async (_request, response) => response.end(await readFile(await clip('plain.gif'))))
  far.listen(0, '127.0.0.1')
  await once(far, 'listening')
  onTestFinished(() => void far.close())
  const values = {
    'https://media.example.com': service.url,
    'https://example.com/cat.gif': `http://127.0.0.1:${(far.address() as AddressInfo).port}/cat.gif`,
    'cat.mp4': await clip('plain.mp4'),
  }
  const readme = await readFile(join(PACKAGE, 'README.md'), 'utf8')
  const outputs: string[] = []
  for (const [index, [, block = '']] of [...readme.matchAll(/^```js\n(.*?)^```$/gms)].entries()) {
    const path = join(root, `${index}.mjs`)
    await writeFile(
      path,
      Object.entries(values).reduce((text, [from, to]) => text.replaceAll(from, to), block),
    )
    const env = { ...process.env, MEDIA_TOKEN: token }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [path], { env })
    outputs.push(stdout + stderr)
  }
  const [uploaded, followed, listed] = outputs
  expect(uploaded).toMatch(/^100 %\nhttps:\/\/media\.example\/gif\/\w+ https:\/\/files\.example\/f\/\w+\.gif\n$/m)
  expect(followed).toMatch(/^ready\n$/m)
  expect(listed).toMatch(/^\w+ A cat jumps\n$/)
  const client = createMediaClient({ baseUrl: service.url, token })
  const titles: (string | null)[] = []
  for await (const { title } of client.list()) titles.push(title)
  expect(titles).toEqual([null])
})

test('a page of another origin uploads with progress, in a form and in pieces, watches and lists', {
  tags: 'chromium',
}, async ({ service }) => {
  const dist = join(await build(), 'node_modules/@services/media-client/dist')
  const site = createFarServer(async ({ url = '/' }, response) => {
    if (url === '/') return response.setHeader('content-type', 'text/html').end('<!doctype html>')
    const text = await readFile(join(dist, url), 'utf8').catch(() => undefined)
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'text/javascript' }).end(text)
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  const browser = await launchBrowser()
  onTestFinished(async () => {
    await browser.close()
    site.close()
  })
  const page = await browser.newPage()
  await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`)
  const bytes = (await readFile(await clip('plain.gif'))).toString('base64')
  const done = await page.evaluate(`(async () => {
    const { createMediaClient, MediaError } = await import('/media-client.js')
    const client = createMediaClient({ baseUrl: '${service.url}', token: '${service.token}' })
    const bytes = Uint8Array.from(atob('${bytes}'), (char) => char.charCodeAt(0))
    const done = []
    for (const resumable of [false, true]) {
      const loaded = []
      const file = new File([bytes], 'a.gif', { type: 'image/gif' })
      const onProgress = (progress) => loaded.push(progress.loaded)
      const { id, state } = await client.upload(file, { resumable, onProgress, fields: { title: 'From a page' } })
      const events = []
      for await (const { type } of client.watch(id)) events.push(type)
      done.push([state, loaded.length > 0 && loaded.at(-1) === file.size, events])
    }
    const titles = []
    for await (const { title } of client.list({ pageSize: 1 })) titles.push(title)
    const code = await client.get('none1234').catch((error) => error instanceof MediaError && error.code)
    const abort = new AbortController()
    const upload = client.upload(bytes, { signal: abort.signal, onProgress() {} }).catch((reason) => reason)
    abort.abort('left')
    return { done, listed: titles.filter((title) => title === 'From a page').length, code, left: await upload }
  })()`)
  expect(done).toEqual({
    done: [
      ['ready', true, ['ready']],
      ['ready', true, ['ready']],
    ],
    listed: 2,
    code: 'not_found',
    left: 'left',
  })
})
