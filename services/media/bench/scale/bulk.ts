import type { lookInto } from '@services/common/bench/postgres'
import type { startReport } from '@services/common/bench/report'
import { OWNER_ID, OWNER_TOKEN } from './load-clips.ts'

/** Clips of a request, or as many as the largest token of a short run has. */
const CLIPS = 500
const BOUND_MS = 2_000

/** Measures acts on 500 clips of the largest token; the last one deletes them. */
export async function measureBulk(
  { report, database }: { report: ReturnType<typeof startReport>; database: ReturnType<typeof lookInto> },
  base: string,
): Promise<void> {
  const { rows } = await database.pool.query(
    `select id from clips where token_id = '${OWNER_ID}' and deleted_at is null order by created_at desc limit ${CLIPS}`,
  )
  const ids = rows.map(({ id }) => id)
  for (const act of [
    { action: 'tag', tags: ['bulk'] },
    { action: 'visibility', visibility: 'unlisted' },
    { action: 'delete' },
  ]) {
    const startedAt = performance.now()
    const answer = await fetch(`${base}/media/bulk`, {
      method: 'POST',
      headers: { token: OWNER_TOKEN, 'content-type': 'application/json', 'idempotency-key': act.action },
      body: JSON.stringify({ ids, ...act }),
    })
    const { success } = (await answer.json()) as { success?: { results: { ok: boolean }[] } }
    const ms = performance.now() - startedAt
    if (!success?.results.every(({ ok }) => ok)) throw new Error(`${act.action} of many clips was refused`)
    report.row({
      ...{ id: `bulk-${act.action}`, what: `POST /media/bulk, ${act.action} of ${CLIPS} clips`, against: 'the bound' },
      ...{ unit: 'ms', ours: ms, theirs: BOUND_MS, compared: 'ratio', goal: { atMost: 1 } },
    })
  }
}
