// Changes of a clip's poster, as PATCH asks for them. The picture is made by a job: make/jobs/add-poster.ts.
import type { Transaction } from 'kysely'
import { invalidField } from '../../core/clips/clip-fields.ts'
import type { Clip } from '../../core/clips/clips.store.ts'
import { askForPoster, forgetChange, lockPoster, showPoster } from '../../core/clips/posters.store.ts'
import { cleanEdit } from '../../core/edits/edit.ts'
import { requireStorage } from '../../core/variants/require-storage.ts'
import { nameOfVariant, posterAt } from '../../core/variants/variant.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, busy } from '../../errors.ts'
import { dropPoster } from '../../make/jobs/add-poster.ts'
import { tenantOf, VARIANTS_QUEUE, type VariantJob } from '../../make/jobs/queues.ts'
import { variantWeight } from '../../make/variants/variant-weight.ts'

/** Size of a poster that a quota has to have room for; most are smaller. */
const POSTER_BYTES = 500_000

/** Reads `poster_at`; null: automatic, undefined: no change. Throws invalid_field and edit_out_of_range. */
export function readPoster(given: number | string | null | undefined, clip: Clip): number | null | undefined {
  if (given === undefined || given === null) return given
  const at = cleanEdit({ poster_at: given })?.posterAt
  if (at === undefined) throw invalidField('poster_at', 'must be a second of the clip, or null')
  if (clip.state !== 'ready') throw invalidField('poster_at', 'can be changed when the clip is ready')
  const { durationSeconds } = clip.info
  if (at >= durationSeconds) {
    const message = `poster_at must be before the end of the clip, which lasts ${durationSeconds} seconds.`
    throw apiError('edit_out_of_range', { message, details: { param: 'poster_at', duration: durationSeconds } })
  }
  return at
}

/** Step of a transaction that has locked the clip. Throws quota_exceeded and busy. */
export async function preparePosterChange(
  deps: Deps,
  { id: clipId, sourceId, tokenId, info }: Clip,
  at: number | null,
): Promise<(trx: Transaction<DB>) => Promise<void>> {
  if (at === null) return (trx) => showAutomatic(deps, trx, clipId, sourceId)
  const variant = posterAt(at)
  await requireStorage(deps, variant, tokenId, POSTER_BYTES)
  const turn = { tenant: tenantOf(tokenId), weight: variantWeight(info, variant) }
  const most = deps.config.worker.queueLimitPerToken
  return async (trx) => {
    const request = deps.newId()
    await askForPoster(trx, { clipId, request }, { at, now: deps.now() })
    const job: VariantJob = { sourceId, name: nameOfVariant(variant), variant, clipId, request }
    await deps.queue.send(trx, VARIANTS_QUEUE.name, job, turn)
    if ((await deps.queue.waitingOf(trx, VARIANTS_QUEUE.name, turn.tenant, most + 1)) > most) throw busy(true)
  }
}

async function showAutomatic(deps: Deps, trx: Transaction<DB>, clipId: string, sourceId: string): Promise<void> {
  const shown = await lockPoster(trx, { clipId })
  if (!shown) throw apiError('gone')
  if (shown.name === null) return void (await forgetChange(trx, clipId))
  await showPoster(trx, clipId, { poster: null, now: deps.now() })
  await dropPoster(deps, trx, { sourceId, name: shown.name })
}
