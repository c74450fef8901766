import { once } from 'node:events'
import { CommandFailure, command, UsageError } from '@services/common/process/command-line'
import { findAuditPosition, listOldestAuditEntries } from '../../core/audit/list-audit.store.ts'
import { readDatabaseTime } from '../../db/database-clock.ts'
import type { Position } from '../../db/position.ts'
import { UUID } from '../../db/uuid.ts'
import { readTime } from '../../http/bodies/read-time.ts'
import { onReads } from '../../on-database.ts'

const PAGE = 500

/**
 * Longer than any request: an entry that is written with an older time after the export has passed it would be missing.
 */
const SETTLED_AFTER_MS = 60_000

const DETAILS = `One entry a line: id, created_at, ip_address and payload, as in GET /admin/audit. TIME is a date, or a time with its
zone, as in 2026-11-23T09:00:00Z. Entries of the last minute are left out: not all of them may be written.
--after continues an interrupted export behind the id of its last whole line, or a regular one where the last one ended.`

/** `audit export`. Reads a page at a time: memory does not grow with the number of entries. */
export const auditExport = command({
  name: 'audit export',
  summary: 'print entries of the audit log as JSON lines, oldest first',
  options: {
    from: { value: 'TIME', meaning: 'first time; that of the oldest entry if absent' },
    before: { value: 'TIME', meaning: 'first time that is left out; a minute ago if absent' },
    after: { value: 'ID', meaning: 'only entries behind this one' },
  },
  details: DETAILS,
  run: async ({ options }) => {
    const from = parseTime('from', options.from)
    const before = parseTime('before', options.before)
    const { after: id } = options
    if (id !== undefined && !UUID.test(id)) throw new UsageError('--after must be the id of an entry')
    await onReads(async (reads, { db: primary }) => {
      let after: Position | undefined
      if (id !== undefined) {
        after = await reads.current((db) => findAuditPosition(db, id))
        if (!after) throw new CommandFailure('there is no entry with this id: name the time of its line with --from')
      }
      const settled = new Date((await readDatabaseTime(primary)).getTime() - SETTLED_AFTER_MS)
      const range = { from, before: before && before < settled ? before : settled, limit: PAGE }
      for (;;) {
        const page = await reads.current((db) => listOldestAuditEntries(db, { ...range, after }))
        for (const { id, created_at, ip_address, payload } of page) {
          const line = JSON.stringify({ id, created_at: created_at.toISOString(), ip_address, payload })
          if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain')
        }
        const last = page.at(-1)
        if (!last || page.length < PAGE) return
        after = { id: last.id, created_at: last.place }
      }
    })
  },
})

function parseTime(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const time = readTime(text)
  if (!time) throw new UsageError(`--${name} must be a date or a time with its zone`)
  return time
}
