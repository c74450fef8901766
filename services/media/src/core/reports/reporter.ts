import { createHmac, randomBytes } from 'node:crypto'
import type { Deps } from '../../deps.ts'
import { keyOfMonth } from './reports.store.ts'

const KEY_BYTES = 32

/** UTC month, as in 2026-11. */
export const monthOf = (moment: Date): string => moment.toISOString().slice(0, 7)

/**
 * Identifies a client address within a month. The key is random, and deleted when the month has ended: after that no reader of
 * the database can test addresses, not even with MEDIA_ENCRYPTION_KEY, which a reader needs until then where it is set.
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
