// A clip whose sound is silent loses it after it was encoded, by a copy. Between the two a worker is killed, or the
// disk fills: the clip is published later, without sound, and nothing is published before.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { expect, test } from 'vitest'
import { clip } from '../test/clips.ts'
import { idIn, send } from '../test/service.ts'
import { eventually, type ServiceProcess } from '../test/service-process.ts'
import { programsIn } from './programs.ts'
import { waitingFfmpeg } from './slow-ffmpeg.ts'
import { expectNothingLost, isWorking, newTally, openStage, type Stage, tell, uploadTo } from './stage.ts'
import { openStageOnSmallDisk } from './stage-on-small-disk.ts'

const report = openFaultReport()

/** Brings a silent clip to the step at which its files are finished, with sound, and not copied yet. */
async function encodedSilence(stage: Stage) {
  const api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
  const ffmpeg = await waitingFfmpeg('silent.mp4')
  const worker = stage.startWorker({ MEDIA_FFMPEG_PATH: ffmpeg.path })
  await isWorking(worker)
  const tally = newTally()
  const added = await uploadTo(api.url, await readFile(await clip('silence.mp4')), { prefer: 'respond-async' })
  expect(await tell(tally, async () => added)).toBe(201)
  await eventually(() => ffmpeg.isWaiting(stage.blobsDir), true)
  const made = (await stage.temporary()).find((path) => path.endsWith('/out.mp4')) ?? ''
  expect(hasSound(await readFile(join(stage.environment.MEDIA_WORK_DIR, made)))).toBe(true)
  return { api, ffmpeg, worker, tally, id: idIn(added) }
}

/** Handler of a sound track in an mp4, and sound codecs of a webm. */
const hasSound = (bytes: Buffer) => ['soun', 'A_OPUS', 'A_VORBIS'].some((name) => bytes.includes(name))

const videos = ({ url }: ServiceProcess, id: string) =>
  Promise.all(['mp4', 'webm'].map((kind) => send('GET', `${url}/f/${id}.${kind}`)))

async function expectSilentVideos(api: ServiceProcess, id: string) {
  const answers = await videos(api, id)
  expect(answers.map(({ status, bytes }) => [status, hasSound(bytes)])).toEqual([
    [200, false],
    [200, false],
  ])
}

const statusesOf = async (api: ServiceProcess, id: string) => (await videos(api, id)).map(({ status }) => status)

test('a worker killed between the files of a silent clip and their copies without sound: another one makes it without sound', async ({
  onTestFinished,
}) => {
  const stage = await openStage()
  onTestFinished(() => stage.end())
  const { api, worker, tally, id } = await encodedSilence(stage)
  worker.child.kill('SIGKILL')
  await worker.ended
  await eventually(() => programsIn(stage.blobsDir), [])
  expect(await statusesOf(api, id)).toEqual([202, 202])
  stage.startWorker()
  await eventually(() => statusesOf(api, id), [200, 200])
  await expectSilentVideos(api, id)
  report('worker killed before the copies without sound', await expectNothingLost(stage, api.url, tally))
}, 120_000)

test('a disk that fills between the files of a silent clip and their copies without sound delays the clip', async (context) => {
  const { disk, stage } = await openStageOnSmallDisk(context)
  const { api, ffmpeg, worker, tally, id } = await encodedSilence(stage)
  await disk.fill()
  await ffmpeg.release()
  await eventually(() => worker.output().includes('transcode postponed'), true)
  await eventually(stage.temporary, [])
  expect([await statusesOf(api, id), await stage.isStill()]).toEqual([[202, 202], { sources: 1, jobs: 1 }])
  await disk.makeRoom()
  await eventually(() => statusesOf(api, id), [200, 200])
  await expectSilentVideos(api, id)
  report('disk full before the copies without sound', await expectNothingLost(stage, api.url, tally))
}, 120_000)
