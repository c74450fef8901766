// Events as differences between two states of a user, before and after a transaction. Everything that a flow does to a
// user shows here, so a new flow needs no code for its events. Stores of sessions and flows note the rest
// (db/watched-users.ts).
import type { SessionEnd } from '../../db/watched-users.ts'
import type { FactorBody, UserBody } from '../users/user-shape.ts'
import type { EventName } from './events.ts'
import type { UserState } from './user-state.store.ts'

export interface Told extends UserState {
  body: UserBody
}

export interface UserEvent {
  event: EventName
  about?: object
}

interface Change {
  before: Told | undefined
  after: Told | undefined
  now: Date
}

/** Events that `differences` returns for a user who existed before. */
export const OF_CHANGES = [
  ...(['user.updated', 'user.confirmed', 'user.deleted', 'user.banned', 'user.unbanned'] as const),
  ...(['password.changed', 'email.changed', 'phone.changed', 'identity.linked', 'identity.unlinked'] as const),
  ...(['factor.verified', 'factor.removed', 'passkey.created', 'passkey.removed'] as const),
] as const satisfies EventName[]

/** Events that it returns for a new user. */
export const OF_CREATION = ['user.created', 'user.confirmed', 'user.banned'] as const satisfies EventName[]

/** Lists the events in the order in which a receiver can follow them. */
export function differences({ before, after, now }: Change): UserEvent[] {
  if (!isLeft(after)) {
    // A soft deletion leaves a row.
    return isLeft(before) ? [{ event: 'user.deleted', about: { soft: after !== undefined } }] : []
  }
  return before ? changes(before, after, now) : creation(after, now)
}

/** Whether the user exists and is not anonymised. */
export const isLeft = (state: Told | undefined): state is Told => state !== undefined && !state.user.deleted_at

/** A created user's identities and factors are in it, and no events of their own. */
function creation({ user }: Told, now: Date): UserEvent[] {
  return [
    { event: 'user.created' },
    ...(user.confirmed_at ? [{ event: 'user.confirmed' as const }] : []),
    ...(isBanned(user, now) ? [{ event: 'user.banned' as const }] : []),
  ]
}

function changes(before: Told, after: Told, now: Date): UserEvent[] {
  const tell = (isSo: boolean, event: EventName, about?: object): UserEvent[] =>
    isSo ? [{ event, ...(about && { about }) }] : []
  const wasBanned = isBanned(before.user, now)
  const bannedNow = isBanned(after.user, now)
  return [
    ...missing(after.body.identities, before.body.identities, 'identity_id').flatMap((identity) =>
      tell(true, 'identity.linked', { identity }),
    ),
    ...missing(before.body.identities, after.body.identities, 'identity_id').flatMap((identity) =>
      tell(true, 'identity.unlinked', { identity }),
    ),
    ...missing(verified(after), verified(before), 'id').flatMap((factor) => tell(true, 'factor.verified', { factor })),
    ...missing(verified(before), verified(after), 'id').flatMap((factor) => tell(true, 'factor.removed', { factor })),
    ...missing(after.passkeys, before.passkeys, 'id').flatMap((passkey) => tell(true, 'passkey.created', { passkey })),
    ...missing(before.passkeys, after.passkeys, 'id').flatMap((passkey) => tell(true, 'passkey.removed', { passkey })),
    ...tell(before.passwordTag !== after.passwordTag, 'password.changed'),
    ...tell(before.user.email !== after.user.email, 'email.changed'),
    ...tell(before.user.phone !== after.user.phone, 'phone.changed'),
    ...tell(!before.user.confirmed_at && after.user.confirmed_at !== null, 'user.confirmed'),
    ...tell(shown(before) !== shown(after), 'user.updated'),
    ...tell(bannedNow && !wasBanned, 'user.banned'),
    ...tell(wasBanned && !bannedNow, 'user.unbanned'),
  ]
}

/** Returns why sessions ended, where their flow gave no reason. */
export function reasonOfEnd({ before, after }: Pick<Change, 'before' | 'after'>): SessionEnd {
  if (!isLeft(after)) return 'user_deleted'
  if (!before) return 'signed_out'
  if (before.passwordTag !== after.passwordTag) return 'password_changed'
  if (missing(before.body.identities, after.body.identities, 'identity_id').length > 0) return 'identity_unlinked'
  return missing(before.passkeys, after.passkeys, 'id').length > 0 ? 'passkey_removed' : 'signed_out'
}

/** Returns the items of one list that another lacks. */
function missing<Item extends object>(items: readonly Item[], others: readonly Item[], key: keyof Item): Item[] {
  const known = new Set(others.map((other) => other[key]))
  return items.filter((item) => !known.has(item[key]))
}

/** A set of recovery codes counts as a factor, as in the user's list. */
const verified = ({ body }: Told): FactorBody[] => (body.factors ?? []).filter(({ status }) => status === 'verified')

/** Members whose change updates a user: not times, and not an address that is only requested. */
const shown = ({ user }: Told): string =>
  JSON.stringify([
    ...[user.aud, user.role, user.email, user.phone, user.is_anonymous, user.banned_until, user.invited_at],
    ...[user.email_confirmed_at, user.phone_confirmed_at, user.app_metadata, user.user_metadata],
  ])

const isBanned = ({ banned_until: until }: UserState['user'], now: Date): boolean =>
  until !== null && Date.parse(until) > now.getTime()
