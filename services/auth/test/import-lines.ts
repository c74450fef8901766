import { importUsers } from '../src/flows/import/import-users.ts'
import type { TestService } from './service.ts'

/** Imports users into the database of a test service, as the command does. */
export async function importLines(service: TestService, lines: (object | string)[], dryRun = false) {
  const refused: [number, string][] = []
  const { config, db, newId, now } = service.deps
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const summary = await importUsers(
    {
      db,
      newId,
      now,
      audience: config.jwt.audience,
      role: config.jwt.defaultRole,
      dryRun,
      onRefused: (line, reason) => refused.push([line, reason]),
      onProgress: () => {},
    },
    (async function* () {
      yield Buffer.from(text)
    })(),
  )
  return { ...summary, reasons: refused.toSorted(([a], [b]) => a - b) }
}
