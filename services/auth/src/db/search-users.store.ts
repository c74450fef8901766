// Search for users by their addresses and full name. In a large table an index serves every search, so that none
// takes longer with the number of users. Tests: flows/admin/users/large-tables.test.ts.
import { PLANNED_EACH_TIME } from '@services/common/database/connection'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { beginningWith, containing } from './like.ts'
import { MAX_SCANNED, searchReach } from './search-reach.store.ts'
import type { DB } from './tables.ts'

const TRIGRAMS = ['users_email_trgm_idx', 'users_phone_trgm_idx', 'users_full_name_trgm_idx']

/** A part that has trigrams, whatever is beside it. */
const THREE_LETTERS = /[\p{L}\p{N}]{3}/u

/** Describes for `config check` how far a search goes; undefined where the tables are not there yet. */
export async function describeSearch(db: Kysely<DB>, prefix: string): Promise<string | undefined> {
  const isThere = (index: string) =>
    sql`exists (select from pg_index where indexrelid = to_regclass(${prefix + index}) and indisvalid)`
  const { rows } = await sql<{ isMigrated: boolean; hasTrigrams: boolean }>`
    select ${isThere('users_email_pattern_idx')} as "isMigrated",
      ${sql.join(TRIGRAMS.map(isThere), sql` and `)} as "hasTrigrams"`.execute(db)
  if (!rows[0]?.isMigrated) return undefined
  return rows[0].hasTrigrams
    ? 'searches for users find any part of an address, number or name'
    : `searches among more than ${MAX_SCANNED} users find the beginning of an address, number or name: pg_trgm has no indexes`
}

/**
 * Builds the condition for users whose e-mail address, number or full name contains the text, in any case. In a large
 * table it is the beginning of one that matches if there are no trigrams, in the text or in the database.
 */
export async function containsText(db: Kysely<DB>, text: string): Promise<RawBuilder<boolean>> {
  const { isLarge, hasTrigrams } = await searchReach(db, 'users')
  const isByBeginning = isLarge && !(hasTrigrams && THREE_LETTERS.test(text))
  const patternOf = isByBeginning ? beginningWith : containing
  const pattern = patternOf(text)
  const digits = digitsOf(text)
  // A number is stored without the `+`, which only its beginning has.
  const hasNumber = digits
    ? sql`or phone like ${text.includes('+') ? beginningWith(digits) : patternOf(digits)}`
    : sql``
  return sql`${sql.raw(PLANNED_EACH_TIME)} (email like lower(${pattern}) ${hasNumber}
    or lower(user_metadata ->> 'full_name') like lower(${pattern}))`
}

/** Returns the digits of a text that may be a part of a phone number as people write it, else an empty text. */
const digitsOf = (text: string): string => (/^[+\d\s().-]+$/.test(text) ? text.replaceAll(/\D/g, '') : '')
