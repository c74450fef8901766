import { chmod, copyFile, mkdtemp, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '@services/common/config/variables'
import { expect, test } from 'vitest'
import { embeddedTools, systemPath } from '../../test/clips.ts'
import { resolveTools } from './binaries.ts'

/** A folder with an ffmpeg of another age or make: it prints its versions to stderr and its encoders to stdout. */
async function folderWithFfmpeg(versions: string, encoders = ''): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'binaries-'))
  const script = `#!/bin/sh\ncat >&2 <<'END'\n${versions}\nEND\ncat <<'END'\n${encoders}\nEND\n`
  await writeFile(join(folder, 'ffmpeg'), script, { mode: 0o755 })
  return folder
}

const version = (number: string, libavcodec: string) =>
  `ffmpeg version ${number} Copyright\nlibavcodec     ${libavcodec}`
const encoders = ' V..... libx264 x\n V..... libvpx-vp9 x\n A..... aac x\n A..... libopus x'

test('without a system ffmpeg the embedded one is used, with the old options', () => {
  expect(embeddedTools.ffmpeg).toMatchObject({
    ...{ origin: 'embedded', frameRateModeFlag: '-vsync', webmVideoEncoder: 'libvpx-vp9', webmAudioEncoder: 'libopus' },
    ...{ canToneMap: true, canDrawText: true },
  })
  expect(embeddedTools.ffprobe).toMatchObject({ origin: 'embedded' })
})

test.each([
  ['5.1', version('5.1.9', '59. 37.100'), 'system', '-fps_mode'],
  ['5.0', version('5.0.1', '59. 18.100'), 'system', '-vsync'],
  ['a nightly of today', version('N-12345-gabc', '62.  3.100'), 'system', '-fps_mode'],
  ['4.4', version('4.4.2', '58.134.100'), 'embedded', '-vsync'],
])('a system ffmpeg %s', async (_, text, origin, frameRateModeFlag) => {
  const searchPath = await folderWithFfmpeg(text, encoders)
  const { ffmpeg } = await resolveTools({ searchPath })
  expect(ffmpeg).toMatchObject({ origin, frameRateModeFlag })
})

test('a system ffmpeg without H.264 is skipped; a configured one is an error that says why', async () => {
  const searchPath = await folderWithFfmpeg(version('7.1', '61. 19.100'))
  expect((await resolveTools({ searchPath })).ffmpeg.origin).toBe('embedded')
  const configured = resolveTools({ searchPath: systemPath, ffmpegPath: join(searchPath, 'ffmpeg') })
  await expect(configured).rejects.toThrow(/no encoder libx264/)
})

test('webm falls back to VP8 and Vorbis', async () => {
  const fewer = encoders.replace('libvpx-vp9', 'libvpx').replace('libopus', 'libvorbis')
  const searchPath = await folderWithFfmpeg(version('6.0', '60.  3.100'), fewer)
  const { ffmpeg } = await resolveTools({ searchPath })
  expect(ffmpeg).toMatchObject({ webmVideoEncoder: 'libvpx', webmAudioEncoder: 'libvorbis' })
  expect(ffmpeg).toMatchObject({ canToneMap: false, canDrawText: false })
})

test('a configured binary that lost its permission gets it back', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'binaries-'))
  const ffprobePath = join(folder, 'ffprobe')
  await copyFile(embeddedTools.ffprobe.path, ffprobePath)
  await chmod(ffprobePath, 0o644)
  const { ffprobe } = await resolveTools({ searchPath: '', ffprobePath })
  expect(ffprobe).toMatchObject({ origin: 'configured', path: ffprobePath })
  expect((await stat(ffprobePath)).mode & 0o111).toBe(0o111)
})

test('a configured path with nothing there is an error', async () => {
  const refused = resolveTools({ searchPath: systemPath, ffmpegPath: '/nowhere/ffmpeg' })
  await expect(refused).rejects.toThrow(ConfigError)
  await expect(refused).rejects.toThrow('MEDIA_FFMPEG_PATH: /nowhere/ffmpeg')
})
