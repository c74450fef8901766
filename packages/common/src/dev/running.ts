// The dev that uses a data folder, in its `running.json`: a second dev refuses it, and the demo reads its addresses.
// The file of an ended process is void, even if another process has its pid. Tests: running.test.ts.
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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

/**
 * Claims the folder for this process. Throws a sentence when another dev uses it, and waits for one that is stopping.
 * The port or the lock of PostgreSQL's data ends one of two that claim it at the same moment.
 */
export async function claimDataDir(dataDir: string, name: string, portVariable: string): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  for (let running = await findRunning(dataDir); running; running = await findRunning(dataDir)) {
    if (!running.isStopping) {
      throw new Error(
        `${name} already runs here${describePlace([running])}. ` +
          `Stop it with Ctrl-C in its terminal, or set DEV_DATA_DIR and ${portVariable}.`,
      )
    }
    await sleep(STOP_POLL_MS)
  }
  await publishAddresses(dataDir)
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

export async function publishAddresses(dataDir: string, addresses?: Addresses): Promise<void> {
  await replaceFile(dataDir, {
    pid: process.pid,
    birth: (await birthOf(process.pid)) ?? '',
    ...(addresses && { addresses }),
  })
}

async function replaceFile(dataDir: string, running: Running): Promise<void> {
  // A name of its own, so that two processes do not write into one file.
  const next = `${fileIn(dataDir)}.${process.pid}`
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
