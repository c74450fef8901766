import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { createLogger } from '@services/common/telemetry/logger'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { S3_KEY, startS3Server } from '../../../test/upstreams/s3-server.ts'
import { type BlobName, type BlobStorage, blobKey, parseBlobKey, SMALL_PART, type StoredBlob } from './blob-storage.ts'
import { createDiskBlobs } from './disk-blobs.ts'
import { openS3Blobs } from './s3-blobs.ts'

const sha256 = 'ab12'.repeat(16)

describe('keys', () => {
  test('are sharded by the hash, and read back', () => {
    const name = { sha256, extension: 'mp4' }
    expect(blobKey(name)).toBe(`ab/12/${sha256}.mp4`)
    expect(parseBlobKey(blobKey(name))).toEqual(name)
  })

  test.each([`cd/12/${sha256}.mp4`, `ab/12/${sha256}`, `x/ab/12/${sha256}.mp4`, `ab/12/${sha256}.mp4.part`, ''])(
    '%s is none',
    (key) => expect(parseBlobKey(key)).toBeUndefined(),
  )
})

/** One of the drivers, with a view of the disk or bucket behind it. */
interface Place {
  blobs: BlobStorage
  /** Leaves something there that is not one of ours. */
  leaveOther(key: string): Promise<void>
  /** Stores other bytes under the name. */
  damage(name: BlobName, content: string): Promise<void>
  /** Leaves an unfinished put of a process that was killed so long ago. */
  leaveUnfinished(minutesAgo: number): Promise<void>
  countUnfinished(): Promise<number>
  /** No driver may write it again. */
  identityOf(name: BlobName): Promise<unknown>
}

/** One moment for all, however long a test takes. */
const now = Date.now()
const minutesAgo = (minutes: number) => now / 1000 - 60 * minutes

async function onDisk(directory: string): Promise<Place> {
  const root = join(directory, 'blobs')
  const incoming = join(root, 'incoming')
  return {
    blobs: await createDiskBlobs(root),
    leaveOther: async (key) => {
      await mkdir(join(root, key, '..'), { recursive: true })
      await writeFile(join(root, key), 'x')
    },
    damage: (name, content) => writeFile(join(root, blobKey(name)), content),
    leaveUnfinished: async (minutes) => {
      const path = join(incoming, String(minutes))
      await writeFile(path, 'x')
      await utimes(path, minutesAgo(minutes), minutesAgo(minutes))
    },
    countUnfinished: async () => (await readdir(incoming)).length,
    identityOf: async (name) => (await stat(join(root, blobKey(name)))).ino,
  }
}

let server: Awaited<ReturnType<typeof startS3Server>>
beforeAll(async () => {
  server = await startS3Server()
})
afterAll(() => server.close())

const { CreateMultipartUploadCommand, PutObjectCommand, S3Client } = await import('@aws-sdk/client-s3')
let folder = 0
/** Longer than any real answer takes; the test's clock advances for answers that never come. */
const ANSWER_MS = 60_000

async function inBucket(): Promise<Place> {
  // A folder for each test: the server is started once.
  const prefix = `folder-${++folder}/`
  const { endpoint, bucket } = server
  const settings = { endpoint, bucket, prefix, region: 'us-east-1', forcePathStyle: true }
  const client = new S3Client({ ...settings, credentials: S3_KEY, requestChecksumCalculation: 'WHEN_REQUIRED' })
  const putRaw = (key: string, content: string) =>
    client.send(new PutObjectCommand({ Bucket: bucket, Key: prefix + key, Body: content }))
  const timeLimits = { storageAnswerMs: ANSWER_MS, storageStartMs: 0 }
  return {
    blobs: await openS3Blobs({ ...settings, ...S3_KEY }, timeLimits, createLogger({ name: 'test', level: 'fatal' })),
    leaveOther: async (key) => void (await putRaw(key, 'x')),
    damage: async (name, content) => void (await putRaw(blobKey(name), content)),
    leaveUnfinished: async (minutes) => {
      const before = await server.unfinished()
      const key = `${prefix}${blobKey({ sha256, extension: 'mp4' })}`
      for (const each of [key, `${prefix}other/${sha256}`]) {
        await client.send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: each }))
      }
      for (const path of await server.unfinished()) {
        if (!before.includes(path)) await utimes(path, minutesAgo(minutes), minutesAgo(minutes))
      }
    },
    // The bucket also holds an unfinished upload of another application for each of ours.
    countUnfinished: async () => {
      const keys = (await server.unfinished()).map((path) => readFile(join(path, 'key'), 'utf8'))
      const ours = (await Promise.all(keys)).filter((key) => key.startsWith(prefix))
      const others = ours.filter((key) => key.includes('/other/')).length
      expect(others).toBeGreaterThanOrEqual(ours.length - others)
      return ours.length - others
    },
    identityOf: async () => server.requests.filter((request) => request.startsWith(`PUT /${bucket}/${prefix}`)).length,
  }
}

describe.each([
  { driver: 'disk', open: onDisk },
  { driver: 'S3', open: inBucket },
])('$driver', ({ open }) => {
  let dir: string
  let place: Place
  let blobs: BlobStorage
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'blobs-'))
    place = await open(dir)
    blobs = place.blobs
  })
  afterEach(async () => {
    await blobs.close()
    await rm(dir, { recursive: true })
  })

  const file = async (content: string | Buffer) => {
    const path = join(dir, 'source')
    await writeFile(path, content, { mode: 0o600 })
    return path
  }
  const put = async (content: string | Buffer) => {
    await blobs.put(nameOf(content), await file(content))
    return nameOf(content)
  }
  /** Two parts of an upload. */
  const large = Buffer.alloc(9_000_000, 'clips and clips')
  const opened = async (name: BlobName) => {
    const stream = await blobs.open(name)
    if (!stream) throw new Error('missing')
    return stream
  }

  test.each([
    { sha256: '../../../../etc/passwd', extension: 'gif' },
    { sha256: `../${sha256.slice(3)}`, extension: 'gif' },
    { sha256: sha256.toUpperCase(), extension: 'gif' },
    { sha256: sha256.slice(1), extension: 'gif' },
    { sha256: `${sha256}\n`, extension: 'gif' },
    { sha256: '', extension: 'gif' },
    { sha256, extension: '../../x' },
    { sha256, extension: '/etc/passwd' },
    { sha256, extension: 'gif/..' },
    { sha256, extension: 'gif\0' },
    { sha256, extension: 'a.b' },
    { sha256, extension: '' },
  ])('a name cannot point elsewhere: $sha256 . $extension', async (name) => {
    const source = await file('x')
    expect(() => blobKey(name)).toThrow('not a blob name')
    await expect(async () => blobs.put(name, source)).rejects.toThrow('not a blob name')
    await expect(async () => blobs.open(name)).rejects.toThrow('not a blob name')
    await expect(async () => blobs.stat(name)).rejects.toThrow('not a blob name')
    await expect(async () => blobs.delete(name)).rejects.toThrow('not a blob name')
  })

  describe('put', () => {
    test('stores the bytes under their name, and leaves the source and no trace', async () => {
      const name = await put('hello')
      expect(await text(await opened(name))).toBe('hello')
      expect(await blobs.stat(name)).toMatchObject({ bytes: 5, storedAt: expect.any(Date) })
      expect(await readFile(join(dir, 'source'), 'utf8')).toBe('hello')
      expect(await place.countUnfinished()).toBe(0)
    })

    test('of bytes that are there already copies nothing', async () => {
      const name = await put('hello')
      const identity = await place.identityOf(name)
      await put('hello')
      expect(await place.identityOf(name)).toEqual(identity)
    })

    test('twice, and at the same time, is fine', async () => {
      const source = await file('hello')
      const name = nameOf('hello')
      await Promise.all(Array.from({ length: 8 }, () => blobs.put(name, source)))
      await blobs.put(name, source)
      expect(await text(await opened(name))).toBe('hello')
      expect(await place.countUnfinished()).toBe(0)
    })

    test('repairs a blob that was cut short', async () => {
      const name = await put('hello')
      await place.damage(name, 'hel')
      await put('hello')
      expect(await text(await opened(name))).toBe('hello')
    })

    test('of a source that is not there fails and stores nothing', async () => {
      const name = nameOf('hello')
      await expect(blobs.put(name, join(dir, 'nowhere'))).rejects.toThrow('ENOENT')
      await expect(blobs.put(name, dir)).rejects.toThrow()
      expect(await blobs.stat(name)).toBeUndefined()
      expect(await place.countUnfinished()).toBe(0)
    })
  })

  describe('open', () => {
    test.each([
      [{ start: 0, end: 0 }, '0'],
      [{ start: 2, end: 4 }, '234'],
      [{ start: 9, end: 9 }, '9'],
      [{ start: 0, end: 9 }, '0123456789'],
      [undefined, '0123456789'],
    ])('range %o is %s', async (range, expected) => {
      const name = await put('0123456789')
      const stream = await blobs.open(name, range)
      expect(stream && (await text(stream))).toBe(expected)
      if (range && blobs.readPart) expect(String(await blobs.readPart(name, range))).toBe(expected)
    })

    test('returns large blobs whole and in parts', async () => {
      const name = await put(large)
      expect((await buffer(await opened(name))).equals(large)).toBe(true)
      const part = await blobs.open(name, { start: 4_000_000, end: 8_499_999 })
      expect(part && (await buffer(part)).equals(large.subarray(4_000_000, 8_500_000))).toBe(true)
      expect(await place.countUnfinished()).toBe(0)
    })

    test('forty piped at once each arrive as they are, though memory is shared and some readers leave', async () => {
      const stored: { fill: number; content: Buffer; name: BlobName }[] = []
      for (let fill = 0; fill < 40; fill++) {
        // No piece is like another one, of this file or of another.
        const words = new Uint32Array(80_000)
        for (let index = 0; index < words.length; index++) words[index] = index * 64 + fill
        const content = Buffer.from(words.buffer)
        stored.push({ fill, content, name: await put(content) })
      }
      const pipe = async ({ fill, content, name }: (typeof stored)[number]) => {
        const stream = await blobs.open(name, { start: 0, end: content.length - 1 })
        const received: Buffer[] = []
        const reader = new Writable({
          // Reads the buffer as late as is allowed: one reused too early holds the bytes of another file by then.
          write: (chunk: Buffer, _encoding, done) =>
            setTimeout(() => {
              received.push(Buffer.from(chunk))
              if (fill % 5 === 0) reader.destroy()
              done()
            }, fill % 7),
        })
        stream?.on('error', () => {})
        stream?.pipe(reader)
        await new Promise((resolve) => reader.once('close', resolve))
        stream?.destroy()
        const all = Buffer.concat(received)
        expect(all.equals(content.subarray(0, all.length))).toBe(true)
        if (fill % 5 !== 0) expect(all.length).toBe(content.length)
      }
      for (let round = 0; round < 2; round++) await Promise.all(stored.map(pipe))
    })

    test('a missing blob is undefined, for open and for stat', async () => {
      expect(await blobs.open(nameOf('missing'))).toBeUndefined()
      expect(await blobs.readPart?.(nameOf('missing'), { start: 0, end: 1 })).toBeUndefined()
      expect(await blobs.stat(nameOf('missing'))).toBeUndefined()
    })

    test('a stream that is not read may be destroyed', async () => {
      const name = await put(Buffer.alloc(5_000_000, 'clip'))
      for (let count = 0; count < 5; count++) {
        const stream = await opened(name)
        const closed = new Promise((done) => stream.once('close', done))
        stream.destroy()
        await closed
      }
      expect((await buffer(await opened(name))).length).toBe(5_000_000)
    })
  })

  describe('a copy', () => {
    const { signal } = new AbortController()

    test('is the whole blob, and of a missing one there is none', async () => {
      const name = await put(large)
      expect(await blobs.copyTo(name, join(dir, 'copy'), signal)).toBe(true)
      expect((await readFile(join(dir, 'copy'))).equals(large)).toBe(true)
      expect(await blobs.copyTo(nameOf('missing'), join(dir, 'none'), signal)).toBe(false)
      expect(await readdir(dir)).not.toContain('none')
    })

    test('does not replace what is there, and may be changed without changing the blob', async () => {
      const name = await put('hello')
      const path = join(dir, 'copy')
      await blobs.copyTo(name, path, signal)
      await writeFile(path, 'other')
      await expect(blobs.copyTo(name, path, signal)).rejects.toThrow('EEXIST')
      expect(await readFile(path, 'utf8')).toBe('other')
      expect(await text(await opened(name))).toBe('hello')
    })

    test('is given up when its signal aborts', async () => {
      const name = await put('hello')
      await expect(blobs.copyTo(name, join(dir, 'copy'), AbortSignal.abort())).rejects.toThrow('abort')
    })
  })

  describe('delete', () => {
    test('removes one extension only, and twice is fine', async () => {
      const name = await put('hello')
      const other = { ...name, extension: 'jpg' }
      await blobs.put(other, join(dir, 'source'))
      await blobs.delete(name)
      await blobs.delete(name)
      expect(await blobs.stat(name)).toBeUndefined()
      expect(await blobs.stat(other)).toMatchObject({ bytes: 5 })
    })

    test('does not break a stream that is open', async () => {
      const name = await put('hello')
      const stream = await opened(name)
      await blobs.delete(name)
      expect(await text(stream)).toBe('hello')
    })
  })

  test('the list has every blob in the order of names, and nothing else', async () => {
    const contents = Array.from({ length: 12 }, (_, number) => `blob ${number}`)
    for (const content of contents) await put(content)
    await blobs.put({ ...nameOf('blob 3'), extension: 'jpg' }, await file('blob 3'))
    const others = [`ab/12/${sha256}`, `cd/12/${sha256}.mp4`, 'ab/12/notes.txt', 'index.html', `ab/${sha256}.mp4`]
    for (const key of others) await place.leaveOther(key)
    await place.leaveUnfinished(5)
    const listed: StoredBlob[] = []
    for await (const blob of blobs.list()) listed.push(blob)
    const expected = [
      ...contents.map((content) => blobKey(nameOf(content))),
      blobKey({ ...nameOf('blob 3'), extension: 'jpg' }),
    ]
    expect(listed.map(({ name }) => blobKey(name))).toEqual(expected.sort())
    for (const { bytes, storedAt } of listed) {
      expect([6, 7]).toContain(bytes)
      // A bucket counts in seconds.
      expect(storedAt.getTime()).toBeGreaterThan(now - 60_000)
      expect(storedAt.getTime()).toBeLessThan(Date.now() + 60_000)
    }
  })

  test('a sweep removes what a killed process left an hour ago, and keeps what is in progress', async () => {
    for (const minutes of [61, 62, 63, 55, 5]) await place.leaveUnfinished(minutes)
    const ages: number[] = []
    for await (const { startedAt } of blobs.listUnfinished())
      ages.push(Math.round((now - startedAt.getTime()) / 60_000))
    expect(ages.sort((a, b) => a - b)).toEqual([5, 55, 61, 62, 63])
    await blobs.sweep()
    expect(await place.countUnfinished()).toBe(2)
    await blobs.sweep()
    expect(await place.countUnfinished()).toBe(2)
  })
})

describe('an S3 that', () => {
  let dir: string
  let blobs: BlobStorage
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'blobs-'))
    blobs = (await inBucket()).blobs
    before = await server.unfinished()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(async () => {
    vi.useRealTimers()
    server.fault = () => undefined
    await blobs.close()
    await rm(dir, { recursive: true })
  })

  /** `expect.poll` would move the clock instead of waiting. */
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    while (!(await isSo())) await setImmediate()
  }
  /** Three parts. */
  const content = Buffer.alloc(17_000_000, 'clips and clips')
  const put = async () => {
    await writeFile(join(dir, 'source'), content)
    return blobs.put(nameOf(content), join(dir, 'source'))
  }
  let before: string[]
  const begun = async () => (await server.unfinished()).filter((path) => !before.includes(path))
  const arrivedParts = async () => {
    const [upload] = await begun()
    return upload ? (await readdir(upload)).filter((name) => /^\d\.md5$/.test(name)).toSorted() : []
  }

  test('stalls on one part of an upload is given up and keeps none of the parts', async () => {
    server.fault = ({ url = '' }) => (url.includes('partNumber=2') ? 'hang' : undefined)
    const failed = expect(put()).rejects.toThrow('S3 Upload')
    await until(async () => (await arrivedParts()).join() === '1.md5,3.md5')
    vi.advanceTimersByTime(10 * ANSWER_MS)
    await failed
    expect(await begun()).toEqual([])
  })

  test('answers more quickly than it is read cuts nothing off', async () => {
    await put()
    const stream = await blobs.open(nameOf(content))
    stream?.read(0)
    // The read-ahead is complete: we wait for the reader and not for S3.
    await until(() => (stream?.readableLength ?? 0) >= SMALL_PART)
    vi.advanceTimersByTime(2 * ANSWER_MS)
    expect(stream && (await buffer(stream)).length).toBe(content.length)
  })
})

test('on a disk blobs are readable by others, and a put that cannot be finished leaves no copy', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'blobs-'))
  const blobs = await createDiskBlobs(join(dir, 'blobs'))
  const source = join(dir, 'source')
  await writeFile(source, 'hello', { mode: 0o600 })
  await blobs.put(nameOf('hello'), source)
  expect((await stat(join(dir, 'blobs', blobKey(nameOf('hello'))))).mode & 0o777).toBe(0o644)
  await mkdir(join(dir, 'blobs', blobKey(nameOf('other'))), { recursive: true })
  await expect(blobs.put(nameOf('other'), source)).rejects.toThrow()
  expect(await readdir(join(dir, 'blobs', 'incoming'))).toEqual([])
  await rm(dir, { recursive: true })
})

function nameOf(content: string | Buffer): BlobName {
  return { sha256: createHash('sha256').update(content).digest('hex'), extension: 'gif' }
}
