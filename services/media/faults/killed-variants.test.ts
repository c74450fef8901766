// A process killed at each step of a variant: another one, or the same one started again, answers the address. The
// variant has one row and one file, its bytes are counted once, and nothing else stays.
import { createHash } from 'node:crypto'
import { openFaultReport } from '@services/common/testing/run/fault-report'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signVariant } from '../src/flows/files/variants/signature.ts'
import { embeddedTools } from '../test/clips.ts'
import { idIn, send } from '../test/service.ts'
import { eventually, type ServiceProcess } from '../test/service-process.ts'
import { newFittingClip } from './fitting-clip.ts'
import { holdChange, type Step } from './held-change.ts'
import { programsIn } from './programs.ts'
import { slowFfmpeg, waitingFfmpeg } from './slow-ffmpeg.ts'
import { expectNothingLost, isWorking, newTally, openStage, type Stage, stop, tell, uploadTo } from './stage.ts'

const report = openFaultReport()
const KEY = 'key-of-the-killed-variants'
const WITHOUT_WORKERS = { MEDIA_WORKERS_ENABLED: 'false' }

let stage: Stage
/** Queues animated variants; another process makes them. */
let api: ServiceProcess
let id: string
const tally = newTally()

beforeAll(async () => {
  stage = await openStage({ MEDIA_VARIANT_KEY: KEY })
  api = await stage.serve(WITHOUT_WORKERS)
  const worker = stage.startWorker()
  const uploaded = await uploadTo(api.url, await newFittingClip(4, '640x360'))
  expect(await tell(tally, async () => uploaded)).toBe(201)
  id = idIn(uploaded)
  await stop(worker)
})
afterAll(() => stage.end())

let width = 200
/** Address of a variant that was never requested before. */
function newVariant(extension: string): string {
  width += 2
  const path = `/w:${width}/${id}.${extension}`
  return `/v/${signVariant(KEY, path)}${path}`
}

let halfSeconds = 0
const newStill = () => `/f/${id}/t${halfSeconds++ / 2}.jpg`

/** Name of the variant in its row. */
const nameIn = (path: string) => path.replace(/^\/f\/[^/]+\//, '')
const nameOf = (path: string) =>
  path.startsWith('/f/') ? nameIn(path) : `w${/w:(\d+)/.exec(path)?.[1]}.${path.split('.').at(-1)}`

const rows = (path: string) =>
  stage.query(`select state, encode(sha256, 'hex') as sha256 from variants where name = $1`, [nameOf(path)])
const statesOf = async (path: string) => (await rows(path)).map(({ state }) => state)
const openJobs = async () =>
  (await stage.query(`select from media_queue.job where name = 'variants' and state < 'completed'`)).length
const statusOf = async (base: string, path: string) => (await send('GET', base + path)).status

/** A minute passes for claims. */
const letClaimsAge = () => stage.query(`update variants set claimed_at = claimed_at - interval '61 seconds'`)

/** Expects the address to answer one stored file, and the clip to be charged for each of its files once. */
async function expectMadeOnce(base: string, path: string) {
  const answer = await send('GET', base + path)
  const sha256 = createHash('sha256').update(answer.bytes).digest('hex')
  expect([answer.status, answer.headers.get('etag')]).toEqual([200, `"${sha256}"`])
  expect(await rows(path)).toEqual([{ state: 'stored', sha256 }])
  expect((await stage.stored()).filter((file) => file.includes(sha256))).toHaveLength(1)
  const [bytes] = await stage.query(
    `select (select sum(rendition_bytes) from sources)::int as charged,
       (select sum(bytes) from renditions)::int + (select coalesce(sum(bytes), 0) from variants)::int as stored`,
  )
  expect(bytes.charged).toBe(bytes.stored)
}

async function kill({ child, ended }: ServiceProcess) {
  child.kill('SIGKILL')
  await ended
  await eventually(() => programsIn(stage.blobsDir), [])
}

const claimed: Step = { table: 'variants', on: 'insert', at: 'commit' }
const kept: Step = { table: 'blobs', on: 'insert' }
const recorded: Step = { table: 'variants', on: 'update', when: `new.state = 'stored'` }

/** Steps of a still, which its request makes, and the states of its row after the kill. */
const stillSteps: [what: string, hold: Step | 'ffmpeg', end: 'undo' | 'letPass', left: string[]][] = [
  ['before its claim is committed', claimed, 'undo', []],
  ['while its frame is decoded', 'ffmpeg', 'undo', ['making']],
  ['after it is made and before it is stored', kept, 'undo', ['making']],
  ['after it is stored and before it is recorded', recorded, 'undo', ['making']],
  ['after it is recorded and before it is answered', { ...recorded, at: 'commit' }, 'letPass', ['stored']],
]

test.for(stillSteps)(
  'a service killed for a still %s: once its claim is a minute old, the restarted service answers one file',
  { timeout: 120_000 },
  async ([what, hold, end, left]) => {
    const path = newStill()
    const ffmpeg = await waitingFfmpeg('poster.rgb')
    const service = await stage.serve({
      ...WITHOUT_WORKERS,
      ...(hold === 'ffmpeg' && { MEDIA_FFMPEG_PATH: ffmpeg.path }),
    })
    const held = hold === 'ffmpeg' ? undefined : await holdChange(stage.url, hold)
    const answered = statusOf(service.url, path).catch(() => 'broken')
    await (held ? held.hasBegun() : eventually(() => ffmpeg.isWaiting(stage.blobsDir), true))
    await kill(service)
    expect(await answered).toBe('broken')
    await held?.[end]()
    expect(await statesOf(path)).toEqual(left)

    const restarted = await stage.serve(WITHOUT_WORKERS)
    await letClaimsAge()
    await expectMadeOnce(restarted.url, path)
    await eventually(stage.temporary, [])
    await stop(restarted)
    report(`service killed for a still ${what}`, { requests: 2 })
  },
)

test.for([
  ['rolled back', 'undo', []],
  ['committed', 'letPass', ['making']],
] as const)(
  'a service killed while claim and job of a variant are %s: the next request leaves one claim with one job',
  { timeout: 120_000 },
  async ([what, end, left]) => {
    const path = newVariant('mp4')
    const service = await stage.serve(WITHOUT_WORKERS)
    const held = await holdChange(stage.url, claimed)
    const answered = statusOf(service.url, path).catch(() => 'broken')
    await held.hasBegun()
    await kill(service)
    expect(await answered).toBe('broken')
    await held[end]()
    await eventually(() => statesOf(path), left)
    expect(await openJobs()).toBe(left.length)
    expect(await statusOf(api.url, path)).toBe(202)
    expect([await statesOf(path), await openJobs()]).toEqual([['making'], 1])

    const worker = stage.startWorker()
    await eventually(() => statusOf(api.url, path), 200)
    await expectMadeOnce(api.url, path)
    await eventually(openJobs, 0)
    await stop(worker)
    report(`service killed while a claim is ${what}`, { requests: 2 })
  },
)

/** Programs that make a variant, by the words of their command lines. */
const isRunning = async (word: string) =>
  (await programsIn(stage.blobsDir)).some(({ command: [program = '', ...args] }) => {
    return [process.execPath, embeddedTools.ffmpeg.path].includes(program) && args.join(' ').includes(word)
  })

/**
 * Steps of an animated variant, the program or the change by which one is recognized, and the states after the kill.
 */
const jobSteps: [what: string, extension: string, hold: Step | string, end: 'undo' | 'letPass', left: string][] = [
  ['while its video is encoded', 'mp4', 'variant.mp4', 'undo', 'making'],
  ['while the GIF writer runs', 'gif', 'gif-program', 'undo', 'making'],
  ['after it is made and before it is stored', 'gif', kept, 'undo', 'making'],
  ['after it is stored and before it is recorded', 'mp4', recorded, 'undo', 'making'],
  ['after it is recorded and before its job ends', 'gif', { ...recorded, at: 'commit' }, 'letPass', 'stored'],
]

test.for(jobSteps)(
  'a worker killed for a variant %s: another one ends the job, and the address has one file (%s)',
  { timeout: 120_000 },
  async ([what, extension, hold, end, left]) => {
    const path = newVariant(extension)
    const isProgram = typeof hold === 'string'
    const worker = stage.startWorker(isProgram ? { MEDIA_FFMPEG_PATH: await slowFfmpeg() } : {})
    await isWorking(worker)
    const held = isProgram ? undefined : await holdChange(stage.url, hold)
    expect(await statusOf(api.url, path)).toBe(202)
    await (isProgram ? eventually(() => isRunning(hold), true) : held?.hasBegun())
    await kill(worker)
    await held?.[end]()
    await eventually(() => statesOf(path), [left])
    expect(await statusOf(api.url, path)).toBe(left === 'stored' ? 200 : 202)
    expect(await openJobs()).toBe(1)

    const killedAt = performance.now()
    const next = stage.startWorker()
    await eventually(openJobs, 0)
    await expectMadeOnce(api.url, path)
    await eventually(stage.temporary, [])
    await stop(next)
    report(`worker killed for a variant ${what}`, {
      'job ended after, s': Math.round((performance.now() - killedAt) / 1000),
    })
  },
)

test('after all of it the clip has one row for each variant, and nothing else is left', async () => {
  const [{ count }] = await stage.query('select count(*)::int from variants')
  expect(count).toBe(stillSteps.length + 2 + jobSteps.length)
  report('all', await expectNothingLost(stage, api.url, tally))
}, 120_000)
