// Answers with the pages of visitors: headers of caches and robots.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ClipView } from '../../core/clip-views/clip-view.ts'
import { cacheOfClip, isKnown } from '../../http/etag.ts'
import type { Page } from './document.ts'

/**
 * Sends the page of a clip or an album. That of a failed clip is a 404: it has no content. Unlike files, pages change
 * and are deleted: caches keep them, and revalidate each time. A 304 has the page's headers, too: caches update their
 * copy with them (RFC 9111 4.3.4).
 */
export function sendUnlessKnown(
  request: FastifyRequest,
  reply: FastifyReply,
  page: Page,
  { state, isListed, isLinked }: Pick<ClipView, 'state' | 'isListed' | 'isLinked'>,
) {
  if (!isListed) reply.header('x-robots-tag', 'noindex')
  if (state !== 'ready') return sendPage(reply.code(state === 'failed' ? 404 : 200), page, 'no-store')
  describePage(reply, page, cacheOfClip({ isReady: true, isLinked }))
  // The address is the key: a site that the page leads to must not see it.
  if (isLinked) reply.header('referrer-policy', 'no-referrer')
  return isKnown(request, reply, page.html) ? reply.code(304).send() : reply.send(page.html)
}

/** Sends a page for visitors. */
export const sendPage = (reply: FastifyReply, page: Page, cache: string) =>
  describePage(reply, page, cache).send(page.html)

const describePage = (reply: FastifyReply, { policy }: Page, cache: string) =>
  reply
    .headers({
      'cache-control': cache,
      'content-security-policy': policy,
      'referrer-policy': 'strict-origin-when-cross-origin',
    })
    .type('text/html; charset=utf-8')
