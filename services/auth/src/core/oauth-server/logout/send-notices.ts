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

/** Notices sent at once by one process. */
const AT_ONCE = 10

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
  let sending: Promise<void> | undefined
  const timer = setInterval(() => {
    sending ??= outsideTrace(() => sendNotices(deps))
      .catch((err) => deps.log.warn({ err }, 'logout notices not sent, will retry'))
      .finally(() => {
        sending = undefined
      })
  }, POLL_EVERY_MS).unref()
  return async () => {
    clearInterval(timer)
    await sending
  }
}

/** Sends what is due. */
export async function sendNotices(deps: Deps): Promise<void> {
  for (;;) {
    const now = deps.now()
    const leaseUntil = new Date(now.getTime() + LEASE_MS)
    const due = await claimNotices(deps.db, { now, leaseUntil, limit: AT_ONCE })
    await Promise.all(due.map((notice) => sendNotice(deps, notice)))
    if (due.length < AT_ONCE) return
  }
}

async function sendNotice(deps: Deps, notice: LogoutNotice): Promise<void> {
  const { session_id: sessionId, attempts } = notice
  // Without a published key no application can verify a token.
  const address = deps.keys.alg === 'HS256' ? null : notice.backchannel_logout_uri
  if (address === null || (await isAccepted(deps, notice, address)))
    return void (await deleteNotice(deps.db, sessionId))
  if (attempts >= MAX_ATTEMPTS) {
    deps.log.warn({ clientId: notice.client_id, sessionId }, 'logout notice given up: application failed for a day')
    return void (await deleteNotice(deps.db, sessionId))
  }
  await putOffNotice(deps.db, sessionId, new Date(deps.now().getTime() + waitAfter(attempts)))
}

async function isAccepted(deps: Deps, notice: LogoutNotice, address: string): Promise<boolean> {
  const issuedAt = Math.floor(deps.now().getTime() / 1000)
  const token = await deps.keys.signLogoutToken({
    ...{ iss: deps.config.jwt.issuer, aud: notice.client_id, sub: notice.user_id, sid: notice.session_id },
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
