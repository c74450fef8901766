// Files that are made again in another way, because the first is too short, too large or complained about.
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { clip, clipOf, embeddedTools, written } from '../../../test/clips.ts'
import { faulty } from '../../../test/faulty-ffmpeg.ts'
import { inspect, packetsOf } from '../../../test/inspect.ts'
import { copyTests, expectSound, make, renditionTests } from '../../../test/rendition-tests.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'

describe('with the embedded ffmpeg of 2018 makes gif, jpg, mp4 and webm', () => {
  renditionTests(embeddedTools)
  copyTests(embeddedTools)
})

describe('when ffmpeg fails', () => {
  test('a gif over its budget is made again, smaller and not faster', async () => {
    const { path } = embeddedTools.ffmpeg
    const large = await faulty('out.webm*out.gif', `'${path}' "$@" && head -c 9000000 /dev/zero >>out.gif; exit $?`)
    const made = await make(large, await clip('just-30.mp4'), { gifEncoder: 'ffmpeg' })
    expect(made.gif.bytes).toBeLessThan(8_000_000)
    // Ten a second, as of every clip of more than 20 s.
    expect((await inspect(made.gif.path)).streams).toMatchObject([{ nb_read_frames: '300' }])
  })

  /** Cuts one of the files, which are made at once, to its first second. */
  function halving(file: 'mp4' | 'webm' | 'gif', after = ''): Promise<MediaTools> {
    const { path } = embeddedTools.ffmpeg
    const cut = `'${path}' -y -v error -i out.${file} -t 1 ${file === 'gif' ? '' : '-c copy'} -f ${file} cut && mv cut out.${file}`
    return faulty(`out.mp4*out.webm*${after}`, `'${path}' "$@" && ${cut}; exit $?`)
  }

  test.each([
    ['mp4', 'plain.mp4', /^mp4 lasts 1\.?\d* s, webm 2 s and gif 2/],
    ['webm', 'plain.mp4', /^mp4 lasts 2 s, webm 1\.?\d* s and gif 2/],
    ['webm', 'sound.mp4', /^mp4 lasts 2 s, webm 1\.?\d* s and gif 2/],
    ['gif', 'plain.mp4', /^mp4 lasts 2 s, webm 2 s and gif 1/],
    ['mp4', 'plain.gif', /^mp4 lasts 1\.?\d* s, webm 1.5 s and gif 1.5/],
  ] as const)('a %s that is too short is our fault, not that of %s', async (file, name, message) => {
    const made = make(await halving(file), await clip(name))
    await expect(made).rejects.toSatisfy((error) => !('code' in error) && message.test(error.message))
  })

  test.each(['mp4', 'webm'] as const)('a %s that is too short is made again the simple way', async (file) => {
    const made = await make(await halving(file, 'pipe:0'), await clip('plain.mp4'))
    expect(made.warnings).toEqual([expect.stringMatching(/^mp4 lasts .* s, webm/)])
    expect(await expectSound(made)).toMatchObject({ seconds: 2, frames: '50' })
  })
})

describe('a copy', () => {
  test.each([
    ['complains', 'last', 8],
    ['complains', 'first', 8],
    ['complains, though it gives every frame', 'first', 40],
  ] as const)('is thrown away if the decoder %s; made %s', async (_, when, whole) => {
    const small = ['-c:v', 'libx264', '-preset', 'fast', '-crf', '36', '-pix_fmt', 'yuv420p', '-g', '25']
    const source = await clipOf('complains.mp4', ['-f', 'lavfi', '-i', 'testsrc2=s=320x240:r=25:d=2', ...small])
    const bytes = Buffer.from(await readFile(source))
    const { pos, size } = (await packetsOf(source))[30] as { pos: number; size: number }
    bytes.fill(0xff, pos + whole, pos + size)
    const onFirstFiles = async () => expect.unreachable()
    const path = await written(`complains-${when}-${whole}.mp4`, bytes)
    const made = await make(embeddedTools, path, when === 'first' ? { onFirstFiles } : {})
    expect(made).toMatchObject({ misfit: 'damaged', mp4: { copied: false } })
    expect(made.warnings[0]).toMatch(/^not copied: /)
    await expectSound(made)
  })
})
