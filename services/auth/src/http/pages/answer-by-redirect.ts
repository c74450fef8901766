// Answers of addresses that browsers come to from outside: mail links and the way back from a provider. Success,
// failure and timeout all redirect, and the request is answered once.

import type { ApiError } from '@services/common/errors'
import { explainFailure } from '@services/common/http/error-handler'
import { answerTimeoutBy, isPastDeadline } from '@services/common/request-deadline'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorAnswers } from '../bodies/error-bodies.ts'
import { BUTTON_PAGE_CSP } from './button-page.ts'
import { type PageConfig, type Redirection, sendTo } from './send-to.ts'
import { sendPage } from './small-page.ts'

/** HTML of a button page, shown before the browser is sent on. */
export interface HtmlAnswer {
  page: string
}

interface RedirectingRoute {
  steps: () => Promise<Redirection | HtmlAnswer>
  /** Address for a failure of the steps or for a request past its deadline. */
  failed: (error: ApiError) => Redirection
}

/**
 * Runs the steps of a route and redirects. Steps that end after the deadline answer nothing: the request has its
 * redirect.
 */
export async function answerByRedirect(
  config: PageConfig,
  request: FastifyRequest,
  reply: FastifyReply,
  { steps, failed }: RedirectingRoute,
): Promise<FastifyReply> {
  reply.header('referrer-policy', 'no-referrer')
  const send = (redirection: Redirection) => sendTo(config, request, reply, redirection)
  const sendFailure = (error: unknown) => send(failed(explainFailure(error, request, errorAnswers)))
  answerTimeoutBy(sendFailure)
  try {
    const answer = await steps()
    if (isPastDeadline()) return reply
    return 'page' in answer ? sendPage(reply, answer.page, BUTTON_PAGE_CSP) : send(answer)
  } catch (error) {
    return isPastDeadline() ? reply : sendFailure(error)
  }
}

/** Reports whether a browser prefetches. An address with an effect then answers 204 and spends nothing. */
export const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  /prefetch|preview/i.test(`${headers.purpose ?? ''} ${headers['sec-purpose'] ?? ''}`)
