import type { FastifyReply, FastifyRequest } from 'fastify'
import { refuseWhenBusy } from '../core/sources/refuse-when-busy.ts'
import { type Allowance, allowancesOf, findAllowances, refuseOverAllowance } from '../core/tokens/allowance.ts'
import type { Deps } from '../deps.ts'

/**
 * Refuses before the body what the acceptance of a clip would refuse: a full queue, then an allowance. Headers report
 * the rest of the allowance before this call. Callers without a token have no allowance: rate limits and the expiry of
 * their clips bound them.
 */
export async function refuseEarly(
  deps: Pick<Deps, 'db' | 'config' | 'now' | 'queueDepth'>,
  { apiToken: token }: FastifyRequest,
  reply: FastifyReply,
  { atLeastBytes }: { atLeastBytes: number },
): Promise<void> {
  await refuseWhenBusy(deps, token?.id ?? null, token?.limits)
  if (!token) return
  const now = deps.now()
  const limits = allowancesOf(deps.config.allowances, token.limits)
  const allowances = await findAllowances(deps.db, token.id, limits, now)
  const { quota } = allowances
  report(reply, 'x-quota', quota && { limit: quota.limit, used: quota.used + quota.reserved })
  report(reply, 'x-daily-bytes', allowances.daily)
  refuseOverAllowance(allowances, { kept: atLeastBytes, sent: atLeastBytes }, now)
}

function report(reply: FastifyReply, name: string, allowance: Allowance | undefined): void {
  if (!allowance) return
  const { limit, used } = allowance
  reply.headers({ [`${name}-limit`]: limit, [`${name}-remaining`]: Math.max(0, limit - used) })
}
