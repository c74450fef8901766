// The client of a request to the OAuth server (contract/auth-oauth-server.md 9). The rule: a client proves itself by
// its registered method alone, and an unknown client is refused as a wrong secret is. Assertions:
// core/oauth-server/tokens. Tests: ../../flows/oauth-server/token/authenticate-client.test.ts.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { findClient } from '../../core/oauth-server/find-client.ts'
import { ASSERTION_TYPE, subjectOfAssertion, verifyAssertion } from '../../core/oauth-server/tokens/client-assertion.ts'
import type { OAuthClient } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { oauthError } from '../../oauth-errors.ts'
import { Parameter } from '../bodies/oauth-body.ts'

/** Members of a body by which a client authenticates. */
export const clientFields = {
  client_id: Parameter,
  client_secret: Parameter,
  client_assertion_type: Parameter,
  client_assertion: Parameter,
}

/** A client as a request names it, not yet verified. */
export interface PresentedClient {
  clientId: string
  method: OAuthClient['token_endpoint_auth_method']
  /** Secret or assertion; empty for public clients. */
  proof: string
}

type ClientBody = Partial<Record<keyof typeof clientFields, string>>

/** Returns the client of a request. Throws invalid_client; failures count against the address. */
export const authenticateClient = (deps: Deps, request: FastifyRequest): Promise<OAuthClient> =>
  countingFailures(deps, request, async () => {
    const presented = presentedClient(request)
    await limitDocuments(deps, request, presented)
    return verifyClient(
      deps,
      request,
      presented,
      await findClient(deps, presented.clientId, countingUnknown(deps, request)),
    )
  })

/** Counts a request whose client may have to be fetched, before that: its address is any server's. */
export async function limitDocuments(
  { limits }: Pick<Deps, 'limits'>,
  request: FastifyRequest,
  { clientId }: PresentedClient,
): Promise<void> {
  if (!UUID.test(clientId)) await limits.byAddress(request, 'oauthToken')
}

/** Counts a metadata document that makes a new client, as a registration of its own. */
export const countingUnknown =
  ({ limits }: Pick<Deps, 'limits'>, request: FastifyRequest) =>
  (): Promise<void> =>
    limits.byAddress(request, 'registration')

/**
 * Counts a client that registered itself, or is public; others send the requests of all their users. A document counted
 * before.
 */
export async function limitUnvouched(
  { limits }: Pick<Deps, 'limits'>,
  request: FastifyRequest,
  { client_type: type, registration_type: origin }: OAuthClient,
): Promise<void> {
  if (origin === 'metadata_document') return
  if (type === 'public' || origin === 'dynamic') await limits.byAddress(request, 'oauthToken')
}

/** Counts a failure of `authenticate` against the address of the request. */
export async function countingFailures<Result>(
  deps: Pick<Deps, 'limits'>,
  request: FastifyRequest,
  authenticate: () => Promise<Result>,
): Promise<Result> {
  try {
    return await authenticate()
  } catch (error) {
    await deps.limits.byAddress(request, 'oauthToken')
    throw error
  }
}

/** Reads the client of a request. Throws invalid_request for two methods, invalid_client for none. */
export function presentedClient(request: FastifyRequest): PresentedClient {
  const body = (request.body ?? {}) as ClientBody
  const basic = basicOf(request.headers.authorization)
  const given = [basic, body.client_secret, body.client_assertion].filter(Boolean)
  if (given.length > 1) throw oauthError('invalid_request', { message: 'A client must authenticate by one method' })
  const clientId = basic?.clientId ?? (body.client_id || subjectOf(body))
  if (!clientId) throw oauthError('invalid_client', { message: 'client_id is required' })
  if (basic && body.client_id && body.client_id !== clientId) throw oauthError('invalid_client')
  if (basic) return { clientId, method: 'client_secret_basic', proof: basic.secret }
  if (body.client_assertion) return { clientId, method: 'private_key_jwt', proof: body.client_assertion }
  if (body.client_secret) return { clientId, method: 'client_secret_post', proof: body.client_secret }
  return { clientId, method: 'none', proof: '' }
}

/** Returns the client if it is the presented one. Throws invalid_client. */
export async function verifyClient(
  deps: Deps,
  request: FastifyRequest,
  { method, proof }: PresentedClient,
  client: OAuthClient | undefined,
): Promise<OAuthClient> {
  if (client && client.token_endpoint_auth_method !== method) {
    const registered = client.token_endpoint_auth_method
    throw oauthError('invalid_client', {
      message: `invalid authentication method: client is registered for '${registered}' but '${method}' was used`,
    })
  }
  const isProven = method === 'none' || method === 'private_key_jwt' || isSecretOf(client, proof)
  if (!client || !isProven) throw oauthError('invalid_client')
  if (method === 'private_key_jwt') {
    const { externalUrl } = deps.config.server
    const endpoints = ['/oauth/token', String(request.routeOptions.url)].map((path) => externalUrl + path)
    await verifyAssertion(deps, client, proof, [deps.config.jwt.issuer, ...endpoints])
  }
  return client
}

/** Compared for unknown clients too, in the same time. */
const NO_SECRET = Buffer.alloc(32)

function isSecretOf(client: OAuthClient | undefined, secret: string): boolean {
  const given = createHash('sha256').update(secret).digest()
  return timingSafeEqual(given, client?.secret_hash ?? NO_SECRET)
}

function subjectOf({ client_assertion: assertion, client_assertion_type: type }: ClientBody): string | undefined {
  if (!assertion) return undefined
  if (type === ASSERTION_TYPE) return subjectOfAssertion(assertion)
  throw oauthError('invalid_request', { message: `client_assertion_type must be ${ASSERTION_TYPE}` })
}

/** Reads id and secret of a Basic header (RFC 6749, section 2.3.1); undefined for any other scheme. */
function basicOf(authorization = ''): { clientId: string; secret: string } | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/_-]+=*)$/i.exec(authorization) ?? []
  if (encoded === undefined) {
    if (/^basic\b/i.test(authorization)) throw oauthError('invalid_client')
    return undefined
  }
  const [clientId, secret] = Buffer.from(encoded, 'base64').toString().split(/:(.*)/s, 2).map(formDecoded)
  if (!clientId || secret === undefined) throw oauthError('invalid_client')
  return { clientId, secret }
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (cause) {
    throw oauthError('invalid_client', { cause })
  }
}
