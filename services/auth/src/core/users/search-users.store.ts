// Search for users by their e-mail address and full name. The one rule: in a large table an index serves every search, so that
// none takes longer with the number of users. Tests: search-users.test.ts; figures: bench/scale.
import { PLANNED_EACH_TIME } from '@services/common/database-connection'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { beginningWith, containing } from '../../db/like.ts'
import { searchReach } from '../../db/search-reach.ts'
import type { DB } from '../../db/tables.ts'

/** A part that has trigrams, whatever is beside it. */
const THREE_LETTERS = /[\p{L}\p{N}]{3}/u

/**
 * Builds the condition for users whose e-mail address or full name contains the text. In a large table it is the beginning of
 * one that matches if there are no trigrams, in the text or in the database.
 */
export async function containsText(db: Kysely<DB>, text: string): Promise<RawBuilder<boolean>> {
  const { isLarge, hasTrigrams } = await searchReach(db, 'users')
  const isByBeginning = isLarge && !(hasTrigrams && THREE_LETTERS.test(text))
  const pattern = isByBeginning ? beginningWith(text) : containing(text)
  return sql`${sql.raw(PLANNED_EACH_TIME)} (email like ${pattern} or lower(user_metadata ->> 'full_name') like lower(${pattern}))`
}
