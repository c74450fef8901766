import type { TokenLimits } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** A clip takes many seconds, so an immediate retry is pointless. */
const BUSY_RETRY_SECONDS = 10

/**
 * Throws busy when so many clips wait that this one would wait for minutes. Throws queue_full when too many of them
 * belong to this token (or to callers without one), so that no token fills the queue by itself. A token without a
 * waiting clip is accepted up to twice the limit, so that the others together do not lock it out either. `itself`:
 * clips of this request that `db` counts already.
 */
export async function refuseWhenBusy(
  { db, config, queueDepth }: Pick<Deps, 'db' | 'config' | 'queueDepth'>,
  tokenId: string | null,
  own: TokenLimits = {},
  itself: 0 | 1 = 0,
): Promise<void> {
  const { queueLimit, queueLimitPerToken } = config.worker
  const mostOfToken = own.queued ?? queueLimitPerToken
  const counted = await queueDepth.count(db, tokenId, { all: queueLimit + itself, ofToken: mostOfToken + itself })
  const [all, ofToken] = [counted.all - itself, counted.ofToken - itself]
  const most = ofToken === 0 ? 2 * queueLimit : queueLimit
  if (all >= most) throw apiError('busy', { retryAfterSeconds: BUSY_RETRY_SECONDS })
  if (ofToken > 0 && ofToken >= mostOfToken) {
    throw apiError('queue_full', {
      message: 'Too many clips of this token are waiting or being transcoded.',
      retryAfterSeconds: BUSY_RETRY_SECONDS,
    })
  }
}
