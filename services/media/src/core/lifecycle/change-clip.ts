// Changes of a clip by its owner or an admin: its texts, visibility and lifetime. Tests: test/clip-life.test.ts.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { auditAdmin } from '../audit/audit.ts'
import { type AccessChanges, applyAccess, isExpired } from '../clips/access.ts'
import type { ClipFields } from '../clips/clip-fields.ts'
import { lockAccess, updateClip } from '../clips/clips.store.ts'

type Alongside = ReturnType<typeof auditAdmin>

export async function changeTexts(
  { db }: Pick<Deps, 'db'>,
  id: string,
  { texts, alongside }: { texts: Partial<ClipFields>; alongside: Alongside },
): Promise<void> {
  const change = async (on: Kysely<DB>) => {
    if (!(await updateClip(on, id, texts))) throw apiError('gone')
    await alongside?.(on)
  }
  // The owner's change is one statement.
  await (alongside ? db.transaction().execute(change) : change(db))
}

/** Locks the clip first: another change at once must not bring back what this one replaces. */
export async function changeAccess(
  { db, knownFiles, now }: Pick<Deps, 'db' | 'knownFiles' | 'now'>,
  id: string,
  { texts, access, alongside }: { texts: Partial<ClipFields>; access: AccessChanges; alongside: Alongside },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const current = await lockAccess(trx, id)
    if (!current || isExpired(current, now())) throw apiError('gone')
    await updateClip(trx, id, { ...texts, access: applyAccess(current, access, now()) })
    await alongside?.(trx)
  })
  knownFiles.evict(id)
}
