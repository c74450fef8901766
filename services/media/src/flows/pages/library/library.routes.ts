// Pages of an owner: all clips at /library, and one at /library/{id} (contract/media-library.md 2 and 3). Both show
// what the API answers, by the same functions. Tests: library.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { html } from '@services/common/html'
import type { Deps } from '../../../deps.ts'
import { libraryWords } from '../../../words/library.ts'
import { sendSignedInPage } from '../owner-page.http.ts'
import { requireVisitor, visitorOf } from '../visitor.http.ts'

export const libraryRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireVisitor(app, deps)

  app.get('/library', { schema: { hide: true } }, async (request, reply) => {
    const visitor = visitorOf(request)
    return sendSignedInPage(reply, deps.config.site, visitor, {
      ...{ title: libraryWords[visitor.language].title, current: '/library' },
      body: html``,
    })
  })
}
