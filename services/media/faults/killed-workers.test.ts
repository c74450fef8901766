import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tools } from '../test/clips.ts'
import { settingsOf, startTestService, type TestService } from '../test/service.ts'
import { eventually, startWorkerProcess } from '../test/service-process.ts'

const run = promisify(execFile)
const report = openFaultReport()
const KILLS = 10

let directory: string
let api: TestService
/** An ffmpeg that reads no faster than the clip plays, so that a worker can be killed during it on any machine. */
let slowFfmpeg: Record<string, string>
const workers: ReturnType<typeof startWorkerProcess>[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'media-faults-'))
  api = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_PARALLEL_PER_TOKEN: '20' })
  slowFfmpeg = { MEDIA_FFMPEG_PATH: join(directory, 'ffmpeg'), MEDIA_FFPROBE_PATH: tools.ffprobe.path }
  const slowly = `#!/bin/sh\nexec '${tools.ffmpeg.path}' -re "$@"\n`
  await writeFile(slowFfmpeg.MEDIA_FFMPEG_PATH as string, slowly, { mode: 0o755 })
})
afterAll(async () => {
  for (const { child } of workers) child.kill('SIGKILL')
  await api.close()
  await rm(directory, { recursive: true, force: true })
})

const startWorker = (settings: Record<string, string> = {}) => {
  const worker = startWorkerProcess({ ...settingsOf(api.deps.config.database.url, api.blobsDir), ...settings })
  workers.push(worker)
  return worker
}

async function newClip(number: number): Promise<string> {
  const path = join(directory, `${number}.mp4`)
  const picture = `testsrc2=s=160x120:r=25:d=12,drawbox=x=${number}:w=1:t=fill`
  await run(tools.ffmpeg.path, [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    picture,
    '-c:v',
    'libx264',
    '-pix_fmt',
    'yuv420p',
    path,
  ])
  return path
}

/** Reports whether an ffmpeg of this test's workers runs. */
async function isTranscoding(): Promise<boolean> {
  const { stdout } = await run('sh', ['-c', 'for p in $(pgrep -x ffmpeg); do readlink /proc/$p/cwd; done; true'])
  return stdout.includes(api.blobsDir)
}

const states = async () =>
  (await api.deps.pool.query('select state from sources')).rows.map(({ state }) => state as string)

test('a worker killed in the middle of a transcode, ten times in a row, loses no clip and leaves no file', async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    expect((await api.upload(await newClip(kill), [], { prefer: 'respond-async' })).status).toBe(201)
    const worker = startWorker(slowFfmpeg)
    await eventually(isTranscoding, true, 30_000)
    worker.child.kill('SIGKILL')
    await worker.ended
    await eventually(isTranscoding, false)
  }
  const killedAt = Date.now()
  startWorker()
  await eventually(states, Array(KILLS).fill('ready'), 150_000)
  const seconds = Math.round((Date.now() - killedAt) / 1000)
  const files = async (prefix: RegExp) => (await api.listFiles()).filter((path) => prefix.test(path))
  await eventually(() => files(/^work\//), [])
  // Housekeeping deletes originals later.
  const stored = await files(/^[0-9a-f]{2}\/.*(?<!\.source)$/)
  report(`worker killed ${KILLS} times`, {
    'clips acknowledged': KILLS,
    'clips lost': (await states()).filter((state) => state !== 'ready').length,
    'temporary files left': (await files(/^work\//)).length,
    'files stored': stored.length,
    'until the last was made, s': seconds,
  })
  expect(stored).toHaveLength(4 * KILLS)
}, 300_000)
