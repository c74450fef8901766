// Rights that the database denies a service's role: which right, on what, and for which statement. Its guide has the
// SQL that makes a role with all of them.
import { sqlStateOf } from './errors.ts'

/** Guide for the administrator of the database. */
const GUIDE = 'docs/prepare-the-database.md'

/** SQLSTATE of a missing right, and of a search path whose schemas are missing or not to be used. */
const MISSING_RIGHT_STATES = /^(42501|3F000)$/

export const isMissingRight = (error: unknown): boolean => MISSING_RIGHT_STATES.test(sqlStateOf(error) ?? '')

const refusedStatements = new WeakMap<Error, string>()

/** Keeps the text of a statement that lacked a right, because the server's error does not have it. */
export function recordRefusedStatement(error: unknown, text: string): void {
  if (isMissingRight(error)) refusedStatements.set(error as Error, text)
}

/** Explains a missing right; undefined for other errors. */
export function explainMissingRight(error: unknown): string | undefined {
  if (!isMissingRight(error)) return undefined
  const { message } = error as Error
  const text = refusedStatements.get(error as Error)
  const statement = text && firstNeeding(message, text)
  const cause = statement ? `${message} (statement: ${statement})` : message
  return `The role of DATABASE_URL lacks ${rightOf(message)}: ${cause}. ${GUIDE} has the SQL that grants it.`
}

function rightOf(message: string): string {
  const [, kind = '', name = ''] = /permission denied for (\w+(?: \w+)?) "?([^"]+)"?$/.exec(message) ?? []
  if (kind === 'database') return `the right CREATE on database "${name}"`
  if (kind === 'schema') return `the rights USAGE and CREATE on schema "${name}"`
  if (kind) return `the ownership of ${kind} "${name}"`
  const [, owned] = /must be owner of (.+)/.exec(message) ?? []
  if (owned) return `the ownership of ${owned}`
  if (/no schema has been selected/.test(message)) return 'a schema in its search_path with the rights USAGE and CREATE'
  return 'a right'
}

const LONGEST_STATEMENT = 120

/** The first statement of the text that needs the denied right, in one line. */
function firstNeeding(message: string, text: string): string {
  const needs = / database /.test(message) ? /\bcreate (schema|extension)\b[^;]*/i : /\b(create|alter|drop)\b[^;]*/i
  const bare = text.replaceAll(/--[^\n]*/g, '')
  const [statement] = needs.exec(bare) ?? [bare]
  const line = statement.trim().replaceAll(/\s+/g, ' ')
  return line.length > LONGEST_STATEMENT ? `${line.slice(0, LONGEST_STATEMENT)}…` : line
}
