// Answers of hosted pages. A page is `{ path, get, post }`, listed in flows/pages/all-pages.http.ts. A form without a
// valid proof changes nothing and gets the page again, with a notice. Failures are pages too.
import { html } from '@services/common/html'
import { explainFailure } from '@services/common/http/error-handler'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { fill } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { errorAnswers } from '../bodies/error-bodies.ts'
import { isPrefetch } from '../pages/answer-by-redirect.ts'
import { openVisits, type Visit } from './visit.ts'

/** A page or redirect on its way. */
export type Sent = FastifyReply

export type Answer = Sent | Promise<Sent>

export interface Page {
  /** Below `/ui`. */
  path: string
  get(visit: Visit): Answer
  post?(visit: Visit): Answer
  /** True where opening the address has an effect: neither HEAD nor a prefetch causes it. */
  hasEffect?: boolean
}

export interface PageAnswers {
  answer(path: string, request: FastifyRequest, reply: FastifyReply): Answer
  fail(error: unknown, request: FastifyRequest, reply: FastifyReply): Answer
}

/** Shows the page of a form without a valid proof again, in the user's language. */
async function refuseForm(visit: Visit, page: Page): Promise<FastifyReply> {
  await visit.caller()
  const { expired, changed } = visit.words(frameWords)
  visit.fail(visit.hasCookie() ? changed : expired)
  visit.reply.code(403)
  return page.get(visit)
}

export function answerPages(app: FastifyInstance, deps: Deps, pages: readonly Page[]): PageAnswers {
  const visitOf = openVisits(app, deps)
  const byPath = new Map(pages.map((page) => [page.path, page]))

  return {
    answer(path, request, reply) {
      const page = byPath.get(path)
      if (!page) throw apiError('not_found')
      const isPost = request.method === 'POST'
      if (isPost && !page.post) {
        reply.header('allow', 'GET, HEAD')
        throw apiError('method_not_allowed')
      }
      const visit = visitOf(request, reply, page)
      // Throws for a malformed challenge, which no sign-in could end with.
      parsePkce(visit.flow)
      if (!isPost || !page.post) {
        const isHeld = page.hasEffect && (request.method === 'HEAD' || isPrefetch(request))
        return isHeld ? reply.code(204).send() : page.get(visit)
      }
      if (visit.hasProof()) return page.post(visit)
      return refuseForm(visit, page)
    },

    async fail(error, request, reply) {
      const refusal = explainFailure(error, request, errorAnswers)
      const { status, retryAfterSeconds } = refusal
      if (retryAfterSeconds !== undefined) reply.header('retry-after', retryAfterSeconds)
      const visit = visitOf(request, reply, { path: '/ui/sign-in' })
      // Finds the user's language. After a failure of ours the browser's is enough: the database may have failed.
      if (status < 500) await visit.caller().catch(() => undefined)
      const { failed, again, reference } = visit.words(frameWords)
      return visit.show({
        ...{ status, title: failed, problem: visit.explain(refusal) },
        body: html`${status >= 500 && html`<p class="hint">${fill(reference, { id: request.id })}</p>`}
<p class="links"><a href="${visit.link('/ui/sign-in')}">${again}</a></p>
`,
      })
    },
  }
}
