import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Folders of servers, which Debian has in root's PATH alone. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin']

/** Chromium that browser tests drive: CHROMIUM_PATH, else Debian's. */
export const CHROMIUM = process.env.CHROMIUM_PATH || '/usr/bin/chromium'

/** Programs that npm does not bring. `.ci/install-programs` installs them; elsewhere their tests are skipped. */
const PROGRAMS = {
  chromium: { path: CHROMIUM, missing: 'Chromium is missing: apt-get install chromium, or set CHROMIUM_PATH' },
  nginx: { path: 'nginx', missing: 'nginx is missing: apt-get install nginx-light' },
  promtool: { path: 'promtool', missing: 'promtool is missing: apt-get install prometheus' },
}

/** Tags for tests that need a program, as in `test('…', { tags: 'nginx' }, …)`. Without the program they are skipped. */
export const PROGRAM_TAGS = Object.entries(PROGRAMS).map(([name, { path, missing }]) => ({
  name,
  description: missing,
  skip: findProgram(path) === undefined,
}))

/** Absolute path of a program, looked up as a shell does; undefined where it is missing. */
export function findProgram(name: string): string | undefined {
  const folders = name.includes('/') ? [''] : [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
