// A worker killed at each step of a clip that is copied, shown early or edited, and the GIF writer killed alone. The
// clip becomes ready with four files, published ones stay as they were, and nothing else stays.
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { embeddedTools } from '../test/clips.ts'
import { type Answer, type FormFields, idIn } from '../test/service.ts'
import { eventually, type ServiceProcess } from '../test/service-process.ts'
import { firstFiles, newFittingClip } from './fitting-clip.ts'
import { programsIn } from './programs.ts'
import { slowFfmpeg } from './slow-ffmpeg.ts'
import { expectNothingLost, isWorking, newTally, openStage, type Stage, stop, tell, uploadTo } from './stage.ts'

const report = openFaultReport()

let stage: Stage
let api: ServiceProcess
/** So slow that each step lasts for seconds. */
let slowly: Record<string, string>
const tally = newTally()

beforeAll(async () => {
  stage = await openStage()
  api = await stage.serve({ MEDIA_WORKERS_ENABLED: 'false' })
  slowly = { MEDIA_FFMPEG_PATH: await slowFfmpeg() }
})
afterAll(() => stage.end())

async function upload(prefer: string, fields: FormFields = []): Promise<Answer> {
  const answer = await uploadTo(api.url, await newFittingClip(3), { prefer }, fields)
  await tell(tally, async () => answer)
  expect(answer.status).toBe(201)
  return answer
}

/**
 * Programs of the stage's workers whose command lines have all of these words and none of the others. The sandbox
 * around one has its words too, but a program that runs itself is past the sandbox's own steps.
 */
const running = async (having: string[], lacking: string[] = []) =>
  (await programsIn(stage.blobsDir)).filter(({ command: [program = '', ...args] }) => {
    const line = args.join(' ')
    const isProgram = program === process.execPath || program === embeddedTools.ffmpeg.path
    return isProgram && having.every((word) => line.includes(word)) && !lacking.some((word) => line.includes(word))
  })

const isRunning = async (having: string[], lacking?: string[]) => (await running(having, lacking)).length > 0
const isWritingGif = () => isRunning(['gif-program'])

const stateOf = async (id: string) => {
  const [row] = await stage.query('select s.state from clips c join sources s on s.id = c.source_id where c.id = $1', [
    id,
  ])
  return row?.state
}

const publishedFiles = (id: string) => firstFiles(api.url, id)

/** Steps, and the programs by which one is recognized. */
const copied = ['filter_units=remove_types=6']
const steps = [
  ['the copy beside the encoders', 'respond-async', [], [...copied, 'out.webm'], []],
  ['the copy that is shown first', 'respond-async, wait-for=mp4', [], copied, ['out.webm']],
  ['the encoders, after the first files are stored', 'wait-for=mp4', [], ['-f webm out.webm'], []],
  ['the GIF writer', 'respond-async', [], ['gif-program'], []],
  [
    'the encoders of an edit with a caption',
    'respond-async',
    [
      ['start', '0.5'],
      ['speed', '0.5'],
      ['crop', '1:1'],
      ['caption', 'It works'],
    ],
    ['drawtext', '-f mp4 out.mp4'],
    [],
  ],
] as const

test.for(steps)(
  'a worker killed during %s: another one finishes the clip, and published files stay the same',
  { timeout: 120_000 },
  async ([what, prefer, fields, having, lacking]) => {
    const worker = stage.startWorker(slowly)
    await isWorking(worker)
    const answer = await upload(
      prefer,
      fields.map(([name, value]) => [name, value]),
    )
    const id = idIn(answer)
    const isEarly = prefer === 'wait-for=mp4'
    expect(answer.headers.get('x-media-ready')).toBe(isEarly ? 'jpg, mp4' : null)
    await eventually(() => isRunning([...having], [...lacking]), true)
    if (having !== copied) await eventually(isWritingGif, true)
    const before = await publishedFiles(id)
    expect(before.map(({ status }) => status)).toEqual(isEarly ? [200, 200] : [202, 202])
    worker.child.kill('SIGKILL')
    await worker.ended
    const killedAt = performance.now()
    await eventually(() => programsIn(stage.blobsDir), [])
    expect(await stateOf(id)).toBe('processing')
    if (isEarly) expect(await publishedFiles(id)).toEqual(before)

    const next = stage.startWorker()
    await eventually(() => stateOf(id), 'ready')
    const seconds = Math.round((performance.now() - killedAt) / 1000)
    if (isEarly) expect(await publishedFiles(id)).toEqual(before)
    await eventually(stage.temporary, [])
    await stop(next)
    report(`worker killed during ${what}`, { 'ready after, s': seconds })
  },
)

test.for([
  ['an encoded clip', 'respond-async', [['caption', 'It works']]],
  ['a clip whose first files are published', 'wait-for=mp4', []],
] as const)(
  'the GIF writer of %s killed alone: ffmpeg makes the GIF, and the clip does not fail',
  { timeout: 120_000 },
  async ([what, prefer, fields]) => {
    const worker = stage.startWorker(slowly)
    await isWorking(worker)
    const id = idIn(
      await upload(
        prefer,
        fields.map(([name, value]) => [name, value]),
      ),
    )
    const before = await publishedFiles(id)
    await eventually(isWritingGif, true)
    for (const { pid } of await running(['gif-program'])) process.kill(pid, 'SIGKILL')
    await eventually(() => stateOf(id), 'ready')
    await eventually(() => worker.output().includes('the GIF writer failed'), true)
    if (prefer === 'wait-for=mp4') expect(await publishedFiles(id)).toEqual(before)
    await eventually(stage.temporary, [])
    await stop(worker)
    report(`GIF writer of ${what} killed`, { attempts: 1 })
  },
)

test('after all of it every clip has its four files, and nothing else is left', async () => {
  report('all', await expectNothingLost(stage, api.url, tally))
}, 120_000)
