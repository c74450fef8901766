// The `webhooks` commands. Routes: webhooks.routes.ts.
import { DURATION_FORM, parseDurationSeconds } from '@services/common/config/duration'
import { command, printResult, UsageError } from '@services/common/process/command-line'
import { audit } from '../../../core/audit/audit.ts'
import { restartSince } from '../../../core/webhooks/deliveries.store.ts'
import { giveUpAt } from '../../../db/events.store.ts'
import { UUID } from '../../../db/uuid.ts'
import { type CommandDeps, onDatabase } from '../../../on-database.ts'

export const webhooksReplay = command({
  name: 'webhooks replay',
  summary: 'send delivered and failed events again, in their order',
  options: {
    since: { value: 'TIME', meaning: `from this time on: RFC 3339, or ${DURATION_FORM} ago` },
    webhook: { value: 'UUID', meaning: 'id of one receiver; all if absent' },
  },
  details: 'Events are kept for AUTH_WEBHOOK_RETENTION. The ids stay, so that a receiver recognizes a repetition.',
  run: async ({ options: { since: given, webhook }, json }) => {
    if (!given) throw new UsageError('needs --since')
    if (webhook && !UUID.test(webhook)) throw new UsageError('--webhook must be the id of a webhook')
    await onDatabase(async (deps) => {
      const since = momentOf(given, deps.now())
      if (!since) throw new UsageError(`--since must be a time such as 2026-01-31T12:00:00Z, or ${DURATION_FORM}`)
      const events = await replay(deps, since, webhook)
      printResult(json, { events }, `${events} events are sent again`)
    })
  },
})

/** Events of one transaction, each with an audit entry of its own: its locks delay a deletion of their users. */
const REPLAYED_AT_ONCE = 5_000

async function replay(deps: CommandDeps, since: Date, webhookId: string | undefined): Promise<number> {
  const now = deps.now()
  const range = { since, webhookId, now, giveUpAt: giveUpAt(now), limit: REPLAYED_AT_ONCE }
  let events = 0
  let after: Parameters<typeof restartSince>[1]['after']
  do {
    const batch = await replayBatch(deps, { ...range, after })
    events += batch.events
    after = batch.last
  } while (after)
  return events
}

const replayBatch = (deps: CommandDeps, range: Parameters<typeof restartSince>[1]) =>
  deps.db.transaction().execute(async (trx) => {
    const batch = await restartSince(trx, range)
    const traits = { events: batch.events, ...(range.webhookId && { webhook_id: range.webhookId }) }
    await audit(deps, trx, deps.log, { action: 'webhooks_replayed', actor: deps.operator, traits })
    return batch
  })

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/

function momentOf(text: string, now: Date): Date | undefined {
  const seconds = parseDurationSeconds(text)
  if (seconds !== undefined) return new Date(now.getTime() - seconds * 1000)
  const time = RFC_3339.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : new Date(time)
}
