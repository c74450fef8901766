import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { isMailKind } from '../../../adapters/mail/kinds.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { lazyTemplates, listTemplates, previewMail, type Sample, sendSample } from './mail-templates.ts'

const TemplateShape = Type.Object(
  {
    kind: Type.String(),
    enabled: Type.Boolean({
      description: 'Whether its event sends a mail; for those with a link, where it is asked for.',
    }),
    source: Type.String({ description: 'Source of the body.', ...inDocument({ enum: ['built_in', 'file', 'url'] }) }),
    own_subject: Type.Boolean(),
  },
  { title: 'MailTemplate' },
)

const schema = { tags: ['admin'], security: [{ admin: [] }] }
const Params = Type.Object({ kind: Type.String() })
const Language = Type.Optional(
  Type.String({ description: 'One of `languages`; the default language if absent.', maxLength: 100 }),
)

export const mailTemplatesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { mail } = deps.config
  const templates = lazyTemplates(deps)

  app.route({
    method: 'GET',
    url: '/admin/mail-templates',
    schema: {
      ...schema,
      operationId: 'listMailTemplates',
      summary: 'Kinds of mails, their languages, and whose template each has',
      response: {
        200: Type.Object({
          default_language: Type.String(),
          languages: Type.Array(Type.String()),
          sent_by: Type.String({
            description: 'A `hook` writes the mails itself: it uses no template.',
            ...inDocument({ enum: ['mail_server', 'hook'] }),
          }),
          templates: Type.Array(TemplateShape),
        }),
        ...errorResponses(401, 403, 422),
      },
    },
    handler: async () => listTemplates(deps.config, templates()),
  })

  app.route({
    method: 'GET',
    url: '/admin/mail-templates/:kind',
    schema: {
      ...schema,
      operationId: 'previewMail',
      summary: 'A mail with made-up values',
      params: Params,
      querystring: Type.Object({ language: Language }),
      response: {
        200: Type.Object({
          kind: Type.String(),
          language: Type.String(),
          subject: Type.String(),
          html: Type.String(),
          text: Type.String(),
          is_own: Type.Boolean({
            description: 'Whether the body is yours: false while a template of yours cannot be loaded or rendered.',
          }),
        }),
        ...errorResponses(400, 401, 403, 404, 422),
      },
    },
    handler: async (request) => {
      const sample = readSample(request.params.kind, request.query.language)
      const { isOwn, ...rendered } = await previewMail(templates(), sample)
      return { kind: sample.kind, ...rendered, is_own: isOwn }
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/mail-templates/:kind/send',
    schema: {
      ...schema,
      operationId: 'sendMailSample',
      summary: 'Sends a mail with made-up values to the confirmed address of the caller',
      description: 'Needs the token of a signed-in administrator. GET /admin/messages has its state.',
      params: Params,
      body: Type.Object({ language: Language }),
      response: {
        202: Type.Object({ message_id: Type.String({ format: 'uuid' }) }),
        ...errorResponses(400, 401, 403, 404, 413, 422, 429),
      },
    },
    handler: async (request, reply) => {
      const sample = readSample(request.params.kind, request.body.language)
      const messageId = await sendSample(deps, request.log, adminOf(request), sample)
      return reply.code(202).send({ message_id: messageId })
    },
  })

  function readSample(kind: string, language = mail.defaultLocale): Sample {
    if (!isMailKind(kind)) throw apiError('not_found', { message: 'There is no such kind of mail' })
    const known = mail.locales.find((each) => each === language.toLowerCase())
    if (known) return { kind, language: known }
    throw apiError('validation_failed', { message: `language must be ${inWords(mail.locales, 'or')}` })
  }
}
