import { randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import { deleteExtras, deleteRenditions, hasFile, isExtra } from '../../core/clips/renditions.store.ts'
import { failSource } from '../../core/lifecycle/fail-source.ts'
import { isOriginal, markLost } from '../../core/sources/sources.store.ts'
import { deleteVariantsOf, deleteVariantsWith } from '../../core/variants/variants.store.ts'
import { type EmitDeps, emitEvent } from '../../core/webhooks/emit-event.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import type { BlobName, StoredBlob } from '../../store/blobs/blob-storage.ts'
import { beginRepair, dropReferences, endDeletion } from '../../store/blobs/blobs.store.ts'
import { deleteIfUnreferenced } from '../../store/blobs/keep-files.ts'
import { listSourcesOf } from './check-blobs.store.ts'

type GiveUpDeps = Pick<Deps, 'db' | 'blobs' | 'announcements'> & EmitDeps

const BATCH = 100

/**
 * Gives up a file that is lost or differs from its hash (`stored`: its observed state). Its clips fail, and the same
 * bytes are transcoded again. Clips of a lost extra only lose their extras, and a lost variant is made again. False
 * when the file changed meanwhile. Uploads of the same bytes wait until its clips have failed.
 */
export async function giveUpFile(
  deps: GiveUpDeps,
  name: BlobName,
  stored: Omit<StoredBlob, 'name'> | undefined,
): Promise<boolean> {
  const { db, now } = deps
  const generation = randomUUID()
  const isBegun = await db.transaction().execute((trx) => beginRepair(trx, name, { generation, now: now() }))
  if (!isBegun) return false
  const isGivenUp = await giveUpAll(deps, name, stored).finally(() =>
    db.transaction().execute((trx) => endDeletion(trx, [name], { generation, gone: [] })),
  )
  if (isGivenUp) await deleteIfUnreferenced(deps, name)
  return isGivenUp
}

async function giveUpAll(
  deps: GiveUpDeps,
  name: BlobName,
  stored: Omit<StoredBlob, 'name'> | undefined,
): Promise<boolean> {
  const { db, blobs } = deps
  const found = await blobs.stat(name)
  if (found?.bytes !== stored?.bytes || found?.storedAt.getTime() !== stored?.storedAt.getTime()) return false
  // Uploads store it again.
  await blobs.delete(name)
  for (let ids = await listSourcesOf(db, name, BATCH); ids.length > 0; ) {
    for (const id of ids) if (!(await giveUpSource(deps, id, name))) return false
    ids = await listSourcesOf(db, name, BATCH)
  }
  return true
}

async function giveUpSource(deps: GiveUpDeps, id: string, lost: BlobName): Promise<boolean> {
  if (isOriginal(lost)) {
    await failSource(deps, id, { code: 'internal', details: undefined })
    return true
  }
  const now = deps.now()
  try {
    await deps.db.transaction().execute(async (trx) => {
      const variants = await deleteVariantsWith(trx, id, lost)
      const isOwn = await hasFile(trx, id, lost)
      const isVital = isOwn && !isExtra(lost.extension)
      const gone = isVital ? await failReady(trx, id, now) : isOwn ? await deleteExtras(trx, id) : []
      await dropReferences(trx, [...variants, ...gone], now)
      if (isVital) await emitEvent(deps, trx, 'media.failed', { sourceId: id })
    })
    return true
  } catch (error) {
    if (error instanceof ChangedMeanwhile) return false
    throw error
  }
}

/** Returns the names of the source's files. */
async function failReady(trx: Transaction<DB>, id: string, now: Date): Promise<BlobName[]> {
  if (!(await markLost(trx, id, now))) throw new ChangedMeanwhile()
  return [...(await deleteRenditions(trx, id)), ...(await deleteVariantsOf(trx, [id]))]
}

/** The source was deleted: nothing is given up. */
class ChangedMeanwhile extends Error {
  override readonly name = 'ChangedMeanwhile'
}
