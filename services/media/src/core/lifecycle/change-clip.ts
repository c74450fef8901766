// Changes of a clip by its owner or an admin: its texts, visibility and lifetime. Tests: test/clip-life.test.ts.
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { auditAdmin } from '../audit/audit.ts'
import { type AccessChanges, applyAccess, isExpired } from '../clips/access.ts'
import type { ClipFields } from '../clips/clip-fields.ts'
import { lockAccess, lockClip, updateClip } from '../clips/clips.store.ts'

interface Steps {
  alongside: ReturnType<typeof auditAdmin>
  /** Throws where the clip, which is locked, is not as the caller knows it. */
  precondition?: ((trx: Kysely<DB>) => Promise<void>) | undefined
  /** Change of the poster, when the clip is locked. */
  poster?: ((trx: Transaction<DB>) => Promise<void>) | undefined
}

export async function changeTexts(
  { db }: Pick<Deps, 'db'>,
  id: string,
  { texts, alongside, precondition, poster }: Steps & { texts: Partial<ClipFields> },
): Promise<void> {
  const change = async (on: Kysely<DB>) => {
    if (Object.keys(texts).length > 0 && !(await updateClip(on, id, texts))) throw apiError('gone')
    await alongside?.(on)
  }
  const changeLocked = async (trx: Transaction<DB>) => {
    if (!(await lockClip(trx, id))) throw apiError('gone')
    await precondition?.(trx)
    await change(trx)
    await poster?.(trx)
  }
  // The owner's change is one statement.
  await (precondition || poster
    ? db.transaction().execute(changeLocked)
    : alongside
      ? db.transaction().execute(change)
      : change(db))
}

/** Locks the clip first: another change at once must not bring back what this one replaces. */
export async function changeAccess(
  { db, knownFiles, now }: Pick<Deps, 'db' | 'knownFiles' | 'now'>,
  id: string,
  { texts, access, alongside, precondition, poster }: Steps & { texts: Partial<ClipFields>; access: AccessChanges },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const current = await lockAccess(trx, id)
    if (!current || isExpired(current, now())) throw apiError('gone')
    await precondition?.(trx)
    await updateClip(trx, id, { ...texts, access: applyAccess(current, access, now()) })
    await poster?.(trx)
    await alongside?.(trx)
  })
  knownFiles.evict(id)
}
