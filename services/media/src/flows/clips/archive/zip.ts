// Zip archives of stored files, written as a stream (APPNOTE.TXT 6.3.10). Their sizes are known beforehand, and so is
// that of the archive. Checksums are not: each follows its file. No archive here needs the format of 64 bits, which
// begins at 4 GiB. Tests: zip.test.ts, zip.slow.test.ts.
import { Readable } from 'node:stream'
import { crc32 } from 'node:zlib'

export interface ZipEntry {
  name: string
  bytes: number
  modifiedAt: Date
  open: () => Promise<Readable>
}

/** Lengths of records without names (4.3.7, 4.3.9, 4.3.12, 4.3.16). */
const LOCAL_BYTES = 30
const DESCRIPTOR_BYTES = 16
const CENTRAL_BYTES = 46
const END_BYTES = 22

const MAX_BYTES = 2 ** 32 - 1
const MAX_ENTRIES = 2 ** 16 - 1

/** Length of the archive. Throws for one that would need the format of 64 bits. */
export function zipLength(entries: readonly ZipEntry[]): number {
  const each = entries.map(({ name, bytes }) => {
    const records = LOCAL_BYTES + DESCRIPTOR_BYTES + CENTRAL_BYTES
    return bytes + records + 2 * Buffer.byteLength(name)
  })
  const length = each.reduce((sum, bytes) => sum + bytes, END_BYTES)
  if (length >= MAX_BYTES || entries.length >= MAX_ENTRIES) throw new Error('the archive is too large for this format')
  return length
}

/**
 * Opens the archive; the first file is open then, and later one at a time. A file that cannot be read, or has another
 * size, fails the stream. Destroying the stream closes the file.
 */
export async function openZip(entries: readonly ZipEntry[]): Promise<Readable> {
  let file = await openOne(entries[0])
  async function* write() {
    const directory: Buffer[] = []
    let offset = 0
    try {
      for (const [n, entry] of entries.entries()) {
        if (n > 0) file = await openOne(entry)
        const head = localHeader(entry)
        yield head
        let [sum, bytes] = [0, 0]
        for await (const chunk of file) {
          sum = crc32(chunk, sum)
          bytes += chunk.length
          if (bytes <= entry.bytes) yield chunk
        }
        if (bytes !== entry.bytes) throw new Error('a stored file has another size')
        yield descriptor(entry, sum)
        directory.push(centralHeader(entry, { sum, offset }))
        offset += head.length + bytes + DESCRIPTOR_BYTES
      }
      yield* directory
      yield endOf(directory, offset)
    } finally {
      file.destroy()
    }
  }
  const chunks = write()
  return new Readable({
    read() {
      chunks.next().then(
        ({ value = null }) => this.push(value),
        (error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      // Not in the generator alone: it may wait for its file, or not have begun.
      file.destroy()
      chunks.return().catch(() => {})
      done(error)
    },
  })
}

async function openOne(entry: ZipEntry | undefined): Promise<Readable> {
  if (!entry) throw new Error('an archive has at least one file')
  return entry.open()
}

/** Sizes and sum follow the file (bit 3); the name is UTF-8 (bit 11). */
const FLAGS = 0x0808
/** Version 2.0, and of the writer on Unix, whose mode is that of a usual file. */
const VERSION = 20
const MADE_BY = (3 << 8) | VERSION
const MODE = 0o100644 * 2 ** 16

function localHeader({ name, modifiedAt }: ZipEntry): Buffer {
  const head = Buffer.alloc(LOCAL_BYTES)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(VERSION, 4)
  head.writeUInt16LE(FLAGS, 6)
  head.writeUInt32LE(dosTime(modifiedAt), 10)
  const named = Buffer.from(name)
  head.writeUInt16LE(named.length, 26)
  return Buffer.concat([head, named])
}

function descriptor({ bytes }: ZipEntry, sum: number): Buffer {
  const record = Buffer.alloc(DESCRIPTOR_BYTES)
  record.writeUInt32LE(0x08074b50, 0)
  record.writeUInt32LE(sum, 4)
  record.writeUInt32LE(bytes, 8)
  record.writeUInt32LE(bytes, 12)
  return record
}

function centralHeader(
  { name, bytes, modifiedAt }: ZipEntry,
  { sum, offset }: { sum: number; offset: number },
): Buffer {
  const head = Buffer.alloc(CENTRAL_BYTES)
  head.writeUInt32LE(0x02014b50, 0)
  head.writeUInt16LE(MADE_BY, 4)
  head.writeUInt16LE(VERSION, 6)
  head.writeUInt16LE(FLAGS, 8)
  head.writeUInt32LE(dosTime(modifiedAt), 12)
  head.writeUInt32LE(sum, 16)
  head.writeUInt32LE(bytes, 20)
  head.writeUInt32LE(bytes, 24)
  const named = Buffer.from(name)
  head.writeUInt16LE(named.length, 28)
  head.writeUInt32LE(MODE, 38)
  head.writeUInt32LE(offset, 42)
  return Buffer.concat([head, named])
}

function endOf(directory: readonly Buffer[], offset: number): Buffer {
  const record = Buffer.alloc(END_BYTES)
  record.writeUInt32LE(0x06054b50, 0)
  record.writeUInt16LE(directory.length, 8)
  record.writeUInt16LE(directory.length, 10)
  record.writeUInt32LE(
    directory.reduce((sum, { length }) => sum + length, 0),
    12,
  )
  record.writeUInt32LE(offset, 16)
  return record
}

/** Time and date of MS-DOS, precise to two seconds, in UTC; none before 1980. */
function dosTime(moment: Date): number {
  const time = new Date(Math.max(moment.getTime(), Date.UTC(1980, 0, 1)))
  const date = ((time.getUTCFullYear() - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate()
  const clock = (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1)
  return date * 2 ** 16 + clock
}
