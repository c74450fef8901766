// Personal data in audit entries, and the form of an entry without it. An erasure keeps the listed members and removes
// all others, so a member that is missing here is lost and not forgotten. Sweep: erase-entries.store.ts.
import type { Metadata } from '../../db/tables.ts'

/** Owner of personal data in an entry: the actor, or the user it was done to. */
export type Person = 'actor' | 'target'

/** Members without personal data: ids and kinds. `erased` lists the owners of lost data. */
const KEPT_MEMBERS = ['actor_id', 'actor_via_sso', 'action', 'log_type', 'via', 'client_id', 'traits', 'erased']

/** Traits without personal data: ids of rows here, kinds, counts and hashes. */
export const KEPT_TRAITS = [
  'user_id',
  'session_id',
  'factor_id',
  'challenge_id',
  'device_id',
  'identity_id',
  'passkey_id',
  'message_id',
  'key_id',
  'webhook_id',
  'event_id',
  'client_id',
  'scope',
  'provider',
  'provider_type',
  'fields',
  'channel',
  'kind',
  'type',
  'factor_type',
  'factor_status',
  'error_code',
  'side',
  'removed',
  'remaining',
  'sessions',
  'devices',
  'users',
  'events',
  'bytes',
  'sha256',
  'with_hashes',
  'chain',
  'network',
  'domain',
  'oauth_client_id',
  'action',
] as const

/** Traits with personal data of the actor: address of a wallet, and the URI in the message that it signed. */
export const PERSONAL_TRAITS = ['address', 'uri'] as const

export type PersonalTraits = { [Trait in (typeof PERSONAL_TRAITS)[number]]?: string }

type KeptTrait = (typeof KEPT_TRAITS)[number]

/** Traits of an event. A person is the `target`, whose addresses an erasure knows. */
export type Traits = { [Trait in KeptTrait]?: unknown }

/** Refuses an event with any other trait, also where it is no literal. */
export type OnlyKept<Event> = Event extends { traits?: infer Given }
  ? { traits?: { [Trait in Exclude<keyof NonNullable<Given>, KeptTrait>]: never } }
  : unknown

/** Personal members that every entry has; they become empty, so that readers find them. */
const ACTOR_ADDRESS = 'actor_username'
const TARGET_ADDRESSES = ['user_email', 'user_phone']

/** Optional personal members. */
const ACTOR_DETAILS = ['actor_name', 'user_agent']

/** Members that an entry can have; test/audit-members.ts compares them with entries of all flows. */
export const KNOWN_MEMBERS = [...KEPT_MEMBERS, ACTOR_ADDRESS, ...ACTOR_DETAILS]
export const KNOWN_TRAITS = [...KEPT_TRAITS, ...TARGET_ADDRESSES]

interface Personal {
  payload: Metadata
  ip_address: string
}

/** Removes a person's data from an entry. `roles`: names of admin roles, which are kinds of actors and stay. */
export function withoutPersonalData(entry: Personal, person: Person, roles: readonly string[]): Personal {
  const { payload, ip_address } = entry
  const traits = payload.traits as Metadata | undefined
  const erased = [...((payload.erased as Person[] | undefined) ?? []), person]
  if (person === 'target') {
    return {
      payload: { ...payload, traits: keptTraits(emptied(TARGET_ADDRESSES, traits)), erased },
      ip_address,
    }
  }
  const isRole = roles.includes(String(payload[ACTOR_ADDRESS]))
  const members = isRole ? payload : emptied([ACTOR_ADDRESS], payload)
  const kept = only([...KEPT_MEMBERS, ACTOR_ADDRESS], members)
  return { payload: { ...kept, ...(traits && { traits: keptTraits(traits) }), erased }, ip_address: '' }
}

const keptTraits = (traits: Metadata): Metadata => only(KNOWN_TRAITS, traits)

const only = (names: readonly string[], members: Metadata): Metadata =>
  Object.fromEntries(Object.entries(members).filter(([name]) => names.includes(name)))

const emptied = (names: readonly string[], members: Metadata = {}): Metadata =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, names.includes(name) ? '' : value]))
