import { copyFile, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { clip, unboxedTools, written } from '../../../test/clips.ts'
import { type Change, writeChange } from './edit-header.ts'
import { runFfprobe } from './ffprobe.ts'
import { findCodecToHide } from './hide-stream.ts'

const folder = await mkdtemp(join(tmpdir(), 'hide-stream-'))

test.each([
  ['an mp4', 'sound.mp4', 'mp4', 'mov'],
  ['a webm', 'piped.webm', 'webm', 'matroska'],
] as const)(
  'the sound of %s has no codec that a program could open, and all else stays',
  async (_, name, type, demuxer) => {
    const [source, target] = [await clip(name), join(folder, name)]
    await copyFile(source, target)
    await writeChange(target, (await findCodecToHide(source, { type, index: 1 })) as Change)
    const look = (path: string) => runFfprobe(unboxedTools, path, { demuxer, packets: true })
    const [before, after] = await Promise.all([look(source), look(target)])
    expect(after.streams?.map(({ codec_type, codec_name }) => [codec_type, codec_name ?? 'none'])).toEqual([
      ['video', before.streams?.[0]?.codec_name],
      ['audio', expect.stringMatching(/^(none|unknown)$/)],
    ])
    const pictures = ({ packets = [] }: typeof before) => packets.filter(({ stream_index }) => stream_index === 0)
    expect(pictures(after)).toEqual(pictures(before))
  },
)

test.each([
  ['the only picture', 0],
  ['a stream that is not there', 7],
])('%s is never hidden', async (_, index) => {
  expect(await findCodecToHide(await clip('sound.mp4'), { type: 'mp4', index })).toBeUndefined()
})

test('a header with any byte changed has a place to write to within the file, or none', async () => {
  const good = await readFile(await clip('tiny.mp4'))
  for (let offset = good.indexOf('moov'); offset < good.indexOf('mdat'); offset += 3) {
    const bytes = Buffer.from(good)
    bytes[offset] = 0xff
    const source = await written('hide-stream-mutant.mp4', bytes)
    const change = await findCodecToHide(source, { type: 'mp4', index: 1 })
    if (change) expect(change.at + change.bytes.length).toBeLessThanOrEqual(good.length)
  }
})

describe('of small boxes alone a file is given up soon:', () => {
  const small = (count: number) => Buffer.from('\0\0\0\x08free'.repeat(count), 'latin1')

  test('before its index', async () => {
    const bytes = Buffer.concat([small(1001), await readFile(await clip('sound.mp4'))])
    expect(await findCodecToHide(await written('boxes-before.mp4', bytes), { type: 'mp4', index: 1 })).toBeUndefined()
  })

  test('in its index', async () => {
    const whole = await readFile(await clip('sound.mp4'))
    const at = whole.indexOf('moov')
    const withBoxes = async (count: number) => {
      const bytes = Buffer.concat([whole.subarray(0, at + 4), small(count), whole.subarray(at + 4)])
      bytes.writeUInt32BE(whole.readUInt32BE(at - 4) + 8 * count, at - 4)
      return findCodecToHide(await written(`boxes-${count}.mp4`, bytes), { type: 'mp4', index: 1 })
    }
    expect(await withBoxes(100)).toBeDefined()
    expect(await withBoxes(10_000)).toBeUndefined()
  })
})
