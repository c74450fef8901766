import { createHmac, randomBytes } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import { keyOfMonth } from './reports.store.ts'

const KEY_BYTES = 32

/** UTC month, as in 2026-11. */
export const monthOf = (moment: Date): string => moment.toISOString().slice(0, 7)

/**
 * Identifies a client address within a month. The monthly key is random and deleted after the month. From then on no
 * reader of the database can test addresses against the hashes, not even with MEDIA_ENCRYPTION_KEY. Where that is set,
 * a reader needs it until then.
 */
export async function reporterOf(
  { db, config, now }: Pick<Deps, 'db' | 'now'> & { config: Pick<Deps['config'], 'encryptionKey'> },
  address: string,
): Promise<Buffer> {
  const key = await keyOfMonth(db, monthOf(now()), randomBytes(KEY_BYTES))
  const secret = createHmac('sha256', config.encryptionKey ?? '')
    .update(key)
    .digest()
  return createHmac('sha256', secret).update(address).digest()
}
