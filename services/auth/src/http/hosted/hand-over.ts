import type { Config } from '../../config.ts'
import type { AuditLog, Origin } from '../../core/audit/audit.ts'
import { withHooks } from '../../core/hooks/questions.ts'
import { issueAuthCode } from '../../core/one-time-tokens/auth-codes.store.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { isPermitted } from '../../core/redirects/allowed-targets.ts'
import { sessionParameters, withFragment, withQuery } from '../../core/redirects/redirect-url.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { copySession } from '../../core/sessions/start-session.ts'
import type { Deps } from '../../deps.ts'
import { asciiUrl } from '../pages/redirect-target.ts'
import type { BrowserCaller } from './browser-session.ts'
import type { Flow } from './flow.ts'

/** Application's address, judged by the rules of redirects; the site where there is none or it is refused. */
export function targetOf({ siteUrl, redirectAllowList }: Config, { redirect_to: wanted }: Flow): string {
  const isFine = wanted !== undefined && isPermitted(wanted, { siteUrl, allowList: redirectAllowList })
  return isFine ? asciiUrl(wanted) : siteUrl
}

/** Path of the target where it is a page of ours, below the public address of the service. */
export function ownPathOf(config: Config, flow: Flow): string | undefined {
  const [{ externalUrl }, target] = [config.server, targetOf(config, flow)]
  return target.startsWith(`${externalUrl}/ui/`) ? target.slice(externalUrl.length) : undefined
}

/** Starts the session of a further application for a user who is signed in at our pages. */
export const sessionForApplication = (
  deps: Deps,
  log: AuditLog,
  caller: BrowserCaller,
  client: Origin,
): Promise<SessionBody> =>
  withHooks(deps, log, (asking) =>
    deps.db.transaction().execute((trx) => copySession(asking, trx, log, caller, client)),
  )

/**
 * Makes the address that gives an application the session: tokens in the fragment, or a PKCE code. Its exchange gives
 * this session's tokens, with its second factor. Throws validation_failed for a malformed challenge.
 */
export async function addressWithSession(
  deps: Deps,
  flow: Flow,
  session: SessionBody,
  { sessionId, method }: { sessionId: string; method: string },
): Promise<string> {
  const target = targetOf(deps.config, flow)
  const pkce = parsePkce(flow)
  if (pkce) {
    const issued = { userId: session.user.id, pkce, method, sessionId, handsOver: true }
    const code = await deps.db.transaction().execute((trx) => issueAuthCode(deps, trx, issued))
    return withQuery(target, { code })
  }
  const { provider_token, provider_refresh_token } = session
  return (
    target +
    withFragment('', {
      ...sessionParameters(session),
      ...(provider_token && { provider_token }),
      ...(provider_refresh_token && { provider_refresh_token }),
    })
  )
}
