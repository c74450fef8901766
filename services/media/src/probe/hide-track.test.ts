import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { clip, embeddedTools, written } from '../../test/clips.ts'
import { runFfprobe } from './ffprobe.ts'
import { copyWithoutCodec } from './hide-track.ts'

const folder = await mkdtemp(join(tmpdir(), 'hide-track-'))

test.each([
  ['an mp4', 'sound.mp4', 'mp4', 'mov'],
  ['a webm', 'piped.webm', 'webm', 'matroska'],
] as const)(
  'the sound of %s has no codec that a program could open, and all else stays',
  async (_, name, type, demuxer) => {
    const [source, target] = [await clip(name), join(folder, name)]
    expect(await copyWithoutCodec(source, target, { type, index: 1 })).toBe(true)
    const look = (path: string) => runFfprobe(embeddedTools, path, { demuxer, packets: true })
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
  ['a picture', 0],
  ['a stream that is not there', 7],
])('%s is never hidden, and no copy is made', async (_, index) => {
  const target = join(folder, `none-${index}.mp4`)
  expect(await copyWithoutCodec(await clip('sound.mp4'), target, { type: 'mp4', index })).toBe(false)
  await expect(readFile(target)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a header with any byte changed is hidden or not, and nothing is thrown', async () => {
  const good = await readFile(await clip('tiny.mp4'))
  for (let offset = good.indexOf('moov'); offset < good.indexOf('mdat'); offset += 3) {
    const bytes = Buffer.from(good)
    bytes[offset] = 0xff
    const source = await written('hide-track-mutant.mp4', bytes)
    expect(typeof (await copyWithoutCodec(source, join(folder, 'mutant.mp4'), { type: 'mp4', index: 1 }))).toBe(
      'boolean',
    )
  }
})
