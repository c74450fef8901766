// Registers hosted pages. A page is `{ path, get, post }`; a form without a valid proof changes nothing and gets the
// page again, with a notice. Failures are pages too.
import { html } from '@services/common/html'
import { explainFailure } from '@services/common/http/error-handler'
import type { FastifyInstance, FastifyReply, RouteShorthandOptions } from 'fastify'
import type { Deps } from '../../deps.ts'
import { fill } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { errorAnswers } from '../bodies/error-bodies.ts'
import { isPrefetch } from '../pages/answer-by-redirect.ts'
import { openVisits, type Visit } from './visit.ts'

export type Answer = FastifyReply | Promise<FastifyReply>

export interface Page {
  /** Below `/ui`. */
  path: string
  get(visit: Visit): Answer
  post?(visit: Visit): Answer
  /** True where opening the address has an effect: neither HEAD nor a prefetch causes it. */
  hasEffect?: boolean
}

const MAX_FORM_BYTES = 64 * 1024

/** Registers pages in a scope of their own. */
export function addPages(app: FastifyInstance, deps: Deps, pages: readonly Page[]): void {
  const visitOf = openVisits(app, deps)
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(body as string))),
  )
  app.setErrorHandler((error, request, reply) => {
    const refusal = explainFailure(error, request, errorAnswers)
    const { status, retryAfterSeconds } = refusal
    if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds)
    const visit = visitOf(request, reply, { path: '/ui/sign-in' })
    const { failed, again, reference } = visit.words(frameWords)
    return visit.show({
      ...{ status, title: failed, problem: visit.explain(refusal) },
      body: html`${status >= 500 && html`<p class="hint">${fill(reference, { id: request.id })}</p>`}
<p class="links"><a href="${visit.link('/ui/sign-in')}">${again}</a></p>
`,
    })
  })
  for (const page of pages) {
    const options: RouteShorthandOptions = { schema: { hide: true }, exposeHeadRoute: !page.hasEffect }
    app.get(page.path, options, async (request, reply) => {
      if (page.hasEffect && isPrefetch(request)) return reply.code(204).send(null)
      return page.get(visitOf(request, reply, page))
    })
    const { post } = page
    if (!post) continue
    app.post(page.path, { schema: { hide: true } }, async (request, reply) => {
      const visit = visitOf(request, reply, page)
      if (visit.hasProof()) return post(visit)
      visit.fail(visit.words(frameWords).expired)
      reply.code(403)
      return page.get(visit)
    })
  }
}
