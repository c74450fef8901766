import { NIL_UUID } from '../src/db/uuid.ts'
import { importUsers } from '../src/flows/import/import-users.ts'
import type { TestService } from './service.ts'

/** Imports users into the database of a test service, as the command does. */
export async function importLines(service: TestService, lines: (object | string)[], dryRun = false) {
  const refused: [number, string][] = []
  const { config, db, events, log, newId, newRowId, now } = service.deps
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const summary = await importUsers(
    {
      ...{ config, db, events, log, newId, newRowId, now },
      actor: { id: NIL_UUID, email: 'cli', phone: null, user_metadata: {} },
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
