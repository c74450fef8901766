// Keys for tests, and a service's rows under them.
import { randomBytes, randomUUID } from 'node:crypto'
import { createEncryption, type Encryption } from '../src/core/keys/encryption.ts'
import { parseEncryptionKeys, withUnnamed } from '../src/core/keys/encryption-keys.ts'
import { SEALED } from '../src/core/keys/sealed-columns.ts'
import { SECRET, type TestService } from './service.ts'

/** An entry of AUTH_ENCRYPTION_KEYS with a new key. */
export const newKey = (id: string): string => `${id}:${randomBytes(32).toString('base64url')}`

/** Encryption of a service with the secret of the tests and these keys. */
export const encryptionWith = (...keys: string[]): Encryption =>
  createEncryption({
    keys: withUnnamed(keys.length > 0 ? parseEncryptionKeys(keys.join()) : [], SECRET),
  })

/** Adds attempts at a provider, the rows that need no user. */
export async function addAttempts({ deps }: TestService, count: number, encryption: Encryption): Promise<void> {
  const times = { expires_at: deps.now(), created_at: deps.now() }
  const rows = Array.from({ length: count }, () => {
    const id = randomUUID()
    const sealed = encryption.seal(SEALED.attempt, { id }, 'secret')
    return { id, provider: 'x', redirect_to: 'https://site.example', aud: 'authenticated', sealed, ...times }
  })
  await deps.db.insertInto('flow_states').values(rows).execute()
}

/** Rows of a table by the id of their key; '' is the key without id. */
export async function rowsByKey({ deps }: TestService, table: string, column: string): Promise<Record<string, number>> {
  const { rows } = await deps.pool.query<{ key: string; rows: number }>(
    `select split_part(${column}, '.', 2) as key,
      count(*)::int as rows from ${table} where ${column} is not null group by 1`,
  )
  return Object.fromEntries(rows.map(({ key, rows: count }) => [key, count]))
}
