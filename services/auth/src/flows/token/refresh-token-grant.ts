import type { AuditLog } from '../../core/audit/audit.ts'
import { issueTokens, type SessionBody } from '../../core/sessions/issue-tokens.ts'
import { refreshAs } from '../../core/sessions/rotate-session.ts'
import type { Client } from '../../core/sessions/start-session.ts'
import type { Deps } from '../../deps.ts'

/** Exchanges a refresh token for its successor; the rule is in core/sessions/refresh-reuse.ts. */
export const refreshSession = (deps: Deps, log: AuditLog, text: string, client: Client): Promise<SessionBody> => {
  const presented = { text, userAgent: client.userAgent, ip: client.ip, oauthClientId: null, thumbprint: null }
  return refreshAs(deps, log, presented, (asking, db, session) =>
    issueTokens(asking, db, session.user, session, 'token_refresh'),
  )
}
