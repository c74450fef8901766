import { type Static, Type } from 'typebox'
import { accessRulesOf, applyAccess } from '../../../core/clips/access.ts'
import { cleanFields, invalidField, tagKey } from '../../../core/clips/clip-fields.ts'
import { holdSources, setAccess, setNsfw, setTags } from '../../../core/lifecycle/change-clips.store.ts'
import type { ClipsAct } from '../../../core/lifecycle/change-clips.ts'
import { softDeleteClips } from '../../../core/lifecycle/delete-clip.ts'
import type { ApiToken } from '../../../core/tokens/tokens.store.ts'
import type { Scope } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'
import { PatchBody, readAccess } from '../clip-changes.ts'
import { addToAlbum } from './album-act.ts'

const { tags, nsfw, visibility, expires_in, expires_at, sliding } = PatchBody.properties
const album = Type.Optional(Type.String({ maxLength: 64, description: 'Id of an album.' }))
const Members = Type.Object({ tags, nsfw, visibility, expires_in, expires_at, sliding, album })
type Members = Static<typeof Members>

/** Members of a request beside `ids` and `action`. */
export const ACT_MEMBERS = Members.properties

type Of<Change> = (deps: Deps, members: Members) => ClipsAct<Change>

/** `members`: those that the action may have; one of them at least, if there are any. */
interface Action {
  scope: Scope
  members: readonly (keyof Members)[]
  make: (deps: Deps, members: Members, token: ApiToken) => ClipsAct | Promise<ClipsAct>
}

const entryOf = (fields: readonly string[]) => ({ action: 'clip_changed' as const, details: { fields } })

const deleteClips: Of<undefined> = (deps) => ({
  plan: () => undefined,
  write: (trx, planned) =>
    softDeleteClips(
      deps,
      trx,
      planned.map(({ clip }) => clip),
    ),
  entry: { action: 'clip_deleted' },
})

/** A clip whose tags stay the same is not written. */
const changeTags =
  (merge: (present: string[], given: string[]) => string[]): Of<string[] | undefined> =>
  (_deps, members) => {
    const given = cleanTags(members.tags ?? [])
    if (given.length === 0) throw invalidField('tags', 'must name at least one')
    return {
      plan: ({ tags: present }) => {
        const merged = cleanTags(merge(present, given))
        return merged.length === present.length ? undefined : merged
      },
      write: async (trx, planned) => {
        const changed = planned.flatMap(({ clip, change }) => (change ? { ...clip, tags: change } : []))
        if (changed.length === 0) return
        await holdSources(trx, changed)
        await setTags(trx, changed)
      },
      entry: entryOf(['tags']),
    }
  }

const cleanTags = (texts: string[]) => cleanFields({ tags: texts }, 'attribution.').tags

const without = (present: string[], given: string[]) => {
  const keys = new Set(given.map(tagKey))
  return present.filter((tag) => !keys.has(tagKey(tag)))
}

const markNsfw: Of<undefined> = (_deps, { nsfw: isNsfw }) => ({
  plan: () => undefined,
  write: async (trx, planned) => {
    const clips = planned.map(({ clip }) => clip)
    await holdSources(trx, clips)
    await setNsfw(
      trx,
      clips.map(({ id }) => id),
      isNsfw ?? false,
    )
  },
  entry: entryOf(['nsfw']),
})

/** Clips without a token, which an admin may name, have narrower rules than those of an owner. */
const changeAccess: Of<ReturnType<typeof applyAccess>> = (deps, members) => {
  const read = (tokenId: string | null) => readAccess(members, accessRulesOf(deps, tokenId)) ?? {}
  read('an owner')
  return {
    plan: (clip) => applyAccess(clip, read(clip.tokenId), deps.now()),
    write: (trx, planned) =>
      setAccess(
        trx,
        planned.map(({ clip: { id }, change: access }) => ({ id, access })),
      ),
    entry: entryOf(Object.keys(members)),
  }
}

const ACTS = {
  delete: { scope: 'delete', members: [], make: deleteClips },
  tag: { scope: 'write', members: ['tags'], make: changeTags((present, given) => [...present, ...given]) },
  untag: { scope: 'write', members: ['tags'], make: changeTags(without) },
  visibility: { scope: 'write', members: ['visibility'], make: changeAccess },
  nsfw: { scope: 'write', members: ['nsfw'], make: markNsfw },
  album: { scope: 'write', members: ['album'], make: (deps, { album: id = '' }, token) => addToAlbum(deps, token, id) },
  lifetime: { scope: 'write', members: ['expires_in', 'expires_at', 'sliding'], make: changeAccess },
} as const satisfies Record<string, Action>

export type ActionName = keyof typeof ACTS
export const ACTIONS = Object.keys(ACTS) as ActionName[]

export const scopeOf = (action: ActionName): Scope => ACTS[action].scope

/** Reads the act of a request. Throws invalid_field for a value that no clip could have. */
export async function readAct(
  deps: Deps,
  token: ApiToken,
  { action, ...given }: Members & { action: ActionName },
): Promise<ClipsAct> {
  const { members, make }: Action = ACTS[action]
  const named = Object.keys(given) as (keyof Members)[]
  const stray = named.find((name) => !members.includes(name))
  if (stray) throw invalidField(stray, `is no member of the action ${action}`)
  const [first] = members
  if (first && named.length === 0) throw invalidField(first, `is required for the action ${action}`)
  return make(deps, given, token)
}
