// A file system that another program really fills at the worst moment: while a file is received, while ffmpeg writes,
// while its output is stored. No partial file stays, nothing acknowledged is lost, and free space is enough to recover.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { expect, test } from 'vitest'
import { clip } from '../test/clips.ts'
import { idIn, send } from '../test/service.ts'
import { eventually } from '../test/service-process.ts'
import { firstFiles, newFittingClip } from './fitting-clip.ts'
import { slowFfmpeg } from './slow-ffmpeg.ts'
import {
  expectNothingLost,
  importTo,
  isWorking,
  newClip,
  newTally,
  type Stage,
  TOKEN,
  tell,
  uploadTo,
} from './stage.ts'
import { openStageOnSmallDisk } from './stage-on-small-disk.ts'

const report = openFaultReport()
const MiB = 1024 ** 2

/** Makes a small clip a large file by a box without meaning. */
async function largeClip(megabytes: number): Promise<Buffer> {
  const box = Buffer.alloc(megabytes * MiB)
  box.writeUInt32BE(box.length)
  box.write('free', 4)
  box.write(randomUUID(), 8)
  return Buffer.concat([await readFile(await clip('small.mp4')), box])
}

const nothing = async () => {}

/** Streams the bytes, and runs the action when a fifth of them is on the service's disk. */
async function* interrupted(bytes: Buffer, stage: Stage, happen: () => Promise<void>) {
  const fifth = Math.floor(bytes.length / 5)
  yield bytes.subarray(0, fifth)
  await eventually(async () => (await stage.temporary()).length > 0, true)
  await happen()
  for (let at = fifth; at < bytes.length; at += fifth) yield bytes.subarray(at, at + fifth)
}

async function* formAround(file: AsyncIterable<Uint8Array>) {
  yield Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n')
  yield* file
  yield Buffer.from('\r\n--b--\r\n')
}

type Streamed = RequestInit & { duplex: 'half' }

async function upload(base: string, file: AsyncIterable<Uint8Array>) {
  const headers = { token: TOKEN, 'content-type': 'multipart/form-data; boundary=b' }
  const init: Streamed = { body: ReadableStream.from(formAround(file)) as never, headers, duplex: 'half' }
  return send('POST', `${base}/media/upload`, init)
}

async function importFrom(base: string, file: AsyncIterable<Uint8Array>) {
  const site = createServer((_request, response) => void pipeline(file, response).catch(() => {}))
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
  try {
    return await importTo(base, `http://127.0.0.1:${(site.address() as AddressInfo).port}/clip.mp4`)
  } finally {
    site.close()
  }
}

test.for([
  ['an upload', upload, {}],
  ['an upload, under the stored files alone,', upload, { elsewhere: 'work' }],
  ['an import', importFrom, {}],
] as const)(
  'a disk that fills during %s causes 503 and leaves no file; with free space requests succeed again',
  { timeout: 120_000 },
  async ([what, ask, place], context) => {
    const { disk, stage } = await openStageOnSmallDisk(context, place)
    const api = await stage.serve()
    const tally = newTally()
    const bytes = await largeClip(10)
    expect(await tell(tally, () => ask(api.url, interrupted(bytes, stage, disk.fill)))).toBe(503)
    expect(await stage.temporary()).toEqual([])
    // The service refuses a file that will not fit before its body is sent.
    expect(await tell(tally, () => uploadTo(api.url, newClip()))).toBe(503)
    await disk.makeRoom()
    expect(await tell(tally, () => uploadTo(api.url, newClip()))).toBe(201)
    expect(await tell(tally, () => ask(api.url, interrupted(bytes, stage, nothing)))).toBe(201)
    report(`disk full during ${what}`, await expectNothingLost(stage, api.url, tally))
  },
)

test('a disk that fills during a resumable upload keeps the received bytes, and the upload continues from there', async (context) => {
  const { disk, stage } = await openStageOnSmallDisk(context)
  const api = await stage.serve()
  const tally = newTally()
  const bytes = await largeClip(10)
  const headers = { token: TOKEN, 'tus-resumable': '1.0.0' }
  const begun = await send('POST', `${api.url}/tus`, { headers: { ...headers, 'upload-length': String(bytes.length) } })
  const address = api.url + new URL(begun.headers.get('location') as string).pathname
  const goOn = (offset: number, body: AsyncIterable<Uint8Array>) => {
    const piece = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) }
    const init: Streamed = {
      body: ReadableStream.from(body) as never,
      headers: { ...headers, ...piece },
      duplex: 'half',
    }
    return send('PATCH', address, init)
  }
  expect(await tell(tally, () => goOn(0, interrupted(bytes, stage, disk.fill)))).toBe(503)
  await disk.makeRoom()
  const { headers: state } = await send('HEAD', address, { headers })
  const offset = Number(state.get('upload-offset'))
  expect(offset).toBeGreaterThan(0)
  expect(offset).toBeLessThan(bytes.length)
  const ended = await goOn(
    offset,
    interrupted(bytes.subarray(offset), stage, async () => {}),
  )
  expect([ended.status, ended.headers.get('x-media-state')]).toEqual([204, 'ready'])
  tally.accepted.push(ended.headers.get('x-media-id') as string)
  report('disk full during a resumable upload', await expectNothingLost(stage, api.url, tally))
}, 120_000)

test.for([
  ['while ffmpeg writes', {}],
  ['under the stored files alone', { elsewhere: 'work' }],
] as const)(
  'a disk that fills %s delays an accepted clip until there is free space',
  { timeout: 120_000 },
  async ([what, place], context) => {
    const { disk, stage } = await openStageOnSmallDisk(context, place)
    const api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
    const worker = stage.startWorker({ MEDIA_FFMPEG_PATH: await slowFfmpeg() })
    await isWorking(worker)
    const tally = newTally()
    const later = { prefer: 'respond-async' }
    expect(await tell(tally, async () => uploadTo(api.url, await readFile(await clip('sound.mp4')), later))).toBe(201)
    // The copy of the source, and the files made from it.
    await eventually(async () => (await stage.temporary()).length > 1, true, 10_000)
    await disk.fill()
    await eventually(() => worker.output().includes('transcode postponed'), true, 20_000)
    await eventually(stage.temporary, [])
    expect(await stage.isStill()).toEqual({ sources: 1, jobs: 1 })
    expect(await tell(tally, () => uploadTo(api.url, newClip()))).toBe(503)
    await disk.makeRoom()
    expect(await tell(tally, () => uploadTo(api.url, newClip(), later))).toBe(201)
    report(`disk full ${what}`, await expectNothingLost(stage, api.url, tally))
  },
)

test('a disk that fills between the first files and the rest delays the rest, and changes nothing published', async (context) => {
  const { disk, stage } = await openStageOnSmallDisk(context)
  const api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
  const worker = stage.startWorker({ MEDIA_FFMPEG_PATH: await slowFfmpeg() })
  await isWorking(worker)
  const tally = newTally()
  const added = await uploadTo(api.url, await newFittingClip(5), { prefer: 'wait-for=mp4' })
  expect(await tell(tally, async () => added)).toBe(201)
  expect(added.headers.get('x-media-ready')).toBe('jpg, mp4')
  const before = await firstFiles(api.url, idIn(added))
  expect(before.map(({ status }) => status)).toEqual([200, 200])
  await disk.fill()
  await eventually(() => worker.output().includes('transcode postponed'), true)
  expect(await firstFiles(api.url, idIn(added))).toEqual(before)
  await eventually(stage.temporary, [])
  await disk.makeRoom()
  report('disk full between the first files and the rest', await expectNothingLost(stage, api.url, tally))
  expect(await firstFiles(api.url, idIn(added))).toEqual(before)
}, 180_000)
