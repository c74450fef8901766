// Asks the operator's scanner about each new source, and applies its verdict to all clips of the source. No clip waits
// for the scanner without an end. One that is held (MEDIA_SCAN_REQUIRED) fails after a day, any other is published
// meanwhile. Tests: test/scanner.test.ts.
import type { QueueJob } from '@services/common/queue/run-job'
import type { Transaction } from 'kysely'
import { failSource } from '../../core/lifecycle/fail-source.ts'
import { lockClipsOf, markNsfw } from '../../core/lifecycle/moderate.store.ts'
import { afterDecision, blockBytes, hideAndNotify, record } from '../../core/lifecycle/moderate.ts'
import { lockBytes, lockDescendants } from '../../core/reports/blocked-bytes.store.ts'
import { findSource, originalOf, type SourceRow, setVerdict } from '../../core/sources/sources.store.ts'
import type { DB, Verdict } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { countClip, countScan } from '../../metrics.ts'
import { mayQueueExtras } from './add-extras.ts'
import { askScanner } from './ask-scanner.ts'
import { dropAbandoned } from './drop-abandoned.ts'
import { release } from './publish-source.ts'
import { SCAN_QUEUE, type ScanJob, tenantOf } from './queues.ts'

/** A day: long enough for an operator to repair the scanner. */
const GIVE_UP_AFTER_MS = 86_400_000

/** The delay doubles: a restart of the scanner costs seconds, a night of it about a hundred requests a clip. */
const [SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS] = [5, 600]

export async function scanSource(deps: Deps, job: QueueJob<ScanJob>): Promise<void> {
  const { scanner } = deps.config.moderation
  const source = await findSource(deps.db, job.data.sourceId)
  if (!scanner || !source || source.verdict !== null || !(source.state === 'ready' || source.held)) return
  if (source.held && source.clip_count === 0 && (await dropAbandoned(deps, source))) return
  const answer = await askScanner(deps, scanner, source, job.signal).catch((err: unknown) => ({ err }))
  if (typeof answer === 'string') return applyVerdict(deps, source, answer, job.data)
  job.signal.throwIfAborted()
  await postpone(deps, source, job, answer.err)
}

async function postpone(deps: Deps, source: SourceRow, job: QueueJob<ScanJob>, err: unknown): Promise<void> {
  const { attempts, since, way } = job.data
  const facts = { err, sourceId: source.id, attempts: attempts + 1 }
  if (deps.now().getTime() - since > GIVE_UP_AFTER_MS) {
    countScan('failed')
    deps.log.error(facts, 'scan given up: no verdict for a day')
    if (source.held) await failSource(deps, source.id, { code: 'scan_timeout', details: undefined, way })
    return
  }
  countScan('retried')
  deps.log.warn(facts, 'scan failed, will retry')
  const afterSeconds = Math.min(LONGEST_WAIT_SECONDS, SHORTEST_WAIT_SECONDS * 2 ** Math.min(attempts, 10))
  const next: ScanJob = { ...job.data, attempts: attempts + 1 }
  await deps.db
    .transaction()
    .execute((trx) => deps.queue.send(trx, SCAN_QUEUE.name, next, { afterSeconds, tenant: tenantOf(source.token_id) }))
}

async function applyVerdict(deps: Deps, source: SourceRow, verdict: Verdict, { way }: ScanJob): Promise<void> {
  const withExtras = verdict !== 'block' && (await mayQueueExtras(deps, source.id))
  const done = await deps.db.transaction().execute(async (trx) => {
    const { sha256 } = originalOf(source)
    const bytes = verdict === 'block' ? await lockDescendants(trx, sha256) : undefined
    // No clip joins between the next statements.
    if (!bytes) await lockBytes(trx, [sha256])
    const ids = (await lockClipsOf(trx, [source.id])).map(({ id }) => id)
    if (!(await setVerdict(trx, source.id, verdict))) return undefined
    const [clipId] = ids
    const judged =
      bytes && clipId ? await blockBytes(deps, trx, { ...bytes, clipId }) : await judge(deps, trx, ids, verdict)
    if (verdict !== 'ok') await record(deps, trx, judged, { ...decisionOf(verdict), answers: { clipIds: judged } })
    const isReleased = source.held && verdict !== 'block' && (await release(deps, trx, source.id, withExtras))
    return { judged, isReleased }
  })
  if (!done) return
  countScan(verdict)
  if (done.isReleased) countClip(way ?? 'unknown', 'ready')
  if (verdict !== 'ok') afterDecision(deps, done.judged, decisionOf(verdict))
}

const decisionOf = (verdict: Exclude<Verdict, 'ok'>) =>
  ({ action: verdict, origin: 'scanner', reason: 'scanner', note: null, tokenId: null }) as const

async function judge(deps: Deps, trx: Transaction<DB>, ids: string[], verdict: Verdict): Promise<string[]> {
  if (verdict === 'nsfw') await markNsfw(trx, ids, true)
  if (verdict === 'hide') await hideAndNotify(deps, trx, ids, { reason: 'scanner', origin: 'scanner' })
  return ids
}
