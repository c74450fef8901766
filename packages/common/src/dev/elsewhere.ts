// Data folders that a dev of this clone has used, so that a command that looks into another one can name them. Each has
// a file of its own, so that starts at once overwrite nothing of each other.
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { quoted, REPOSITORY } from './dev-settings.ts'
import { findRunning } from './running.ts'

const LIST = join(REPOSITORY, 'node_modules/.cache/dev/data-roots')

/** More folders than run at once: then those without a dev are dropped. Each start records its folder again. */
const MAX_LISTED = 20

/** Records a data folder that this process has claimed; a list that cannot be written is done without. */
export async function rememberDataRoot(root: string, list = LIST): Promise<void> {
  const record = (each: string) => writeFile(fileIn(list, each), each)
  const known = await rootsIn(list)
  try {
    await mkdir(list, { recursive: true })
    if (known.length >= MAX_LISTED) {
      await Promise.all(known.map((each) => rm(fileIn(list, each), { force: true })))
      // Only now, because a dev claims its folder before it records it: none that starts meanwhile is lost.
      await Promise.all((await inUse(known)).map(record))
    }
    await record(root)
  } catch {}
}

const fileIn = (list: string, root: string) => join(list, createHash('sha256').update(root).digest('hex'))

/**
 * Names the data of a dev that runs this service on another folder than `root`, as ` Dev runs with DEV_DATA_DIR='…'.`
 */
export async function describeElsewhere(service: string, root: string, list = LIST): Promise<string> {
  const others = (await rootsIn(list)).filter((other) => other !== root)
  const running = await Promise.all(others.map((other) => findRunning(join(other, service))))
  const found = others.filter((_, index) => running[index]).map((other) => `DEV_DATA_DIR=${quoted(other)}`)
  return found.length > 0 ? ` Dev runs with ${found.join(' and with ')}: set that here, too.` : ''
}

async function rootsIn(list: string): Promise<string[]> {
  const files = await readdir(list).catch(() => [])
  const roots = await Promise.all(files.map((file) => readFile(join(list, file), 'utf8').catch(() => '')))
  // Another start may have created or deleted one just now.
  return roots.filter(Boolean)
}

/** Folders on which a dev runs some service. */
async function inUse(roots: readonly string[]): Promise<string[]> {
  const running = await Promise.all(
    roots.map((root) => Promise.all(['auth', 'media'].map((service) => findRunning(join(root, service))))),
  )
  return roots.filter((_, index) => running[index]?.some(Boolean))
}
