// Tokens and sessions of clients, for tests: as the OAuth server gives them.
import { bearer } from '../../../../../test/admin.ts'
import type { TestService } from '../../../../../test/service.ts'

/** A token that the OAuth server would give, for its claims alone: no endpoint is asked. */
export interface GivenToken {
  scope: string
  [claim: string]: unknown
}

/** Registers a client; `grants` as in its registration. */
export async function registered(service: TestService, client: object = {}): Promise<string> {
  const given = { client_name: 'Reports', redirect_uris: ['https://app.example/callback'], ...client }
  return (await service.post('/admin/oauth/clients', given, service.admin)).body.client_id
}

/** Makes a user's session the one that a client was given. */
export async function grantSession(service: TestService, sessionId: string, clientId: string, scopes: string[]) {
  const grant = { oauth_client_id: clientId, scopes: JSON.stringify(scopes), resources: '[]' }
  await service.deps.db.updateTable('sessions').set(grant).where('id', '=', sessionId).execute()
}

/** A user whose newest session a client was given; `as` makes tokens of it. */
export async function asClient(service: TestService, { scope = '', role = 'authenticated', client = '' } = {}) {
  const { userId, accessToken, auth: own } = await service.signedIn()
  const clientId = client || (await registered(service))
  if (role !== 'authenticated')
    await service.deps.db.updateTable('users').set({ role }).where('id', '=', userId).execute()
  const claims = JSON.parse(Buffer.from(String(accessToken.split('.')[1]), 'base64url').toString())
  await grantSession(service, claims.session_id, clientId, scope.split(' '))
  const as = async (given: GivenToken) => {
    const { iss, sub, aud, exp, iat, session_id } = claims
    const named = { iss, sub, aud, exp, iat, session_id, role, client_id: clientId }
    return bearer(await service.deps.keys.sign({ ...named, ...given }))
  }
  return { userId, clientId, own, sessionId: claims.session_id as string, as, auth: await as({ scope }) }
}

/** A client that acts for itself; `as` makes tokens of it. */
export async function asMachine(service: TestService, scope: string) {
  const machine = { grant_types: ['client_credentials'], redirect_uris: [], scope, client_name: 'Night job' }
  const clientId = await registered(service, machine)
  const as = async (given: GivenToken) => {
    const claims = { sub: clientId, client_id: clientId, aud: 'authenticated', role: 'service' }
    return bearer(await service.deps.keys.sign({ ...claims, ...given }))
  }
  return { clientId, as, auth: await as({ scope }) }
}
