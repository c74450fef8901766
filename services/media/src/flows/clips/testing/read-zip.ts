import { crc32 } from 'node:zlib'

export interface ReadEntry {
  name: string
  content: Buffer
  modifiedAt: Date
}

/** Reads a zip by its directory, and throws where a record, an offset or a sum is not as the format says. */
export function readZip(zip: Buffer): ReadEntry[] {
  const end = zip.length - 22
  expectWord(zip, end, 0x06054b50)
  const count = zip.readUInt16LE(end + 10)
  const directory = zip.readUInt32LE(end + 16)
  if (directory + zip.readUInt32LE(end + 12) !== end) throw new Error('the directory does not end at its end record')
  const entries: ReadEntry[] = []
  let [at, data] = [directory, 0]
  for (let n = 0; n < count; n++) {
    expectWord(zip, at, 0x02014b50)
    const [flags, method, time, date] = [8, 10, 12, 14].map((offset) => zip.readUInt16LE(at + offset))
    if (flags !== 0x0808 || method !== 0) throw new Error('an entry is not stored, or its name is not UTF-8')
    const [sum, packed, bytes] = [16, 20, 24].map((offset) => zip.readUInt32LE(at + offset)) as [number, number, number]
    const length = zip.readUInt16LE(at + 28)
    const name = zip.toString('utf8', at + 46, at + 46 + length)
    const local = zip.readUInt32LE(at + 42)
    if (local !== data) throw new Error('an entry does not follow the one before')
    expectWord(zip, local, 0x04034b50)
    const start = local + 30 + length
    if (zip.toString('utf8', local + 30, start) !== name) throw new Error('the names of an entry differ')
    const content = zip.subarray(start, start + bytes)
    expectWord(zip, start + bytes, 0x08074b50)
    const followed = [4, 8, 12].map((offset) => zip.readUInt32LE(start + bytes + offset))
    if (`${followed}` !== `${[sum, packed, bytes]}` || packed !== bytes) throw new Error('the sizes of an entry differ')
    if (crc32(content) !== sum) throw new Error('the sum of an entry is wrong')
    entries.push({ name, content, modifiedAt: fromDos(date ?? 0, time ?? 0) })
    data = start + bytes + 16
    at += 46 + length
  }
  if (at !== end || data !== directory) throw new Error('there is more than the entries')
  return entries
}

function expectWord(zip: Buffer, at: number, word: number): void {
  if (zip.readUInt32LE(at) !== word) throw new Error(`there is no record at ${at}`)
}

const fromDos = (date: number, time: number) =>
  new Date(
    Date.UTC(
      ...([1980 + (date >> 9), ((date >> 5) & 15) - 1, date & 31] as [number, number, number]),
      ...[time >> 11, (time >> 5) & 63, (time & 31) * 2],
    ),
  )
