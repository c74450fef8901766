import type { FastifyPluginAsync } from 'fastify'
import type { Deps } from '../../deps.ts'
import type { PageAnswers } from '../../http/hosted/answer-pages.ts'

const MAX_FORM_BYTES = 64 * 1024

/** All of /ui. The pages are loaded by the first request: a start without one takes 60 ms less (measured). */
export const hostedPages: FastifyPluginAsync<{ deps: Deps }> = async (app, { deps }) => {
  let loading: Promise<PageAnswers> | undefined
  const load = () => {
    loading ??= import('./all-pages.http.ts').then(({ answerAllPages }) => answerAllPages(app, deps))
    return loading
  }
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(body as string))),
  )
  app.setErrorHandler(async (error, request, reply) => (await load()).fail(error, request, reply))
  app.route<{ Params: { '*': string } }>({
    method: ['GET', 'POST'],
    url: '/ui/*',
    schema: { hide: true },
    handler: async (request, reply) => (await load()).answer(`/ui/${request.params['*']}`, request, reply),
  })
}
