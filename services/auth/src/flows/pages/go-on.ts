import { issueAuthCode } from '../../core/one-time-tokens/auth-codes.store.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { BrowserCaller } from '../../http/hosted/browser-session.ts'
import type { Visit } from '../../http/hosted/visit.ts'

/** Leads a signed-in browser on as after its sign-in. An application gets the tokens of the same session. */
export async function goOn(visit: Visit, { user, session }: BrowserCaller, next?: string) {
  const { deps } = visit
  // The page that leads on is done with.
  visit.flow.next = next
  const verifier = Buffer.from(deps.random(32)).toString('base64url')
  const order = {
    ...{ userId: user.id, sessionId: session.id, handsOver: true, method: session.amr[0]?.method ?? '' },
    pkce: { challenge: verifier, method: 'plain' as const },
  }
  const code = await deps.db.transaction().execute((trx) => issueAuthCode(deps, trx, order))
  const answer = await visit.api<SessionBody>('POST', '/token?grant_type=pkce', {
    auth_code: code,
    code_verifier: verifier,
  })
  return answer.ok ? visit.signedIn(answer.body) : visit.toSignIn()
}
