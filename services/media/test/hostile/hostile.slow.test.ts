// Hostile uploads. The suite runs each mutation on each source, by one seed; MEDIA_MUTANTS=10000 runs more, and
// MEDIA_MUTANTS_SEED others. Each goes through the probe, every 20th through a whole upload.
import { once } from 'node:events'
import { copyFile, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiError } from '@services/common/errors'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { MediaTools } from '../../src/ffmpeg/binaries.ts'
import { cleanUp } from '../../src/housekeeping.ts'
import { runFfprobe } from '../../src/make/probe/ffprobe.ts'
import { probe } from '../../src/make/probe/probe.ts'
import { clip, embeddedTools, tools } from '../clips.ts'
import { type Answer, startTestService, type TestService } from '../service.ts'
import { disguises, hostileFiles, PAYLOAD, playlists } from './corpus.ts'
import { type Mutant, mutantsOf } from './mutants.ts'

const MUTANTS = Number(process.env.MEDIA_MUTANTS || 54)
const SEED = Number(process.env.MEDIA_MUTANTS_SEED || 1)
const UPLOADED = 20
/** Some seconds for each few dozen, whatever number was asked for. */
const TIMEOUT_MS = 120_000 + 200 * MUTANTS

/**
 * Tools without a sandbox: inside one a file that is read would leave no trace, and ffmpeg's own options must hold
 * alone.
 */
const bare = (anyTools: MediaTools): MediaTools => ({
  ...anyTools,
  limiters: { ...anyTools.limiters, sandbox: null },
})
/** The suite takes the quick ones; a long run takes the machine's own as well. */
const probers = MUTANTS > 1_000 ? [embeddedTools, tools] : [embeddedTools]

let service: TestService
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hostile-'))
  const chosen = process.env.MEDIA_MUTANTS_TOOLS === 'system' ? tools : embeddedTools
  service = await startTestService({ MEDIA_PARALLEL_PER_TOKEN: '100' }, { tools: bare(chosen) })
})
afterAll(async () => {
  await service.close()
  await rm(directory, { recursive: true })
})

/** `accepted`, or the code of a refusal. Anything else is a fault. */
function outcomeOf({ status, body, text }: Answer): string {
  if (status === 201) return 'accepted'
  return status >= 400 && status < 500 ? body.error.code : `${status} ${text}`
}

const isFault = (outcome: string) => outcome.includes(' ')

async function probedBy(anyTools: MediaTools, path: string): Promise<string> {
  return probe(anyTools, path).then(
    () => 'accepted',
    (error) => (error instanceof ApiError && error.status < 500 ? error.code : `fault: ${error.stack} ${error.cause}`),
  )
}

/** Four at a time: as many as probe at once, and so that a slow one does not hold up all. */
async function fourAtOnce<Item>(
  items: Iterable<Item>,
  work: (item: Item, worker: number) => Promise<void>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  const worker = async (number: number) => {
    for (let next = rest.next(); !next.done; next = rest.next()) await work(next.value, number)
  }
  await Promise.all([0, 1, 2, 3].map(worker))
}

/** Nothing is left once every clip is deleted: no process, no file on its way, no stored one. */
async function expectNothingLeft() {
  const { rows } = await service.deps.pool.query('select id from clips where deleted_at is null')
  for (const { id } of rows) {
    const { status } = await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
    expect(status).toBe(204)
  }
  await service.traces()
  service.clock.advance({ seconds: 8 * 86_400 })
  await cleanUp(service.deps)
  service.clock.advance({ seconds: 3_600 })
  await cleanUp(service.deps)
  await expect.poll(() => service.traces()).toMatchObject({ files: [], sources: 0 })
  await expect.poll(childrenLeft).toEqual([])
}

/** Programs that this process started for a clip and that still run. */
async function childrenLeft(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')))
  return stats.filter((line) => {
    const [, command = '', parent] = /\((.*)\) \S (\d+)/.exec(line) ?? []
    return Number(parent) === process.pid && /^(ff|nice|prlimit|setpriv|unshare|bwrap)/.test(command)
  })
}

test('oversized files are refused by name, or become four harmless files', async () => {
  const files = await hostileFiles()
  const outcomes: Record<string, string> = {}
  await fourAtOnce(files, async ({ name, bytes }) => {
    const answer = await service.upload(bytes)
    outcomes[name] = outcomeOf(answer)
    if (answer.status !== 201) return
    for (const url of Object.values<string>(answer.body.success.files)) {
      const file = await service.get(url)
      expect([name, file.status, file.bytes.includes(PAYLOAD)]).toEqual([name, 200, false])
    }
  })
  expect(outcomes).toEqual(Object.fromEntries(files.map(({ name, outcome }) => [name, outcome])))
  await expectNothingLeft()
})

test('a playlist, file list or drawing opens no other file and no URL, whatever it is disguised as', async ({
  skip,
}) => {
  const canary = join(directory, 'canary.mp4')
  await copyFile(await clip('tiny.mp4'), canary)
  const forgetReading = () => utimes(canary, new Date('2020-01-01'), new Date('2021-01-01'))
  const wasRead = async () => (await stat(canary)).atime.getFullYear() !== 2020
  await forgetReading()
  await readFile(canary)
  if (!(await wasRead())) skip('this disk keeps no access times')
  await forgetReading()
  let calls = 0
  const listener = createServer((socket) => {
    calls++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo

  const targets = [canary, `file://${canary}`, `http://127.0.0.1:${port}/canary.mp4`, `tcp://127.0.0.1:${port}`]
  const files = playlists(targets).flatMap(({ name, text }) =>
    disguises(text).map(({ as, bytes }) => ({ name: `${name} ${as}`, bytes })),
  )
  await fourAtOnce(files, async ({ name, bytes }, worker) => {
    const path = join(directory, `in-${worker}.bin`)
    await writeFile(path, bytes)
    const outcome = await probedBy(bare(embeddedTools), path)
    expect([name, outcome]).toEqual([
      name,
      expect.stringMatching(/^(unsupported_media_type|corrupt_media|dimensions_exceeded)$/),
    ])
    // The playlist past the sniffing, with either demuxer forced on ffmpeg and ffprobe.
    if (name.endsWith('as it is')) {
      for (const demuxer of ['mov', 'matroska'] as const) {
        const read = runFfprobe(bare(embeddedTools), path, { demuxer, packets: true })
        await expect(read, name).rejects.toMatchObject({ code: 'corrupt_media' })
      }
    }
  })
  const answers = await Promise.all(files.filter((_, n) => n % 9 === 0).map(({ bytes }) => service.upload(bytes)))
  for (const { status } of answers) expect(status).toBeOneOf([415, 422])
  expect([await wasRead(), calls]).toEqual([false, 0])
  listener.close()
  await expectNothingLeft()
})

test(
  'mutants of clips are refused, or become clips',
  async () => {
    const names = ['tiny.mp4', 'tiny.webm', 'tiny.gif', 'tiny-hevc.mp4', 'tiny-alpha.webm', 'tiny.gif'] as const
    const sources = Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await readFile(await clip(name))])),
    )
    const faults: string[] = []
    const outcomes: Record<string, number> = {}
    const note = (mutant: Mutant, outcome: string) => {
      if (isFault(outcome)) faults.push(`${mutant.name}: ${outcome}`)
      const [word = ''] = outcome.split(' ')
      outcomes[word] = (outcomes[word] ?? 0) + 1
    }
    let number = 0
    await fourAtOnce(mutantsOf(sources, SEED, MUTANTS), async (mutant, worker) => {
      const path = join(directory, `in-${worker}.bin`)
      await writeFile(path, mutant.bytes)
      const isUploaded = number++ % UPLOADED === 0
      for (const anyTools of probers) note(mutant, await probedBy(anyTools, path))
      if (!isUploaded) return
      const answer = await service.upload(mutant.bytes)
      note(mutant, outcomeOf(answer))
    })
    if (MUTANTS > 1_000) console.log(outcomes)
    expect(faults).toEqual([])
    // Neither a corpus that is refused at the door nor one that is whole would show anything.
    expect(outcomes).toMatchObject({ accepted: expect.any(Number), corrupt_media: expect.any(Number) })
    await expectNothingLeft()
  },
  TIMEOUT_MS,
)
