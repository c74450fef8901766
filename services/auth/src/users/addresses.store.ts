import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'

/** Whether another user of the audience has the e-mail address, as their own or through a linked identity. */
export async function isEmailTaken(db: Kysely<DB>, email: string, aud: string, exceptId?: string): Promise<boolean> {
  const found = await db
    .selectFrom('users')
    .select('users.id')
    .where('users.email', '=', email)
    .where('users.aud', '=', aud)
    .unionAll((qb) =>
      qb
        .selectFrom('identities')
        .innerJoin('users', 'users.id', 'identities.user_id')
        .select('users.id')
        .where('identities.email', '=', email)
        .where('users.aud', '=', aud),
    )
    .execute()
  return found.some(({ id }) => id !== exceptId)
}

export async function isPhoneTaken(db: Kysely<DB>, phone: string, aud: string, exceptId?: string): Promise<boolean> {
  const found = await db
    .selectFrom('users')
    .select('id')
    .where('phone', '=', phone)
    .where('aud', '=', aud)
    .executeTakeFirst()
  return found !== undefined && found.id !== exceptId
}
