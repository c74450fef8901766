// One act on many clips of an owner, or of any tokens by an admin. Every step is a statement about all of them.
// Clips are locked in one order, so that two such requests never wait in a circle. Tests: flows/clips/bulk.
import { ApiError } from '@services/common/errors'
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, type ErrorCode } from '../../errors.ts'
import { type Act, type AdminActor, recordActs } from '../audit/audit.ts'
import { isExpired } from '../clips/access.ts'
import { allows } from '../tokens/scopes.ts'
import type { ApiToken } from '../tokens/tokens.store.ts'
import { type LockedClip, lockClips } from './change-clips.store.ts'

export type ClipResult = { id: string; ok: true } | { id: string; ok: false; code: ErrorCode; message: string }

export interface ClipsAct<Change = unknown> {
  /** Reads what `plan` needs about these clips, which are locked. */
  begin?(trx: Transaction<DB>, clips: readonly LockedClip[]): Promise<void>
  /** Decides about one clip. Throws what its own request would be refused with. */
  plan(clip: LockedClip): Change
  write(trx: Transaction<DB>, planned: readonly { clip: LockedClip; change: Change }[]): Promise<unknown>
  /** Entry of an admin's act on clips of others. */
  entry: Omit<Act, 'target'>
}

/** Returns a result for each id, in their order. A clip of another token is not found. */
export async function changeClips<Change>(
  deps: Pick<Deps, 'newId' | 'now'>,
  trx: Transaction<DB>,
  { token, by, ids, act }: { token: ApiToken; by: AdminActor; ids: readonly string[]; act: ClipsAct<Change> },
): Promise<ClipResult[]> {
  const locked = await lockClips(trx, ids, allows(token, 'admin') ? undefined : token.id)
  const clips = new Map(locked.map((clip) => [clip.id, clip]))
  await act.begin?.(
    trx,
    locked.filter((clip) => isThere(clip, deps.now())),
  )
  const planned: { clip: LockedClip; change: Change }[] = []
  const results = ids.map((id): ClipResult => {
    try {
      const clip = requireThere(clips.get(id), deps.now())
      planned.push({ clip, change: act.plan(clip) })
      return { id, ok: true }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { id, ok: false, code: error.code as ErrorCode, message: error.message }
    }
  })
  if (planned.length > 0) await act.write(trx, planned)
  const targets = planned.flatMap(({ clip }) => (clip.tokenId === token.id ? [] : clip.id))
  await recordActs(deps, trx, by, { ...act.entry, targets })
  return results
}

function requireThere(clip: LockedClip | undefined, now: Date): LockedClip {
  if (!clip) throw apiError('not_found')
  if (!isThere(clip, now)) throw apiError('gone')
  return clip
}

const isThere = (clip: LockedClip, now: Date): boolean => !clip.deletedAt && !isExpired(clip, now)
