// A check of the stored files in the background, which administrators begin; it repairs nothing. Tests:
// ../admin/storage.test.ts.
import { hostname } from 'node:os'
import type { QueueJob } from '@services/common/queue/run-job'
import { finishCheck, setCheckWorker } from '../../core/administration/storage.store.ts'
import { type CheckJob, STORAGE_QUEUE } from '../../core/administration/storage-queue.ts'
import type { StorageResult } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { type Survey, survey } from './survey.ts'

/** Findings that are kept; all are counted. */
const MAX_KEPT = 100

export async function runStoredCheck(deps: Deps, { data, retryCount, signal }: QueueJob<CheckJob>): Promise<void> {
  const { db, log, now } = deps
  if (!(await setCheckWorker(db, data.checkId, hostname()))) return
  try {
    const found = await survey(deps, { deep: false, fix: false, signal })
    await finishCheck(db, data.checkId, { result: toResult(found), now: now() })
    log.info({ files: found.files, found: found.found }, 'stored files checked')
  } catch (err) {
    if (signal.aborted || retryCount < STORAGE_QUEUE.retryLimit) throw err
    log.error({ err }, 'stored files not checked')
    await finishCheck(db, data.checkId, { error: (err as Error).message.slice(0, 500), now: now() })
  }
}

export const toResult = ({ files, bytes, rows, found, findings }: Survey): StorageResult => ({
  ...{ files, bytes, rows, found, findings: findings.slice(0, MAX_KEPT) },
})
