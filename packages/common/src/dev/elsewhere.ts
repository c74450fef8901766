// Data folders that a dev of this clone has used, so that a command that looks into another one can name them.
import { appendFile, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { quoted, REPOSITORY } from './dev-settings.ts'
import { findRunning } from './running.ts'

const LIST = join(REPOSITORY, 'node_modules/.cache/dev/data-folders')

/** Records a data folder; a list that cannot be written is done without. */
export async function rememberDataRoot(root: string, list = LIST): Promise<void> {
  if ((await rootsIn(list)).includes(root)) return
  await mkdir(dirname(list), { recursive: true }).catch(() => {})
  await appendFile(list, `${root}\n`).catch(() => {})
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
