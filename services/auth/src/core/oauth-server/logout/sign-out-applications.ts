// Sign-out of applications with a browser (OpenID Connect Front-Channel Logout 1.0). The rule: to the session of a
// browser belong the sessions of applications that it approved, but for those of devices. Frames: http/pages.
import type { Kysely } from 'kysely'
import type { Config } from '../../../config.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../../audit/audit.ts'
import { withQuery } from '../../redirects/redirect-url.ts'
import { lockUser } from '../../users/users.store.ts'
import { endApproved, listFrontChannels } from './approved-sessions.store.ts'

/** Frames of a page: their origins fit in its headers, and a browser loads them within seconds. */
export const MAX_FRAMES = 10

interface Deps extends AuditDeps {
  db: Kysely<DB>
  config: AuditDeps['config'] & Pick<Config, 'jwt' | 'oauthServer'>
}

interface Browser {
  user: Actor
  session: { id: string }
}

/** Makes the addresses of frames that notify the applications of a browser, while their sessions exist. */
export async function framesOf({ config, db }: Deps, { user, session }: Browser): Promise<string[]> {
  if (!config.oauthServer.enabled) return []
  const found = await listFrontChannels(db, { userId: user.id, sessionId: session.id }, MAX_FRAMES)
  return found.map(({ id, address }) => frameAddress(config, address, id))
}

/** Makes the address of an application that asks for the end of its own session. */
export const frameOf = (
  { config }: Pick<Deps, 'config'>,
  client: Pick<OAuthClient, 'frontchannel_logout_uri'>,
  sessionId: string,
): string | undefined =>
  client.frontchannel_logout_uri === null ? undefined : frameAddress(config, client.frontchannel_logout_uri, sessionId)

const frameAddress = ({ jwt }: Pick<Config, 'jwt'>, address: string, sessionId: string) =>
  withQuery(address, { iss: jwt.issuer, sid: sessionId })

/** Ends the sessions of applications that belong to the session of a browser. */
export async function signOutApplications(deps: Deps, log: AuditLog, { user, session }: Browser): Promise<void> {
  if (!deps.config.oauthServer.enabled) return
  await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, user.id)
    const sessions = await endApproved(trx, { userId: user.id, sessionId: session.id })
    if (sessions > 0) await audit(deps, trx, log, { action: 'logout', actor: user, traits: { sessions } })
  })
}
