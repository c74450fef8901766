// Answers of addresses that browsers come to from outside: mail links and the way back from a provider. Success,
// failure and timeout all redirect, and the request is answered once.

import type { ApiError } from '@services/common/errors'
import { explainFailure } from '@services/common/http/error-handler'
import { answerTimeoutBy, isPastDeadline } from '@services/common/request-deadline'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorAnswers } from '../bodies/error-bodies.ts'
import { leaveTo, type PageConfig, type Redirection, sendTo } from './send-to.ts'
import { type ShownPage, showPage } from './show-page.ts'

/** Page that is shown before the browser is sent on, or instead. */
export interface PageAnswer {
  page: ShownPage
}

interface RedirectingRoute {
  steps: () => Promise<Redirection | PageAnswer>
  /** Address for a failure of the steps or for a request past its deadline. */
  failed: (error: ApiError) => Redirection
  /** True for the answer to the form of a page of ours, whose policy refuses a redirect to another origin. */
  answersForm?: boolean
}

/**
 * Runs the steps of a route and redirects. Steps that end after the deadline answer nothing: the request has its
 * redirect.
 */
export async function answerByRedirect(
  config: PageConfig,
  request: FastifyRequest,
  reply: FastifyReply,
  { steps, failed, answersForm = false }: RedirectingRoute,
): Promise<FastifyReply> {
  reply.header('referrer-policy', 'no-referrer')
  const send = (redirection: Redirection) =>
    answersForm ? leaveTo(config, request, reply, redirection.location) : sendTo(config, request, reply, redirection)
  const sendFailure = (error: unknown) => send(failed(explainFailure(error, request, errorAnswers)))
  answerTimeoutBy(sendFailure)
  try {
    const answer = await steps()
    if (isPastDeadline()) return reply
    return 'page' in answer ? showPage(config, request, reply, answer.page) : send(answer)
  } catch (error) {
    return isPastDeadline() ? reply : sendFailure(error)
  }
}

/** Reports whether a browser prefetches. An address with an effect then answers 204 and spends nothing. */
export const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  /prefetch|preview/i.test(`${headers.purpose ?? ''} ${headers['sec-purpose'] ?? ''}`)
