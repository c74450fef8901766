import type { FastifyRequest } from 'fastify'

/**
 * What the links of a mail start with: the listed host that the request came to, else API_EXTERNAL_URL. Only names of
 * MAILER_EXTERNAL_HOSTS are believed, since a client can write the header; a link goes to them by https and without a path.
 * Source: contract/auth-core.md 4.2.
 */
export function externalBase(
  request: FastifyRequest,
  { server }: { server: { externalUrl: string; externalHosts: readonly string[] } },
): string {
  const host = (single(request.headers['x-forwarded-host']) ?? hostOfTarget(request.raw.url))?.toLowerCase()
  if (host === undefined || !server.externalHosts.includes(host)) return server.externalUrl
  // A developer's machine has no certificate.
  const isPlain = host === 'localhost' && schemeOf(request) === 'http'
  return `${isPlain ? 'http' : 'https'}://${host}`
}

/** Of a request whose target is a whole address (RFC 9112 section 3.2.2); the Host header is what the proxy made of it. */
function hostOfTarget(target: string | undefined): string | undefined {
  return target && /^https?:\/\//i.test(target) && URL.canParse(target) ? new URL(target).hostname : undefined
}

const schemeOf = (request: FastifyRequest) =>
  single(request.headers['x-forwarded-proto'])?.toLowerCase() ??
  (request.raw.url?.startsWith('https:') ? 'https' : 'http')

const single = (header: string | string[] | undefined) =>
  typeof header === 'string' && header !== '' ? header : undefined
