import { command, printResult, UsageError } from '@services/common/process/command-line'
import { type AuditEntry, listEntries } from '../../core/audit/audit.store.ts'
import { onDatabase } from '../../on-database.ts'

const MAX_LISTED = 1_000

const auditList = command({
  name: 'audit list',
  summary: 'list acts of admins and commands, newest first',
  options: {
    target: { value: 'ID', meaning: 'only those on this clip or token' },
    limit: { value: 'N', meaning: `largest number, up to ${MAX_LISTED}; 50 if absent` },
  },
  run: async ({ options: { target, limit = '50' }, json }) => {
    if (!/^[1-9]\d*$/.test(limit) || Number(limit) > MAX_LISTED)
      throw new UsageError(`--limit must be a number from 1 to ${MAX_LISTED}`)
    const entries = await onDatabase(({ db }) => listEntries(db, { target }, { limit: Number(limit) }))
    if (json || entries.length > 0) printResult(json, entries, entries.map(toLine).join('\n'))
  },
})

export const auditCommands = [auditList]

const toLine = ({ created_at: at, action, target, origin, details, ...by }: AuditEntry): string => {
  const actor = [by.token_id ?? by.operator, by.address].filter(Boolean).join(' ')
  return [at.toISOString(), action, target ?? 'all files', origin, actor, JSON.stringify(details)].join('  ')
}
