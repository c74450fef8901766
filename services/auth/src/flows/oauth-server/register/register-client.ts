import { createHash, timingSafeEqual } from 'node:crypto'
import type { AuditLog } from '../../../core/audit/audit.ts'
import { unknownActor } from '../../../core/audit/sign-in-attempt.ts'
import type { GivenMetadata } from '../../../core/oauth-server/client-metadata.ts'
import { type ClientDeps, createClient, type ShownClient } from '../../../core/oauth-server/create-client.ts'
import { USUAL_SCOPES } from '../../../core/oauth-server/oauth-scopes.ts'
import { apiError } from '../../../errors.ts'

/** Registers a client that asks for itself. Throws for members that an administrator alone grants. */
export function registerClient(deps: ClientDeps, log: AuditLog, given: GivenMetadata): Promise<ShownClient> {
  if (given.grant_types?.includes('client_credentials')) {
    throw invalid("grant_types 'client_credentials' is given by administrators alone")
  }
  const foreign = String(given.scope ?? '')
    .split(' ')
    .find((name) => name !== '' && !USUAL_SCOPES.includes(name))
  if (foreign !== undefined) throw invalid(`scope is given by administrators alone: ${foreign.slice(0, 64)}`)
  return createClient(deps, log, unknownActor(''), { ...nativeMethod(given), ...given }, 'dynamic')
}

/** Whether one of the tokens was given, in the same time for each. */
export function holdsToken(tokens: readonly string[], authorization: string | undefined): boolean {
  const given = hashOf(/^bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '')
  return tokens.filter((token) => timingSafeEqual(hashOf(token), given)).length > 0
}

const hashOf = (text: string) => createHash('sha256').update(text).digest()

/** An application on a device keeps no secret (RFC 8252, section 8.4); its addresses are loopback or of its scheme. */
function nativeMethod({ redirect_uris: addresses = [] }: GivenMetadata): GivenMetadata {
  const isNative = addresses.every((address) => !/^https:/i.test(String(address)))
  return isNative ? { token_endpoint_auth_method: 'none' } : {}
}

const invalid = (message: string) => apiError('validation_failed', { message })
