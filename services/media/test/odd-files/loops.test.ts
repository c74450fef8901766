// Repetitions of animated sources in the files that repeat by themselves. Chromium's count:
// browser-frames.slow.test.ts.
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { workFiles } from '../../src/make/command/work-files.ts'
import { animatedWebpCommand } from '../../src/make/variants/variant-command.ts'
import { clip, tools } from '../clips.ts'
import { idIn, startTestService, type TestService } from '../service.ts'
import { looped } from './loops.ts'

let service: TestService
beforeAll(async () => {
  const types = { MEDIA_SOURCE_TYPES: 'image/apng,image/webp,image/avif' }
  service = await startTestService(types, { tools })
})
afterAll(() => service.close())

test.each(looped)('%s plays as often as a gif, which says so once', async (_, __, plays, bytes) => {
  const answer = await service.upload(await bytes())
  expect([answer.status, answer.body.error]).toEqual([201, undefined])
  const served = (await service.get(`/f/${idIn(answer)}.gif`)).bytes
  const blocks = served.toString('latin1').split('NETSCAPE2.0').slice(1)
  const counts = blocks.map((block) => block.charCodeAt(2) + 256 * block.charCodeAt(3))
  expect(counts).toEqual(plays === 1 ? [] : [Number.isFinite(plays) ? plays - 1 : 0])
})

test.each([
  [0, 0],
  [null, 1],
  [2, 3],
  [65_534, 65_535],
  // The most that a WebP can say.
  [65_535, 65_535],
])('an animated WebP of a clip with the loop count %s says %s plays', async (loopCount, plays) => {
  const folder = await mkdtemp(join(tmpdir(), 'loops-'))
  await copyFile(await clip('small.mp4'), join(folder, workFiles.mp4))
  const picture = { width: 16, height: 16, crops: false, delayCentiseconds: 10, hasAlpha: false, durationSeconds: 1 }
  const command = animatedWebpCommand(tools.ffmpeg, { ...picture, loopCount })
  await promisify(execFile)(tools.ffmpeg.path, command, { cwd: folder })
  const bytes = await readFile(join(folder, workFiles.webp))
  expect(bytes.readUInt16LE(bytes.indexOf('ANIM') + 12)).toBe(plays)
})
