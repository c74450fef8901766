// Load above capacity: 500 connections of a client that is almost idle, and uploads far above capacity. Other clients
// are served meanwhile, memory is bounded, every connection gets an answer or is closed, and the service recovers.
import { once } from 'node:events'
import { readFile, truncate, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterEach, expect, test } from 'vitest'
import { idIn, send } from '../test/service.ts'
import { eventually, readMemory, resetPeak } from '../test/service-process.ts'
import {
  expectNothingLost,
  newClip,
  newTally,
  openStage,
  type Stage,
  type Tally,
  TOKEN,
  tell,
  uploadTo,
} from './stage.ts'

const report = openFaultReport()
const MiB = 1024 ** 2

let stage: Stage
const sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await stage.end()
}, 30_000)

async function open(base: string, firstWords: string): Promise<Socket> {
  const socket = connect(Number(new URL(base).port), '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  sockets.push(socket)
  socket.write(firstWords)
  return socket
}

/** Opens a connection that keeps announcing more. */
async function openSlow(base: string, firstWords: string, more: string): Promise<Socket> {
  const socket = await open(base, firstWords)
  const timer = setInterval(() => socket.write(more), 2_000)
  socket.on('close', () => clearInterval(timer))
  return socket.resume()
}

/**
 * Client ports of the connections that the service still holds: a client that reads nothing would not notice a close.
 */
async function heldBy({ url }: { url: string }): Promise<Set<number>> {
  const [, ...lines] = (await readFile('/proc/net/tcp', 'utf8')).trim().split('\n')
  const portOf = (address = '') => Number.parseInt(address.split(':')[1] ?? '', 16)
  const connections = lines.map((line) => line.trim().split(/\s+/))
  // A closed socket has no inode any more, even with bytes left in its buffers.
  const ours = connections.filter(
    ([, local, , , , , , , , inode]) => portOf(local) === Number(new URL(url).port) && inode !== '0',
  )
  return new Set(ours.map(([, , remote]) => portOf(remote)))
}

/** More than the buffers of both ends of a connection hold. */
const LARGE = 48 * MiB

/** Enlarges one file of a clip until sending it needs a reader; `restore` undoes that. */
async function enlarge(id: string) {
  const [{ sha256, bytes }] = await stage.query(
    `select encode(r.sha256, 'hex') as sha256, r.bytes from renditions r join clips c using (source_id) where c.id = $1 and kind = 'mp4'`,
    [id],
  )
  const setBytes = (size: number) =>
    stage.query(`update renditions set bytes = $1 where encode(sha256, 'hex') = $2`, [size, sha256])
  const [name = ''] = (await stage.stored()).filter((path) => path.endsWith(`${sha256}.mp4`))
  const path = join(stage.blobsDir, name)
  const content = await readFile(path)
  await truncate(path, LARGE)
  await setBytes(LARGE)
  return async () => {
    await writeFile(path, content)
    await setBytes(Number(bytes))
  }
}

/** Reads and uploads, one request at a time, for this long. */
async function useService(base: string, tally: Tally, forMs: number) {
  const [first = ''] = tally.accepted
  let longest = 0
  const until = performance.now() + forMs
  while (performance.now() < until) {
    for (const path of ['/health/live', `/gif/${first}`, `/f/${first}.jpg`]) {
      const startedAt = performance.now()
      expect((await send('GET', base + path)).status).toBe(200)
      longest = Math.max(longest, performance.now() - startedAt)
    }
    expect(await tell(tally, () => uploadTo(base, newClip()))).toBe(201)
  }
  return longest
}

test('500 connections of a slow client block no other client, and are all closed', async () => {
  stage = await openStage({ MEDIA_PARALLEL_PER_TOKEN: '200' })
  const api = await stage.serve()
  const tally = newTally()
  await tell(tally, () => uploadTo(api.url, newClip()))
  const large = await uploadTo(api.url, newClip())
  const restore = await enlarge(idIn(large))
  await resetPeak(api.pid)
  const { now: before } = await readMemory(api.pid)

  const upload = `POST /media/upload HTTP/1.1\r\nHost: a\r\nToken: ${TOKEN}\r\nContent-Type: multipart/form-data; boundary=b\r\n`
  const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n'
  const kinds = {
    'silent from the start': () => open(api.url, ''),
    'slow headers': () => openSlow(api.url, 'GET / HTTP/1.1\r\nHost: a\r\n', 'x-more: 1\r\n'),
    'slow uploads': () => openSlow(api.url, `${upload}Content-Length: 1000000\r\n\r\n${file}`, 'x'),
    'readers of nothing': () => open(api.url, `GET /f/${idIn(large)}.mp4 HTTP/1.1\r\nHost: a\r\n\r\n`),
  }
  const openedAt = performance.now()
  const held = new Map<string, Socket[]>()
  for (const [kind, openOne] of Object.entries(kinds)) {
    held.set(kind, await Promise.all(Array.from({ length: 125 }, openOne)))
  }
  const ports = new Map([...held].map(([kind, some]) => [kind, some.map(({ localPort }) => localPort as number)]))
  const longest = await useService(api.url, tally, 5_000)
  expect(longest).toBeLessThan(2_000)

  const stillOpen = async () => {
    const open = await heldBy(api)
    return [...ports].map(([kind, some]) => `${some.filter((port) => open.has(port)).length} ${kind}`)
  }
  await eventually(
    stillOpen,
    Object.keys(kinds).map((kind) => `0 ${kind}`),
    60_000,
  )
  const seconds = Math.round((performance.now() - openedAt) / 1000)
  const { peak } = await readMemory(api.pid)
  await restore()
  report('500 slow connections', {
    ...(await expectNothingLost(stage, api.url, tally)),
    'others, longest, ms': Math.round(longest),
    'memory, MiB more': Math.round((peak - before) / MiB),
    'all let go of, s': seconds,
  })
  expect(peak - before).toBeLessThan(200 * MiB)
}, 120_000)

/** Tokens of different callers. */
async function newTokens(base: string, count: number): Promise<string[]> {
  const headers = { token: TOKEN, 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'crowd', scopes: ['write', 'read'] })
  const made = await Promise.all(Array.from({ length: count }, () => send('POST', `${base}/tokens`, { body, headers })))
  return made.map((answer) => answer.body.success.token)
}

test('400 concurrent uploads of five callers: accepted clips are made, the rest get Retry-After, and the service recovers', async () => {
  stage = await openStage({ MEDIA_QUEUE_LIMIT: '40', MEDIA_PARALLEL_PER_TOKEN: '40' })
  const api = await stage.serve()
  const tokens = await newTokens(api.url, 5)
  const tally = newTally()
  const alone = async () => {
    const startedAt = performance.now()
    expect(await tell(tally, () => uploadTo(api.url, newClip()))).toBe(201)
    return performance.now() - startedAt
  }
  await alone()
  const calm = await alone()
  await resetPeak(api.pid)
  const { now: before } = await readMemory(api.pid)
  const asks = Array.from({ length: 400 }, (_, n) => ({ clip: newClip(), token: tokens[n % 5] as string }))
  await Promise.all(asks.map(({ clip, token }) => tell(tally, () => uploadTo(api.url, clip, { token }))))
  const { peak } = await readMemory(api.pid)
  await eventually(stage.isStill, { sources: 0, jobs: 0 }, 60_000)
  const after = await alone()
  report('400 uploads at once', {
    ...(await expectNothingLost(stage, api.url, tally)),
    'memory, MiB more': Math.round((peak - before) / MiB),
    'one alone before, ms': Math.round(calm),
    'one alone after, ms': Math.round(after),
  })
  const { 429: ofShare = 0, 503: ofAll = 0, 201: taken = 0 } = tally.statuses
  expect(tally.statuses[0]).toBeUndefined()
  expect(ofShare + ofAll).toBeGreaterThan(200)
  expect(taken).toBeGreaterThan(20)
  expect(peak - before).toBeLessThan(256 * MiB)
  expect(after).toBeLessThan(Math.max(5 * calm, 2_000))
}, 120_000)
