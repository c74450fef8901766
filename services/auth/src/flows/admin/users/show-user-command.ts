import { command, printResult } from '@services/common/process/command-line'
import { listMessages, type VisibleMessage } from '../../../core/outbox/messages.store.ts'
import { type PasskeyBody, toPasskeyBody } from '../../../core/passkeys/passkey-shape.ts'
import { listPasskeys } from '../../../core/passkeys/passkeys.store.ts'
import { listLiveSessions } from '../../../core/sessions/session-info.ts'
import { registeredBody } from '../../../core/sessions/user-answers.ts'
import { shownDevices } from '../../../core/trusted-devices/device-info.ts'
import type { UserBody } from '../../../core/users/user-shape.ts'
import { onDatabase } from '../../../on-database.ts'
import { printable, stateOf, toMinute } from './list-users-command.ts'
import { findNamedUser, USER_OPERAND } from './user-commands.ts'

const MAX_MESSAGES = 10

type Session = Awaited<ReturnType<typeof listLiveSessions>>[number]
type Device = Awaited<ReturnType<typeof shownDevices>>[number]

interface Shown {
  user: UserBody
  passkeys: PasskeyBody[]
  trusted_devices: Device[]
  sessions: Session[]
  messages: VisibleMessage[]
}

/** `users show`: all that explains to an operator why a user cannot sign in. */
export const usersShow = command({
  name: 'users show',
  summary:
    'show a user with state, identities, second factors, passkeys, trusted devices, sessions and latest messages',
  operands: ['USER'],
  details: `${USER_OPERAND}\nOf messages it shows the latest ${MAX_MESSAGES}, without address and content.`,
  run: ({ operands: [name = ''], json }) =>
    onDatabase(async (deps) => {
      const user = await registeredBody(deps, deps.db, await findNamedUser(deps, name))
      const [passkeys, devices, sessions, { rows: messages }] = await Promise.all([
        listPasskeys(deps.db, user.id),
        shownDevices(deps, user.id),
        listLiveSessions(deps, user.id),
        listMessages(deps.db, { userIds: [user.id] }, { limit: MAX_MESSAGES, offset: 0 }),
      ])
      const all = { user, passkeys: passkeys.map(toPasskeyBody), trusted_devices: devices, sessions, messages }
      printResult(json, all, describe(all))
    }),
})

function describe({ user, passkeys, trusted_devices: devices, sessions, messages }: Shown): string {
  const until = user.banned_until && stateOf(user) === 'banned' ? ` until ${toMinute(user.banned_until)}` : ''
  const address = (value: string, provenAt: string | undefined) =>
    value === '' ? '-' : `${value}, ${provenAt ? `proven ${toMinute(provenAt)}` : 'not proven yet'}`
  return [
    row('id', user.id),
    row('state', stateOf(user) + until),
    row('e-mail', address(user.email, user.email_confirmed_at)),
    ...(user.new_email ? [row('new e-mail', `${user.new_email}, not proven yet`)] : []),
    row('phone', address(user.phone, user.phone_confirmed_at)),
    row('role', user.role),
    row('password', user.has_password === undefined ? '-' : user.has_password ? 'set' : 'none'),
    row('created', toMinute(user.created_at)),
    row('last sign-in', toMinute(user.last_sign_in_at)),
    ...rows('identities', user.identities, ({ provider, id, last_sign_in_at: at }) => [provider, id, toMinute(at)]),
    ...rows('factors', user.factors ?? [], (factor) => [
      factor.id,
      factor.factor_type,
      factor.status,
      factor.friendly_name ?? '',
    ]),
    ...rows('passkeys', passkeys, ({ id, friendly_name: name, last_used_at: at }) => [id, name, toMinute(at)]),
    ...rows('devices', devices, ({ id, name, last_used_at: at, user_agent: agent }) => [
      id,
      name ?? '',
      toMinute(at),
      agent ?? '',
    ]),
    ...rows('sessions', sessions, ({ id, aal, refreshed_at: at, user_agent: agent }) => [
      id,
      aal,
      toMinute(at),
      agent ?? '',
    ]),
    ...rows('messages', messages, ({ id, channel, kind, state, created_at: at, last_error: error }) => [
      id,
      `${channel} ${kind}`,
      state,
      toMinute(at.toISOString()),
      error ?? '',
    ]),
  ].join('\n')
}

const NAME_WIDTH = 14

const row = (name: string, value: string) => `${name.padEnd(NAME_WIDTH)}${printable(value)}`

const rows = <Item>(name: string, items: readonly Item[], cellsOf: (item: Item) => string[]): string[] =>
  items.length === 0
    ? [row(name, 'none')]
    : items.map((item, index) => row(index === 0 ? name : '', cellsOf(item).filter(Boolean).join('  ')))
