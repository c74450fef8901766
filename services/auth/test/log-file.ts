import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Settings of a log file that the end of the test deletes, and its lines, written a tenth of a second late. */
export async function startLogFile(level = 'info') {
  const folder = await mkdtemp(join(tmpdir(), 'auth-log-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'log')
  const text = () => readFile(file, 'utf8').catch(() => '')
  const lines = async () =>
    (await text())
      .split('\n')
      // The last one may be half written, or empty.
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  return {
    settings: { AUTH_LOG_LEVEL: level, AUTH_LOG_FILE: file },
    text,
    lines,
    /** Lines with this message. */
    about: async (message: string) => (await lines()).filter(({ msg }) => msg === message),
  }
}
