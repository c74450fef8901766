// GET /: the page to add clips, in the language of the browser. Tests: home-page.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Deps } from '../../../deps.ts'
import { languageOf } from '../../../words/language.ts'
import { sendPage } from '../send-page.http.ts'
import { findVisitor } from '../visitor.http.ts'
import { homePage } from './home-page.ts'

export const homeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site, source, hasLibrary, uploadNeedsToken: needsToken } = deps.config

  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    const session = await findVisitor(deps, request, reply, 'page')
    const page = homePage(site, { language: languageOf(request), source, needsToken, hasLibrary, session })
    reply.header('vary', hasLibrary ? 'Accept-Language, Cookie' : 'Accept-Language')
    return sendPage(reply, page, session ? 'private, no-store' : 'public, max-age=300')
  })
}
