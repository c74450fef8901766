// Requests that count as views (contract/media-library.md 2): a page, a player or the beginning of a file, sent to a
// browser.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isBrowser } from '../core/views/robots.ts'
import type { ViewKind } from '../core/views/views.store.ts'
import type { Deps } from '../deps.ts'
import { hasSessionCookie } from './browser-session.ts'
import { addressKeyOf } from './rate-limit.ts'

type ViewDeps = Pick<Deps, 'config' | 'viewCounter'>

/** Counts a request that was answered, if it is a view. Owners at work in their library are no viewers. */
export function recordView(
  { config, viewCounter }: ViewDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { clipId, kind }: { clipId: string; kind: ViewKind },
): void {
  const { headers, method } = request
  const userAgent = headers['user-agent']
  if (!config.views.areCounted || method !== 'GET' || !DELIVERED.has(reply.statusCode)) return
  if (isPrefetch(headers) || !isFirstRange(headers.range) || !isBrowser(userAgent)) return
  if (hasSessionCookie(config, request)) return
  const { header } = config.limits
  const address = header === undefined ? request.ip : addressKeyOf(request, header)
  viewCounter.record({ clipId, kind, client: `${address} ${userAgent}` })
}

/** A redirect leads to the file at a CDN. */
const DELIVERED = new Set([200, 206, 302])

const isPrefetch = (headers: FastifyRequest['headers']): boolean =>
  /prefetch|prerender/i.test(String(headers['sec-purpose'] ?? headers.purpose ?? headers['x-moz'] ?? ''))

const isFirstRange = (range: string | undefined): boolean => range === undefined || /^bytes=0-/.test(range)
