// Migrations as files: `0001-name.sql`, applied in order, never edited once released. Their comments decide how they
// run, so `migrate --dry-run` shows all of it. Runner: migrate.ts. How to write one: CONTRIBUTING.md.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { tablePrefix } from '../database/pool.ts'

export interface MigrationFile {
  name: string
  sql: string
  /** Runs without a transaction, one statement after the other; any other file is one transaction. */
  isAlone: boolean
}

export interface LoneStatement {
  sql: string
  /** Repeated until it changes no row. */
  isRepeated: boolean
  /** SQL expression without which the statement is left out. */
  condition?: string | undefined
}

/** Reads the migrations of a folder in their order; `{{prefix}}` becomes the prefix of the namespace. */
export async function readMigrations(folder: string, namespace: string | undefined): Promise<MigrationFile[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).toSorted()
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(folder, file), 'utf8')
      return {
        name: basename(file, '.sql'),
        sql: text.replaceAll('{{prefix}}', tablePrefix(namespace)),
        isAlone: /^-- alone$/m.test(text.split('\n', 1)[0] ?? ''),
      }
    }),
  )
}

/** Splits the SQL of a file that runs alone at its blank lines. */
export function loneStatements(sql: string): LoneStatement[] {
  return sql
    .split(/\n\s*\n/)
    .filter((part) => /^(?!--)\S/m.test(part))
    .map((part) => ({
      sql: part,
      isRepeated: /^-- repeat$/m.test(part),
      condition: /^-- if (.+)$/m.exec(part)?.[1],
    }))
}

/** Statement as it is searched for words, which a comment may also use. */
export const withoutComments = (sql: string) => sql.replace(/--.*/g, '')
