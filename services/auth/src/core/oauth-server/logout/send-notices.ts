// Reports to applications the end of their sessions (OpenID Connect Back-Channel Logout 1.0). A trigger of the database
// notes each end, whichever way it came; processes with workers send the notes, with retries. Tests:
// flows/oauth-server/logout.
import type { openEgress } from '@services/common/egress/open-egress'
import type { Logger } from '@services/common/telemetry/logger'
import { outsideTrace } from '@services/common/telemetry/spans'
import { growingWait } from '@services/common/webhooks/attempt-result'
import type { Kysely } from 'kysely'
import type { Config } from '../../../config.ts'
import type { DB } from '../../../db/tables.ts'
import type { SigningKeys } from '../../keys/signing-keys.ts'
import { claimNotices, deleteNotice, type LogoutNotice, putOffNotice } from './logout-notices.store.ts'

interface Deps {
  config: Pick<Config, 'jwt' | 'oauthServer'>
  db: Kysely<DB>
  keys: SigningKeys
  log: Pick<Logger, 'warn'>
  newId: () => string
  now: () => Date
  clientEgress: Pick<ReturnType<typeof openEgress>, 'fetch'>
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/** Notices sent at once by one process, and to one application: one that hangs leaves the other slots to others. */
const AT_ONCE = 10
const PER_CLIENT = 2

const BOUNDS = { timeoutMs: 10_000, maxBytes: 64 * 1024 }

/** Longer than an attempt: one that has not ended by then was lost with its process. */
const LEASE_MS = 60_000

/** 5 s, 10 s, 20 s … 4 h: about a day in all. */
const waitAfter = growingWait({ firstMs: 5_000, longestMs: 4 * 3_600_000 })
const MAX_ATTEMPTS = 17

/** Time in which the application must receive a logout token. */
const TOKEN_SECONDS = 120

const POLL_EVERY_MS = 1_000

/** Sends until the returned function is called. */
export function startLogoutNotices(deps: Deps): () => Promise<void> {
  if (!deps.config.oauthServer.enabled) return async () => {}
  const sender = openSender(deps)
  const timer = setInterval(() => outsideTrace(sender.begin), POLL_EVERY_MS).unref()
  return () => {
    clearInterval(timer)
    return sender.stop()
  }
}

/** Sends what is due. */
export async function sendNotices(deps: Deps): Promise<void> {
  const sender = openSender(deps)
  await sender.begin()
  await sender.untilIdle()
}

function openSender(deps: Deps) {
  /** Client of each attempt, by session. */
  const running = new Map<string, string>()
  /** Attempts until the slot of each has been offered to others. */
  const underWay = new Set<Promise<void>>()
  let isStopped = false
  let claiming: Promise<void> | undefined

  const busy = () => {
    const counts = new Map<string, number>()
    for (const client of running.values()) counts.set(client, (counts.get(client) ?? 0) + 1)
    return counts
  }

  const start = (notice: LogoutNotice) => {
    running.set(notice.session_id, notice.client_id)
    const attempt: Promise<void> = sendNotice(deps, notice)
      .catch(warn)
      .then(() => {
        running.delete(notice.session_id)
        return begin()
      })
      .finally(() => underWay.delete(attempt))
    underWay.add(attempt)
  }

  const claim = async () => {
    const [now, limit] = [deps.now(), AT_ONCE - running.size]
    if (isStopped || limit === 0) return
    const leaseUntil = new Date(now.getTime() + LEASE_MS)
    const due = await claimNotices(deps.db, { now, leaseUntil, limit, perClient: PER_CLIENT, busy: busy() })
    for (const notice of due) start(notice)
  }

  const warn = (err: unknown) => deps.log.warn({ err }, 'logout notices not sent, will retry')

  /** Starts attempts in free slots; one claim at a time. */
  const begin = async (): Promise<void> => {
    await claiming
    claiming ??= claim()
      .catch(warn)
      .finally(() => {
        claiming = undefined
      })
    await claiming
  }

  const untilIdle = async () => {
    while (underWay.size > 0) await Promise.race(underWay)
  }

  return {
    begin,
    untilIdle,
    stop: async () => {
      isStopped = true
      await claiming
      await untilIdle()
    },
  }
}

async function sendNotice(deps: Deps, notice: LogoutNotice): Promise<void> {
  const { session_id: sessionId, attempts } = notice
  // Without a published key no application can verify a token.
  const address = deps.keys.alg === 'HS256' ? null : notice.address
  if (address === null || (await isAccepted(deps, notice, address)))
    return void (await deleteNotice(deps.db, sessionId))
  if (attempts >= MAX_ATTEMPTS) {
    deps.log.warn({ clientId: notice.audience, sessionId }, 'logout notice given up: application failed for a day')
    return void (await deleteNotice(deps.db, sessionId))
  }
  await putOffNotice(deps.db, sessionId, new Date(deps.now().getTime() + waitAfter(attempts)))
}

async function isAccepted(deps: Deps, notice: LogoutNotice, address: string): Promise<boolean> {
  const issuedAt = Math.floor(deps.now().getTime() / 1000)
  const token = await deps.keys.signLogoutToken({
    ...{ iss: deps.config.jwt.issuer, aud: notice.audience, sub: notice.user_id, sid: notice.session_id },
    ...{ iat: issuedAt, exp: issuedAt + TOKEN_SECONDS, jti: deps.newId(), events: { [EVENT]: {} } },
  })
  try {
    const { status } = await deps.clientEgress.fetch(
      address,
      {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ logout_token: token }).toString(),
      },
      BOUNDS,
    )
    return status >= 200 && status < 300
  } catch {
    return false
  }
}
