import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readZip } from '../testing/read-zip.ts'
import { openZip, type ZipEntry, zipLength } from './zip.ts'

const modifiedAt = new Date('2026-11-29T17:10:42Z')
const entryOf = (name: string, content: Buffer): ZipEntry => ({
  ...{ name, bytes: content.length, modifiedAt },
  open: async () => Readable.from([content], { objectMode: false }),
})

test('an archive has its files as they are, and the length that was said', async () => {
  const files = [
    ['Grüße 🎈.mp4', Buffer.from('one')],
    ['empty.mp4', Buffer.alloc(0)],
    ['large.mp4', Buffer.alloc(3_000_000, 7)],
  ] as const
  const entries = files.map(([name, content]) => entryOf(name, content))
  const zip = await buffer(await openZip(entries))
  expect(zip.length).toBe(zipLength(entries))
  expect(readZip(zip)).toEqual(files.map(([name, content]) => ({ name, content, modifiedAt })))
})

test.for([
  ['shorter', 2],
  ['longer', 4],
] as const)('a file that is %s than it was said fails the archive', async ([, bytes]) => {
  const entries = [entryOf('a', Buffer.from('a')), { ...entryOf('b', Buffer.from('bbb')), bytes }]
  await expect(buffer(await openZip(entries))).rejects.toThrow('a stored file has another size')
})

/** Files that never end by themselves, and how many of them are open. */
function endlessFiles(count: number) {
  const open = new Set<Readable>()
  let most = 0
  const entries = Array.from(
    { length: count },
    (_, n): ZipEntry => ({
      ...{ name: `${n}.mp4`, bytes: 100_000, modifiedAt },
      open: async () => {
        let left = 100_000
        const file = new Readable({
          read(size) {
            const part = Math.min(size, left)
            left -= part
            this.push(part > 0 ? Buffer.alloc(part) : null)
          },
        })
        open.add(file)
        most = Math.max(most, open.size)
        file.once('close', () => open.delete(file))
        return file
      },
    }),
  )
  return { entries, open, mostOpen: () => most }
}

test('one file is open at a time, and none at the end', async () => {
  const { entries, open, mostOpen } = endlessFiles(5)
  await buffer(await openZip(entries))
  expect([mostOpen(), open.size]).toEqual([1, 0])
})

test.for([0, 1, 150_000])('a reader that ends after %i bytes leaves no file open', async (bytes) => {
  const { entries, open } = endlessFiles(3)
  const archive = await openZip(entries)
  let read = 0
  if (bytes > 0) {
    for await (const chunk of archive) {
      read += chunk.length
      if (read >= bytes) break
    }
  } else archive.destroy()
  await expect.poll(() => open.size).toBe(0)
})

test('a reader that ends while a file is being opened leaves it closed', async () => {
  const { entries, open } = endlessFiles(2)
  const opening = Promise.withResolvers<void>()
  const [first, second] = entries as [ZipEntry, ZipEntry]
  let hasBegun = false
  const held: ZipEntry = {
    ...second,
    open: async () => {
      hasBegun = true
      await opening.promise
      return second.open()
    },
  }
  const archive = await openZip([first, held])
  archive.resume()
  await expect.poll(() => hasBegun).toBe(true)
  archive.destroy()
  opening.resolve()
  await turn()
  await expect.poll(() => open.size).toBe(0)
})

test('a reader that takes nothing stops the files', async () => {
  const { entries } = endlessFiles(1)
  let pushed = 0
  const [entry] = entries as [ZipEntry]
  const counted: ZipEntry = {
    ...{ name: 'a', bytes: 50_000_000, modifiedAt },
    open: async () =>
      new Readable({
        read(size) {
          pushed += size
          this.push(Buffer.alloc(size))
        },
      }),
  }
  const archive = await openZip([entry, counted])
  archive.once('readable', () => archive.read(1))
  for (let n = 0; n < 50; n++) await turn()
  expect(pushed).toBeLessThan(1_000_000)
  archive.destroy()
})

test('an archive for which the format has too few bits is refused', () => {
  const large = { ...entryOf('a', Buffer.alloc(0)), bytes: 2 ** 31 }
  expect(() => zipLength([large, large])).toThrow('too large')
})

test('times before 1980 are that of its beginning', async () => {
  const old = { ...entryOf('a', Buffer.from('a')), modifiedAt: new Date(0) }
  expect(readZip(await buffer(await openZip([old])))[0]?.modifiedAt).toEqual(new Date('1980-01-01T00:00:00Z'))
})
