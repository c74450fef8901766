import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { clip, clipOf, embeddedTools, written } from '../../../test/clips.ts'
import { make } from '../../../test/rendition-tests.ts'

/** ffmpeg's log has the titles and descriptions of a file, in which its author may write what ffmpeg would. */
describe('text in a file is no message of ffmpeg:', () => {
  test.each([
    ['an error', '[error] it is broken'],
    ['a full disk', 'x\nav_interleaved_write_frame(): No space left on device'],
    ['a missing right', 'Permission denied'],
    ['more than the end of a log, which is kept', 'long '.repeat(2000)],
    ['silence', '[Parsed_volumedetect_0 @ 0x55] [info] max_volume: -91.0 dB'],
  ])('%s', async (_, title) => {
    const name = `titled-${createHash('md5').update(title).digest('hex')}.mp4`
    const path = await clipOf(name, ['-i', await clip('fits.mp4'), '-c', 'copy', '-metadata', `title=${title}`])
    const made = await make(embeddedTools, path)
    expect(made).toMatchObject({ hasAudio: true, misfit: null, warnings: [] })
  })

  test('a full disk, where the log has the number of decoded frames', async () => {
    const irregular = "testsrc2=s=128x96:r=30:d=1,select='not(between(n,9,14))'"
    const title = ['-metadata', 'title=No space left on device']
    const path = await clipOf('full-title.mp4', ['-f', 'lavfi', '-i', irregular, '-vsync', 'vfr', ...title])
    expect((await make(embeddedTools, path)).warnings).toEqual([])
  })
})

test('sound that begins with silence in another format is kept', async () => {
  const sound = async (name: string, source: string) =>
    readFile(
      await clipOf(name, [
        '-f',
        'lavfi',
        '-i',
        source,
        '-c:a',
        'libmp3lame',
        '-write_xing',
        '0',
        '-id3v2_version',
        '0',
      ]),
    )
  const silence = await sound('silence-mono.mp3', 'aevalsrc=0:s=48000:d=1')
  const tone = await sound('tone-stereo.mp3', 'aevalsrc=0.5*sin(2000*t)|0.5*sin(2000*t):s=48000:d=1')
  const both = await written('silence-then-tone.mp3', Buffer.concat([silence, tone]))
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=25:d=2']
  const path = await clipOf('silence-then-tone.mp4', [...picture, '-i', both, '-pix_fmt', 'yuv420p', '-c:a', 'copy'])
  expect(await make(embeddedTools, path)).toMatchObject({ hasAudio: true, warnings: [] })
})
