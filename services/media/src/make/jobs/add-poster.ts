// Makes the poster that an owner chose, as a variant of the source, and shows it. The old one stays until then, and if
// it fails. Tests: flows/clips/posters.test.ts.
import { join } from 'node:path'
import type { QueueJob } from '@services/common/queue/run-job'
import type { Transaction } from 'kysely'
import {
  failPoster,
  isPosterWanted,
  listWaitingPosters,
  lockPoster,
  type PosterChange,
  showPoster,
} from '../../core/clips/posters.store.ts'
import { findSource } from '../../core/sources/sources.store.ts'
import { takeClaim } from '../../core/variants/take-claim.ts'
import { deletePoster, deleteVariants, findStored } from '../../core/variants/variants.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { dropReferences } from '../../store/blobs/blobs.store.ts'
import { workFiles } from '../command/work-files.ts'
import { makeVariant } from '../variants/store-variant.ts'
import { VARIANTS_QUEUE, type VariantJob } from './queues.ts'

export async function changePoster(deps: Deps, job: QueueJob<VariantJob>, poster: PosterChange): Promise<void> {
  const { log, db } = deps
  const { sourceId } = job.data
  // A later change, or the deletion of the clip, has ended this one.
  if (!(await isPosterWanted(db, poster))) return
  try {
    const placeholder = await makePoster(deps, job)
    await show(deps, job.data, poster, placeholder)
    deps.knownFiles.evict(poster.clipId)
  } catch (err) {
    if (job.signal.aborted || job.retryCount < VARIANTS_QUEUE.retryLimit) throw err
    log.error({ err, sourceId, clipId: poster.clipId }, 'poster not made')
    await failPoster(db, poster)
  }
}

/** Makes the picture unless the source has it. Returns its thumbhash. */
async function makePoster(deps: Deps, { data, signal }: QueueJob<VariantJob>): Promise<Buffer> {
  const { db, now, blobs } = deps
  const { sourceId, name, variant } = data
  if (!(await findStored(db, data))) {
    const source = await findSource(db, sourceId)
    if (source?.state !== 'ready') throw new Error('the source of the poster is not ready')
    const claim = { sourceId, name, claimedAt: now() }
    await db.transaction().execute(async (trx) => {
      await deleteVariants(trx, [data], { unusedBefore: now(), state: 'failed' })
      // The claim of a killed attempt is taken over; a job that still has it stores nothing.
      await takeClaim(trx, claim, variant, claim.claimedAt)
    })
    await deps.work.withSpace(source.bytes, () => makeVariant(deps, claim, { info: source.info, variant, signal }))
  }
  const stored = await findStored(db, data)
  if (!stored) throw new Error('the poster is not stored')
  await using directory = await deps.work.newDirectory()
  const path = join(directory.path, workFiles.jpg)
  const isCopied = await blobs.copyTo({ sha256: stored.sha256, extension: 'jpg' }, path, signal)
  if (!isCopied) throw new Error('the poster is not in the store')
  const { makePlaceholder } = await import('../poster/encode-poster.ts')
  // Before the directory is removed.
  return await makePlaceholder(path)
}

async function show(
  deps: Deps,
  { sourceId, name, variant }: VariantJob,
  poster: PosterChange,
  placeholder: Buffer,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const old = await lockPoster(trx, poster)
    if (!old) return
    // It may have been deleted meanwhile, as no clip showed it yet.
    if (!(await findStored(trx, { sourceId, name }))) throw new Error('the poster is not stored')
    const now = deps.now()
    await showPoster(trx, poster.clipId, { poster: { at: variant.atSeconds ?? 0, name, placeholder }, now })
    await dropPoster(deps, trx, { sourceId, name: old.name })
  })
}

/** Deletes a poster that no clip shows any more. */
export async function dropPoster(
  { now }: Pick<Deps, 'now'>,
  trx: Transaction<DB>,
  { sourceId, name }: { sourceId: string; name: string | null },
): Promise<void> {
  if (name !== null) await dropReferences(trx, await deletePoster(trx, { sourceId, name }), now())
}

const MOST_RESCUED = 200

/** Fails changes whose jobs were lost: the owner sees it, and asks again. */
export async function rescuePosters(
  { db, queue, log }: Pick<Deps, 'db' | 'queue' | 'log'>,
  before: Date,
): Promise<void> {
  for (const { clipId, request, sourceId } of await listWaitingPosters(db, before, MOST_RESCUED)) {
    if (request === null || sourceId === null) continue
    const isFailed = await db.transaction().execute(async (trx) => {
      if (await queue.has(trx, VARIANTS_QUEUE.name, { sourceId, request })) return false
      return failPoster(trx, { clipId, request })
    })
    if (isFailed) log.warn({ clipId, sourceId }, 'poster given up: its job was lost')
  }
}
