import type { Deps } from '../../deps.ts'
import { allowancesOf } from './allowance.ts'
import type { ApiToken } from './tokens.store.ts'
import { listUsage } from './usage.store.ts'

export type OwnUsage = Awaited<ReturnType<typeof findOwnUsage>>

/** Storage and additions of today of a token, with its limits; null for none. */
export async function findOwnUsage({ db, config, now }: Pick<Deps, 'db' | 'config' | 'now'>, token: ApiToken) {
  const { quotaBytes, dailyBytes } = allowancesOf(config.allowances, token.limits)
  const [usage] = await listUsage(db, token.id, now())
  const none = { clips: 0, bytes: 0 }
  const { stored = { ...none, reserved_bytes: 0 }, today = none } = usage ?? {}
  return {
    stored: { ...stored, limit_bytes: quotaBytes ?? null },
    today: { clips: today.clips, bytes: today.bytes, limit_bytes: dailyBytes ?? null },
  }
}
