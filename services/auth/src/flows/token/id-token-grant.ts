import { type Static, Type } from 'typebox'
import { badRequest } from '../../adapters/oauth/readable-id-token.ts'
import { type AuditLog, pendingAudit } from '../../core/audit/audit.ts'
import { signInExternally } from '../../core/identities/external-sign-in.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { Field } from '../../http/bodies/shapes.ts'

export const IdTokenFields = Type.Object({
  provider: Type.Optional(Field),
  id_token: Type.Optional(Field),
  access_token: Type.Optional(Field),
  nonce: Type.Optional(Field),
  client_id: Type.Optional(Field),
  issuer: Type.Optional(Field),
})

interface IdTokenGrantInput extends Static<typeof IdTokenFields> {
  linkingCaller: LiveCaller | undefined
  audience: string
  context: MailContext
  client: Client
}

/** Signs in with an id_token that a native application got from the provider (contract/auth-external.md 2.7). */
export async function signInWithIdToken(deps: Deps, log: AuditLog, input: IdTokenGrantInput): Promise<SessionBody> {
  const { id_token: idToken, access_token: accessToken, nonce, linkingCaller, audience, context, client } = input
  if (!idToken) throw badRequest('id_token required')
  const provider = await findProvider(deps, idToken, input)
  const account = await provider.idTokens.read({ idToken, accessToken, nonce, now: deps.now() })
  const shown = {
    provider,
    account,
    audience: linkingCaller?.user.aud ?? audience,
    context,
    linking: linkingCaller ? { userId: linkingCaller.user.id, sessionId: linkingCaller.session.id } : null,
    inviteTokenHash: null,
    attemptId: null,
  }
  return signInExternally(deps, log, shown, (asking, trx, user, identityId) => {
    const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits: { provider: provider.name } })
    return startSession(asking, trx, user, 'oauth', client, audited, { identityId })
  })
}

/** Finds the provider by name, without reading the token, or by the token's issuer and client. */
async function findProvider({ providers, now }: Deps, idToken: string, input: IdTokenGrantInput) {
  const { provider: name = '', client_id: clientId = '', issuer = '' } = input
  if (name === '' && (clientId === '' || issuer === '')) {
    throw badRequest('provider or client_id and issuer required')
  }
  const found = await providers.findByIdToken({ name, issuer, clientId, idToken, now: now() })
  if (!found?.idTokens) {
    const named = (name || issuer).slice(0, 100)
    throw apiError('validation_failed', { message: `Custom OIDC provider "${named}" not allowed` })
  }
  return { ...found, idTokens: found.idTokens }
}
