// The export of a user: all that is stored about one person, without secrets. It is written in parts, so that memory
// does not grow with it, and its lists are bounded. The tables: exported-tables.ts. Tests: ../../flows/account/.
import type { Reads } from '@services/common/database/replica'
import { Type } from 'typebox'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { withoutPersonalData } from '../audit/personal-data.ts'
import { FreeForm } from '../users/metadata.ts'
import { type UserBody, UserShape } from '../users/user-shape.ts'
import { LISTS, type ListName } from './exported-tables.ts'
import { listOwnEntries, listOwnRows, type OwnEntry } from './user-export.store.ts'

/** Rows of one table in an export: more than people have sessions, and mails of a week. */
const MAX_ROWS = 1_000

/** Entries of the audit log in an export, some 5 MB; the operator has older ones (`audit export`). */
const MAX_ENTRIES = 10_000
const ENTRIES_AT_ONCE = 500

const Rows = (description: string) => Type.Array(FreeForm, { description })

export const UserExport = Type.Object(
  {
    exported_at: Type.String({ format: 'date-time' }),
    user: UserShape,
    sessions: Rows('Sessions, with ended ones that are not deleted yet.'),
    oauth_consents: Rows('Applications that the user agreed to.'),
    passkeys: Rows('Passkeys, without public keys.'),
    recovery_codes: Rows('Recovery codes, without the codes.'),
    trusted_devices: Rows('Trusted devices.'),
    messages: Rows('Mail and SMS to the user, without their content.'),
    audit_log: Rows('Entries by and about the user, newest first, without personal data of other people.'),
    truncated: Type.Array(Type.String(), {
      description: `Lists with more rows: the newest ${MAX_ROWS} of a list are exported, ${MAX_ENTRIES} of \`audit_log\`.`,
    }),
  },
  { title: 'UserExport' },
)

interface ExportDeps {
  reads: Pick<Reads<DB>, 'current'>
  now: () => Date
  config: { jwt: { adminRoles: readonly string[] } }
}

/** Writes a user's data as JSON, part by part. */
export async function* exportUser(deps: ExportDeps, user: UserBody): AsyncGenerator<string> {
  const truncated: string[] = []
  yield `{"exported_at":${JSON.stringify(deps.now())},"user":${JSON.stringify(user)}`
  for (const list of Object.keys(LISTS) as ListName[]) {
    const rows = await deps.reads.current((db) => listOwnRows(db, list, user.id, MAX_ROWS + 1))
    if (rows.length > MAX_ROWS) truncated.push(list)
    yield `,"${list}":${JSON.stringify(rows.slice(0, MAX_ROWS))}`
  }
  yield ',"audit_log":['
  let left = MAX_ENTRIES
  let separator = ''
  for await (const page of pagesOfEntries(deps, user.id)) {
    const shown = page.slice(0, left).map((entry) => JSON.stringify(ownView(deps, user.id, entry)))
    if (shown.length > 0) yield `${separator}${shown.join(',')}`
    separator = ','
    left -= shown.length
    if (shown.length === page.length) continue
    truncated.push('audit_log')
    break
  }
  yield `],"truncated":${JSON.stringify(truncated)}}`
}

async function* pagesOfEntries({ reads }: ExportDeps, userId: string): AsyncGenerator<OwnEntry[]> {
  let after: Position | undefined
  for (;;) {
    const page = await reads.current((db) => listOwnEntries(db, userId, { after, limit: ENTRIES_AT_ONCE }))
    yield page
    const last = page.at(-1)
    if (!last || page.length < ENTRIES_AT_ONCE) return
    after = { id: last.id, created_at: last.place }
  }
}

/** An entry without the address, name and client of another person: an admin, or a user whom an admin has changed. */
function ownView({ config }: ExportDeps, userId: string, { place: _, ...entry }: OwnEntry): object {
  const { actor_id: actorId, traits } = entry.payload as { actor_id: string; traits?: { user_id?: string } }
  const other = actorId !== userId ? 'actor' : (traits?.user_id ?? userId) !== userId ? 'target' : undefined
  return other ? { ...entry, ...withoutPersonalData(entry, other, config.jwt.adminRoles) } : entry
}
