import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { createFarServer } from '../packages/common/src/testing/http/far-server.ts'
import { makeClip } from './testing/clip.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'
import { upload } from './testing/upload.ts'

const { settings, mediaUrl } = inject('devServices')
const guide = openGuide('host-media-behind-a-cdn.md')
let shell: Shell
let cdn: Cdn

beforeAll(async () => {
  ;[shell, cdn] = await Promise.all([openShell(settings), startCdn()])
})
afterAll(async () => {
  await shell.close()
  cdn.server.close()
})

interface Cdn {
  server: Server
  url: string
}

/** Starts a minimal CDN: caches publicly cacheable answers by path. */
async function startCdn(): Promise<Cdn> {
  const kept = new Map<string, { headers: Record<string, string>; body: Buffer }>()
  const server = createFarServer(async (request, response) => {
    const path = String(request.url)
    const known = kept.get(path)
    if (known) return response.writeHead(200, { ...known.headers, 'x-cache': 'HIT' }).end(known.body)
    const answer = await fetch(mediaUrl + path)
    const entry = { headers: Object.fromEntries(answer.headers), body: Buffer.from(await answer.arrayBuffer()) }
    if (answer.status === 200 && entry.headers['cache-control']?.startsWith('public, max-age')) kept.set(path, entry)
    response.writeHead(answer.status, { ...entry.headers, 'x-cache': 'MISS' }).end(entry.body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('file addresses lead to the CDN, which requests each file once; with a bucket they lead to its CDN', async () => {
  await shell.write('cdn.env', guide.file('cdn.env', { 'https://files.example.com': cdn.url }))
  // The files are on a disk; media's own tests cover the differences of a bucket.
  const bucket = { 'https://cdn.example.com': `${cdn.url}/stored`, 'MEDIA_STORAGE=s3': 'MEDIA_STORAGE=disk' }
  await shell.write('s3.env', guide.file('s3.env', { ...bucket, '/var/lib/media': String(settings.MEDIA_WORK_DIR) }))
  const start = 'set -a; . ./cdn.env; . ./s3.env; exec npx -y pnpm@12 -C services/media start'
  const media = await shell.start(start).says(/listening at (http:[^"]+)"/)

  const { page, files } = await upload(await makeClip('cdn'), media)
  expect(page).toMatch(/^https:\/\/media\.example\.com\/gif\//)
  expect(files.mp4.startsWith(`${cdn.url}/f/`)).toBe(true)
  const id = /\/f\/(\w+)\.mp4$/.exec(files.mp4)?.[1] as string

  const look = `ID=${id}\n${guide.take('/f/$ID.mp4', { 'https://files.example.com': cdn.url })}`
  const [first, second] = [await shell.run(look), await shell.run(look)]
  for (const { stdout } of [first, second]) {
    expect(stdout).toMatch(/cache-control: public, max-age=31536000, immutable\r\n/)
    expect(stdout).toMatch(/etag: "[0-9a-f]{64}"\r\n/)
    expect(stdout).toMatch(/accept-ranges: bytes\r\n/)
  }
  expect([first, second].map(({ stdout }) => /x-cache: (\w+)/.exec(stdout)?.[1])).toEqual(['MISS', 'HIT'])

  const led = await shell.run(`ID=${id}\n${guide.take('%{http_code}', { 'https://media.example.com': media })}`)
  const [status, location] = led.stdout.trim().split(' ')
  expect(status).toBe('302')
  expect(location).toMatch(new RegExp(`^${cdn.url}/stored/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{64}\\.mp4$`))
  expect(guide.untaken()).toEqual([])
})
