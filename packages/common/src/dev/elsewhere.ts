// Data folders that a dev of this clone has used, so that a command that looks into another one can name them.
import { appendFile, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { quoted, REPOSITORY } from './dev-settings.ts'
import { findRunning } from './running.ts'

const LIST = join(REPOSITORY, 'node_modules/.cache/dev/data-folders')

/** More folders than run at once: then those without a dev are dropped. Each start records its folder again. */
const MAX_LISTED = 20

/** Records a data folder; a list that cannot be written is done without. */
export async function rememberDataRoot(root: string, list = LIST): Promise<void> {
  const known = await rootsIn(list)
  if (known.includes(root)) return
  await mkdir(dirname(list), { recursive: true }).catch(() => {})
  const isFull = known.length >= MAX_LISTED
  const added = isFull ? replaceList(list, [...(await inUse(known)), root]) : appendFile(list, `${root}\n`)
  await added.catch(() => {})
}

/** Names the data of a dev that runs this service on another folder than `root`, as ` Dev runs with DEV_DATA_DIR='…'.` */
export async function describeElsewhere(service: string, root: string, list = LIST): Promise<string> {
  const others = (await rootsIn(list)).filter((other) => other !== root)
  const running = await Promise.all(others.map((other) => findRunning(join(other, service))))
  const found = others.filter((_, index) => running[index]).map((other) => `DEV_DATA_DIR=${quoted(other)}`)
  return found.length > 0 ? ` Dev runs with ${found.join(' and with ')}: set that here, too.` : ''
}

const rootsIn = async (list: string): Promise<string[]> =>
  (await readFile(list, 'utf8').catch(() => '')).split('\n').filter(Boolean)

/** Folders on which a dev runs some service. */
async function inUse(roots: readonly string[]): Promise<string[]> {
  const running = await Promise.all(
    roots.map((root) => Promise.all(['auth', 'media'].map((service) => findRunning(join(root, service))))),
  )
  return roots.filter((_, index) => running[index]?.some(Boolean))
}

async function replaceList(list: string, roots: readonly string[]): Promise<void> {
  const unfinished = `${list}.${process.pid}`
  await writeFile(unfinished, roots.map((root) => `${root}\n`).join(''))
  await rename(unfinished, list)
}
