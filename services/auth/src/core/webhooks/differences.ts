// Events as differences between two states of a user, before and after a transaction. Everything that a flow does to a
// user shows here, so a new flow needs no code for its events. A flow notes the rest (db/watched-users.ts).
import type { SessionEnd } from '../../db/watched-users.ts'
import type { FactorBody, UserBody } from '../users/user-shape.ts'
import type { EventName } from './events.ts'
import type { UserState } from './user-state.store.ts'

export interface Told extends UserState {
  body: UserBody
}

export interface UserEvent {
  event: EventName
  user: UserBody | { id: string }
  about?: object
}

interface Change {
  before: Told | undefined
  after: Told | undefined
  /** Reason that the flow gave for the end of sessions. */
  sessionsEnd?: SessionEnd | undefined
  now: Date
}

/** Lists the events in the order in which a receiver can follow them: created first, deleted last. */
export function differences(change: Change): UserEvent[] {
  const { before, after } = change
  if (!after || after.user.deleted_at) return before && !before.user.deleted_at ? deletion({ ...change, before }) : []
  const events: UserEvent[] = before ? changes({ ...change, before, after }) : creation(after, change.now)
  return [...events, ...sessions({ ...change, after })]
}

/** A created user's identities and factors are in it, and no events of their own. */
function creation({ user, body }: Told, now: Date): UserEvent[] {
  return [
    { event: 'user.created', user: body },
    ...(user.confirmed_at ? [{ event: 'user.confirmed' as const, user: body }] : []),
    ...(isBanned(user, now) ? [{ event: 'user.banned' as const, user: body }] : []),
  ]
}

/** After a deletion no event has personal data. */
function deletion({ before, after }: Change & { before: Told }): UserEvent[] {
  const { id } = before.user
  const ended = before.sessions.map((session) => {
    const about = { session: { id: session.id }, reason: 'user_deleted' satisfies SessionEnd }
    return { event: 'session.ended' as const, user: { id }, about }
  })
  // A soft deletion leaves a row, whose pseudonyms are hashes of addresses.
  return [...ended, { event: 'user.deleted', user: { id }, about: { soft: after !== undefined } }]
}

type Both = Change & { before: Told; after: Told }

function changes({ before, after, now }: Both): UserEvent[] {
  const { body: user } = after
  const tell = (isSo: boolean, event: EventName, about?: object): UserEvent[] =>
    isSo ? [{ event, user, ...(about && { about }) }] : []
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

function sessions(change: Change & { after: Told }): UserEvent[] {
  const { before, after } = change
  const reason = reasonOfEnd(change)
  const user = after.body
  return [
    ...missing(before?.sessions ?? [], after.sessions, 'id').map((session) => ({
      ...{ event: 'session.ended' as const, user },
      about: { session, reason },
    })),
    ...missing(after.sessions, before?.sessions ?? [], 'id').map((session) => ({
      ...{ event: 'session.created' as const, user },
      about: { session },
    })),
  ]
}

function reasonOfEnd({ before, after, sessionsEnd }: Change & { after: Told }): SessionEnd {
  if (sessionsEnd) return sessionsEnd
  if (before?.passwordTag !== after.passwordTag) return 'password_changed'
  if (before && missing(before.body.identities, after.body.identities, 'identity_id').length > 0) {
    return 'identity_unlinked'
  }
  if (before && missing(before.passkeys, after.passkeys, 'id').length > 0) return 'passkey_removed'
  return 'signed_out'
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
