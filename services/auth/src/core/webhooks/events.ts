// Events of users for the operator's own servers (contract/auth-hooks.md 9). This folder owns which events a
// transaction causes (record-events.ts, differences.ts, write-events.ts), their receivers (webhooks.store.ts,
// secrets.ts) and the delivery (dispatcher.ts, deliveries.store.ts). Events are written in the transaction of the
// change, so that one is sent if and only if the change happened. Tests: test/webhook*.test.ts,
// test/equal-events.test.ts.

/** All events. `webhook.test` is sent on request of an admin alone, whatever the receiver wants. */
export const EVENTS = [
  'user.created',
  'user.updated',
  'user.confirmed',
  'user.deleted',
  'user.banned',
  'user.unbanned',
  'session.created',
  'session.ended',
  'password.changed',
  'email.changed',
  'phone.changed',
  'identity.linked',
  'identity.unlinked',
  'factor.verified',
  'factor.removed',
  'passkey.created',
  'passkey.removed',
  'message.failed',
  'security.refresh_token_reused',
  'security.locked_out',
] as const

export type EventName = (typeof EVENTS)[number]

export const TEST_EVENT = 'webhook.test'

const GROUPS = [...new Set(EVENTS.map((name) => `${name.split('.', 1)[0]}.*`))]

/** Names that a receiver may ask for: `*`, a group such as `user.*`, or an event. */
const WANTED = ['*', ...GROUPS, ...EVENTS]

/** Throws for a name that is none of these; returns them once each. */
export function parseWanted(names: readonly string[]): string[] {
  const unknown = names.find((name) => !WANTED.includes(name))
  if (unknown !== undefined || names.length === 0) {
    throw new Error('must be *, groups such as user.*, or names of events such as user.created')
  }
  return [...new Set(names)]
}
