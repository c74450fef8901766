// Which dev uses a data folder: `running.json` in it, read by a second dev, which refuses, and by the demo, which goes there.
// The one rule: the file of a process that is gone means nothing, even if another process has its number now.
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export type Addresses = { url: string; inboxUrl?: string | undefined }

export type Running = {
  pid: number
  /** Tells the process from a later one with the same number. */
  birth: string
  /** Absent until it serves. */
  addresses?: Addresses
}

const fileIn = (dataDir: string) => join(dataDir, 'running.json')

/** The dev that uses this folder now, if any. */
export async function findRunning(dataDir: string): Promise<Running | undefined> {
  const running = parseRunning(await readFile(fileIn(dataDir), 'utf8').catch(() => ''))
  return running && (await birthOf(running.pid)) === running.birth ? running : undefined
}

/** Takes the folder for this process. Throws a sentence when another dev uses it. */
export async function claimDataDir(dataDir: string, name: string, portVariable: string): Promise<void> {
  await mkdir(dataDir, { recursive: true })
  const content = await describeThisProcess()
  while (true) {
    try {
      return await writeFile(fileIn(dataDir), content, { flag: 'wx' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const running = await findRunning(dataDir)
    if (running) {
      throw new Error(
        `${name} already runs here${describePlace([running])}. ` +
          `Stop it with Ctrl-C in its terminal, or set DEV_DATA_DIR and ${portVariable}.`,
      )
    }
    await rm(fileIn(dataDir), { force: true })
  }
}

/** Says where this process serves. */
export async function publishAddresses(dataDir: string, addresses: Addresses): Promise<void> {
  const next = `${fileIn(dataDir)}.next`
  await writeFile(next, await describeThisProcess(addresses))
  await rename(next, fileIn(dataDir))
}

export const releaseDataDir = (dataDir: string) => rm(fileIn(dataDir), { force: true })

/** ", at http://… and http://…" as far as they serve yet. */
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

/** Undefined for a process that is gone. Without /proc (macOS) all that is known is that the number is in use. */
async function birthOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return isAlive(pid) ? 'unknown' : undefined
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // proc(5): the name may hold blanks and brackets; the state is the first field after it, the time of start the twentieth.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return state === 'Z' ? undefined : fields[18]
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
