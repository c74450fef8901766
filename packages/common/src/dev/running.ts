// The dev that uses a data folder, in its `running.json`: a second dev refuses it, and the demo reads its addresses. The one rule:
// the file of an ended process is void, even if another process has its pid. Tests: running.test.ts.
import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive, processBirth } from '../process/process-identity.ts'

export type Addresses = { url: string; inboxUrl?: string | undefined }

export type Running = {
  pid: number
  /** Start time, which distinguishes the process from a later one with its pid. */
  birth: string
  /** Set between the signal to stop and the end. */
  isStopping?: boolean
  /** Absent until it serves. */
  addresses?: Addresses
}

const fileIn = (dataDir: string) => join(dataDir, 'running.json')

export async function findRunning(dataDir: string): Promise<Running | undefined> {
  const running = parseRunning(await readFile(fileIn(dataDir), 'utf8').catch(() => ''))
  return running && (await isThere(running)) ? running : undefined
}

async function isThere({ pid, birth }: Running): Promise<boolean> {
  const now = await birthOf(pid)
  return now !== undefined && now === birth
}

/** Claims the folder for this process. Throws a sentence when another dev uses it. */
export async function claimDataDir(dataDir: string, name: string, portVariable: string): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  // Written before it gets its name: an empty file would look like that of an ended process.
  const own = `${fileIn(dataDir)}.${randomUUID()}`
  await writeFile(own, await describeThisProcess())
  try {
    while (!(await isLinked(own, fileIn(dataDir)))) {
      const running = await findRunning(dataDir)
      if (running?.isStopping) await sleep(STOP_POLL_MS)
      else if (running) {
        throw new Error(
          `${name} already runs here${describePlace([running])}. ` +
            `Stop it with Ctrl-C in its terminal, or set DEV_DATA_DIR and ${portVariable}.`,
        )
      } else if (await isPutFor(own, fileIn(dataDir))) return
    }
  } finally {
    await rm(own, { force: true })
  }
}

/** Links the file under a second name; false if the name is taken. */
async function isLinked(file: string, name: string): Promise<boolean> {
  try {
    await link(file, name)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return false
  }
}

/**
 * Replaces a stale file by the claim; false if another process was quicker. One process at a time may replace it: the holder of the
 * link named after the stale content. The link of an ended process is itself replaced this way.
 */
async function isPutFor(own: string, path: string): Promise<boolean> {
  const stale = await readFile(path, 'utf8').catch(() => undefined)
  if (stale === undefined) return false
  const running = parseRunning(stale)
  if (running && (await isThere(running))) return false
  const right = join(dirname(path), `running.json.${createHash('sha256').update(stale).digest('hex')}`)
  if (!(await isLinked(own, right)) && !(await isPutFor(own, right))) return false
  // The file may have been replaced since; the link then refers to an old one.
  const isStillThere = (await readFile(path, 'utf8').catch(() => undefined)) === stale
  await (isStillThere ? rename(right, path) : rm(right))
  return isStillThere
}

/** Marks this process as stopping, so that the next dev waits instead of refusing. */
export async function announceStop(dataDir: string): Promise<void> {
  const running = parseRunning(await readFile(fileIn(dataDir), 'utf8').catch(() => ''))
  if (running?.pid === process.pid) await replaceFile(dataDir, { ...running, isStopping: true })
}

/** Waits for a dev that is stopping; resolves to undefined once it has ended. */
export async function untilStopped(running: Running): Promise<Running | undefined> {
  while (running.isStopping && (await isThere(running))) await sleep(STOP_POLL_MS)
  return running.isStopping ? undefined : running
}

const STOP_POLL_MS = 50

export async function publishAddresses(dataDir: string, addresses: Addresses): Promise<void> {
  await replaceFile(dataDir, JSON.parse(await describeThisProcess(addresses)))
}

async function replaceFile(dataDir: string, running: Running): Promise<void> {
  const next = `${fileIn(dataDir)}.next`
  await writeFile(next, `${JSON.stringify(running, null, 2)}\n`)
  await rename(next, fileIn(dataDir))
}

/** Releases the folder, unless another process has claimed it. */
export async function releaseDataDir(dataDir: string): Promise<void> {
  const running = parseRunning(await readFile(fileIn(dataDir), 'utf8').catch(() => ''))
  if (running?.pid === process.pid) await rm(fileIn(dataDir), { force: true })
}

/** Formats " at http://… and http://…", or the pids before they serve. */
export function describePlace(running: Running[]): string {
  const urls = running.flatMap(({ addresses }) => addresses?.url ?? [])
  return urls.length > 0 ? ` at ${urls.join(' and ')}` : ` (process ${running.map(({ pid }) => pid).join(', ')})`
}

async function describeThisProcess(addresses?: Addresses): Promise<string> {
  const running = { pid: process.pid, birth: await birthOf(process.pid), addresses }
  return `${JSON.stringify(running, null, 2)}\n`
}

function parseRunning(text: string): Running | undefined {
  try {
    const running = JSON.parse(text)
    return Number.isInteger(running.pid) && running.pid > 0 ? running : undefined
  } catch {
    return undefined
  }
}

/** Start time of a process, undefined once it has ended; `unknown` without /proc (macOS). */
async function birthOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return isAlive(pid) ? 'unknown' : undefined
  return processBirth(pid)
}
