import { once } from 'node:events'
import { command, UsageError } from '@services/common/process/command-line'
import { registeredBodies } from '../../../core/sessions/user-answers.ts'
import { isoTime } from '../../../core/users/iso-time.ts'
import { type ListedUser, listUsersAfter } from '../../../core/users/list-users.store.ts'
import type { Position } from '../../../db/position.ts'
import { onUsers } from './user-commands.ts'
import { parseFilter } from './user-input.ts'

const PAGE = 500

/** `users list`. Reads a page at a time: memory does not grow with the number of users. */
export const usersList = command({
  name: 'users list',
  summary: 'list users, newest first',
  options: {
    filter: { value: 'TEXT', meaning: 'part of an e-mail address, of a phone number or of user_metadata.full_name' },
    limit: { value: 'N', meaning: 'largest number of users; all if absent' },
  },
  details: 'Users of the audience of AUTH_JWT_AUD. --json prints one user a line.',
  run: async ({ options: { filter, limit }, json }) => {
    if (limit !== undefined && !/^[1-9]\d{0,8}$/.test(limit)) throw new UsageError('--limit must be a number from 1 on')
    await onUsers(async (deps) => {
      const { db, config } = deps
      const search = { aud: config.jwt.audience, filter: parseFilter(filter) }
      if (!json) await print(tableRow(HEADINGS))
      let left = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
      let after: Position | undefined
      do {
        const limit = Math.min(left, PAGE)
        const { users, next } = await listUsersAfter(db, search, { direction: 'desc', limit, after })
        const lines = json
          ? (await registeredBodies(deps, db, users)).map((user) => JSON.stringify(user))
          : users.map((user) => tableRow(cellsOf(user)))
        for (const line of lines) await print(line)
        left -= users.length
        after = next
      } while (after && left > 0)
    })
  },
})

async function print(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain')
}

const HEADINGS = ['id', 'created', 'last sign-in', 'state', 'role', 'e-mail, phone']

/** Widths of a UUID, two times to the minute, the longest state and the usual role. Addresses come last, unpadded. */
const WIDTHS = [36, 16, 16, 11, 13, 0]

const tableRow = (cells: string[]) => cells.map((cell, index) => cell.padEnd(WIDTHS[index] ?? 0)).join('  ')

function cellsOf(user: ListedUser): string[] {
  const addresses = [user.email, user.phone].filter(Boolean).join(', ')
  return [user.id, toMinute(user.created_at), toMinute(user.last_sign_in_at), stateOf(user), user.role, addresses].map(
    printable,
  )
}

export const toMinute = (time: string | null | undefined) => (time ? isoTime(time).slice(0, 16).replace('T', ' ') : '-')

type Stated = Partial<
  Record<'deleted_at' | 'banned_until' | 'confirmed_at', string | null> & Pick<ListedUser, 'is_anonymous'>
>

export function stateOf(user: Stated): string {
  if (user.deleted_at) return 'deleted'
  if (user.banned_until && new Date(user.banned_until) > new Date()) return 'banned'
  if (user.is_anonymous) return 'anonymous'
  return user.confirmed_at ? 'confirmed' : 'unconfirmed'
}

/** Replaces control characters: a role is free text and must not move the terminal's cursor. */
export const printable = (text: string) => text.replaceAll(/\p{Cc}/gu, '?')
