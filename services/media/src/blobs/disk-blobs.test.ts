import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type BlobName, type BlobStorage, blobKey } from './blob-storage.ts'
import { createDiskBlobs } from './disk-blobs.ts'

let dir: string
let root: string
let blobs: BlobStorage
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'disk-blobs-'))
  root = join(dir, 'blobs')
  blobs = await createDiskBlobs(root)
})
afterEach(() => rm(dir, { recursive: true }))

describe('keys', () => {
  const sha256 = 'ab12'.repeat(16)

  test('are sharded by the hash', () => {
    expect(blobKey({ sha256, extension: 'mp4' })).toBe(`ab/12/${sha256}.mp4`)
  })

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
  ])('cannot point elsewhere: $sha256 . $extension', async (name) => {
    const source = await file('x')
    expect(() => blobKey(name)).toThrow('not a blob name')
    await expect(async () => blobs.put(name, source)).rejects.toThrow('not a blob name')
    await expect(async () => blobs.open(name)).rejects.toThrow('not a blob name')
    await expect(async () => blobs.stat(name)).rejects.toThrow('not a blob name')
    await expect(async () => blobs.delete(name)).rejects.toThrow('not a blob name')
  })
})

describe('put', () => {
  test('stores the bytes under their name, readable by others, and leaves the source and no trace', async () => {
    const name = await put('hello')
    expect(await readFile(join(root, blobKey(name)), 'utf8')).toBe('hello')
    expect((await stat(join(root, blobKey(name)))).mode & 0o777).toBe(0o644)
    expect(await readFile(join(dir, 'source'), 'utf8')).toBe('hello')
    expect(await readdir(join(root, 'incoming'))).toEqual([])
  })

  test('of bytes that are there already copies nothing', async () => {
    const name = await put('hello')
    const { ino } = await stat(join(root, blobKey(name)))
    await put('hello')
    expect((await stat(join(root, blobKey(name)))).ino).toBe(ino)
  })

  test('that cannot be finished leaves no copy behind', async () => {
    await mkdir(join(root, blobKey(nameOf('hello'))), { recursive: true })
    await expect(put('hello')).rejects.toThrow()
    expect(await readdir(join(root, 'incoming'))).toEqual([])
  })

  test('twice, and at the same time, is fine', async () => {
    const source = await file('hello')
    const name = nameOf('hello')
    await Promise.all(Array.from({ length: 8 }, () => blobs.put(name, source)))
    await blobs.put(name, source)
    expect(await text(await opened(name))).toBe('hello')
    expect(await readdir(join(root, 'incoming'))).toEqual([])
  })

  test('repairs a blob that was cut short', async () => {
    const name = await put('hello')
    await writeFile(join(root, blobKey(name)), 'hel')
    await put('hello')
    expect(await text(await opened(name))).toBe('hello')
  })

  test('of a source that is not there fails and stores nothing', async () => {
    const name = nameOf('hello')
    await expect(blobs.put(name, join(dir, 'nowhere'))).rejects.toThrow('ENOENT')
    expect(await blobs.stat(name)).toBeUndefined()
    expect(await readdir(join(root, 'incoming'))).toEqual([])
  })
})

describe('open', () => {
  test.each([
    [{ start: 0, end: 0 }, '0'],
    [{ start: 2, end: 4 }, '234'],
    [{ start: 9, end: 9 }, '9'],
    [undefined, '0123456789'],
  ])('range %o is %s', async (range, expected) => {
    const name = await put('0123456789')
    const stream = await blobs.open(name, range)
    expect(stream && (await text(stream))).toBe(expected)
  })

  test('gives large blobs whole', async () => {
    const content = Buffer.alloc(5_000_000, 'clip')
    const name = await put(content)
    expect((await buffer(await opened(name))).equals(content)).toBe(true)
  })

  test('a missing blob is undefined, for open and for stat', async () => {
    expect(await blobs.open(nameOf('missing'))).toBeUndefined()
    expect(await blobs.stat(nameOf('missing'))).toBeUndefined()
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

test('a sweep removes copies that a killed process left an hour ago, and keeps those in progress', async () => {
  const old = join(root, 'incoming', 'old')
  const young = join(root, 'incoming', 'young')
  await Promise.all([writeFile(old, 'x'), writeFile(young, 'x')])
  const minutesAgo = (minutes: number) => Date.now() / 1000 - 60 * minutes
  await utimes(old, minutesAgo(61), minutesAgo(61))
  await utimes(young, minutesAgo(55), minutesAgo(55))
  await blobs.sweep()
  expect(await readdir(join(root, 'incoming'))).toEqual(['young'])
})

function nameOf(content: string | Buffer): BlobName {
  return { sha256: createHash('sha256').update(content).digest('hex'), extension: 'gif' }
}

async function file(content: string | Buffer): Promise<string> {
  const path = join(dir, 'source')
  await writeFile(path, content, { mode: 0o600 })
  return path
}

async function put(content: string | Buffer): Promise<BlobName> {
  await blobs.put(nameOf(content), await file(content))
  return nameOf(content)
}

async function opened(name: BlobName) {
  const stream = await blobs.open(name)
  if (!stream) throw new Error('missing')
  return stream
}
