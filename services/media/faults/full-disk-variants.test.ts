// A disk that another program fills while a variant is made. The clip stays as it is, no claim and no partial file
// stays, and with free space the next request gets the variant.
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { expect, type TestContext, test } from 'vitest'
import { idIn, send } from '../test/service.ts'
import { eventually } from '../test/service-process.ts'
import { newFittingClip } from './fitting-clip.ts'
import { waitingFfmpeg } from './slow-ffmpeg.ts'
import { expectNothingLost, isWorking, newTally, type Stage, stop, tell, uploadTo } from './stage.ts'
import { openStageOnSmallDisk } from './stage-on-small-disk.ts'

const report = openFaultReport()

/** A service with a clip, whose ffmpeg waits before it makes a variant by these words. */
async function openWithClip(context: TestContext, words: string) {
  const { disk, stage } = await openStageOnSmallDisk(context)
  const ffmpeg = await waitingFfmpeg(words)
  const waiting = { MEDIA_FFMPEG_PATH: ffmpeg.path }
  const api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false', ...waiting })
  const worker = stage.startWorker()
  const tally = newTally()
  const added = await uploadTo(api.url, await newFittingClip(3, '960x540'))
  expect(await tell(tally, async () => added)).toBe(201)
  await stop(worker)
  const get = (variant: string) => send('GET', `${api.url}/f/${idIn(added)}/${variant}`)
  return { disk, stage, ffmpeg, waiting, api, tally, get }
}

const statesIn = async (stage: Stage) => (await stage.query('select state from variants')).map(({ state }) => state)

test('a disk that fills while a still is made refuses it for a minute and keeps no claim; with free space it is made', async (context) => {
  const { disk, stage, ffmpeg, api, tally, get } = await openWithClip(context, 'poster.rgb')
  const answering = get('t0.5.jpg')
  await eventually(() => ffmpeg.isWaiting(stage.blobsDir), true)
  await disk.fill()
  await ffmpeg.release()
  for (const { status, headers } of [await answering, await get('t0.5.jpg')]) {
    expect([status, headers.get('retry-after')]).toEqual([503, '60'])
  }
  expect([await statesIn(stage), await stage.temporary()]).toEqual([[], []])
  await disk.makeRoom()
  expect((await get('t0.5.jpg')).status).toBe(200)
  const worker = stage.startWorker()
  await isWorking(worker)
  report('disk full while a still is made', await expectNothingLost(stage, api.url, tally))
}, 120_000)

test('a disk that fills while a variant is made ends its claim after the last attempt; with free space it is made', async (context) => {
  const { disk, stage, ffmpeg, waiting, api, tally, get } = await openWithClip(context, 'variant.mp4')
  const worker = stage.startWorker(waiting)
  await isWorking(worker)
  expect((await get('w480.mp4')).status).toBe(202)
  await eventually(() => ffmpeg.isWaiting(stage.blobsDir), true)
  await disk.fill()
  await ffmpeg.release()
  await eventually(stage.temporary, [])
  expect(await statesIn(stage)).toEqual(['making'])
  await eventually(() => statesIn(stage), [])
  await disk.makeRoom()
  await eventually(async () => (await get('w480.mp4')).status, 200)
  expect(await statesIn(stage)).toEqual(['stored'])
  report('disk full while a variant is made', await expectNothingLost(stage, api.url, tally))
}, 180_000)
