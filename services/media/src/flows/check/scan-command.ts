import { setTimeout as sleep } from 'node:timers/promises'
import { command, printResult, UsageError } from '@services/common/process/command-line'
import { openServiceQueue } from '@services/common/process/service-database'
import type { Kysely } from 'kysely'
import { completeAct, recordAct } from '../../core/audit/audit.ts'
import type { DB } from '../../db/tables.ts'
import { type Deps, SCHEMA } from '../../deps.ts'
import { SCAN_QUEUE, scanJobOf } from '../../make/jobs/queues.ts'
import { byOperator, onDatabase } from '../../on-database.ts'

/** Tenant of earlier sources: a clip that is added meanwhile waits for a few of them alone. */
const EARLIER = 'earlier'

/** Sources of one transaction. */
const BATCH = 100
/** Jobs that wait at most, so that a million earlier sources do not fill the queue. */
const MOST_WAITING = 200
const LOOK_AGAIN_MS = 1_000

const blobsScan = command({
  name: 'blobs scan',
  summary: 'let the scanner judge the sources that it has not judged yet',
  details: `It queues the sources a few at a time, as fast as the workers scan them. It may be stopped and begun again.`,
  run: ({ json }) =>
    onDatabase(async (deps) => {
      if (!deps.config.moderation.scanner) throw new UsageError('needs MEDIA_SCAN_URL')
      const queue = await openServiceQueue(SCHEMA, deps.config, deps.log, { migrate: false, supervise: false })
      try {
        // Before the first source, because the command may be killed.
        const entry = await recordAct(deps, deps.db, byOperator(deps), { action: 'scans_queued' })
        const queued = await queueScans({ ...deps, queue })
        await completeAct(deps.db, entry, { queued })
        printResult(json, { queued }, `${queued} sources queued`)
      } finally {
        await queue.stop(1_000)
      }
    }),
})

export const scanCommands = [blobsScan]

/** Queues all ready sources without a verdict; returns their number. */
async function queueScans(deps: Pick<Deps, 'db' | 'queue' | 'now'>): Promise<number> {
  const { db, queue } = deps
  let queued = 0
  for (let ids = await listUnscanned(db, undefined); ids.length > 0; ids = await listUnscanned(db, ids.at(-1))) {
    while (await isFull(deps)) await sleep(LOOK_AGAIN_MS)
    await db.transaction().execute(async (trx) => {
      for (const id of ids) {
        if (await queue.has(trx, SCAN_QUEUE.name, { sourceId: id })) continue
        await queue.send(trx, SCAN_QUEUE.name, scanJobOf(deps, id), { tenant: EARLIER })
        queued++
      }
    })
  }
  return queued
}

const isFull = async ({ db, queue }: Pick<Deps, 'db' | 'queue'>): Promise<boolean> => {
  const waiting = await db.transaction().execute((trx) => queue.waitingOf(trx, SCAN_QUEUE.name, EARLIER, MOST_WAITING))
  return waiting >= MOST_WAITING
}

async function listUnscanned(db: Kysely<DB>, after: string | undefined): Promise<string[]> {
  const rows = await db
    .selectFrom('sources')
    .select('id')
    .where('state', '=', 'ready')
    .where('verdict', 'is', null)
    .$if(after !== undefined, (query) => query.where('id', '>', after as string))
    .orderBy('id')
    .limit(BATCH)
    .execute()
  return rows.map(({ id }) => id)
}
