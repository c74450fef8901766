import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { showSettings } from './shown-settings.ts'

const Sentences = Type.Array(Type.String())

const SettingShape = Type.Object(
  {
    name: Type.String({ description: 'Variable of the environment.' }),
    value: Type.Union([Type.String(), Type.Null()], {
      description:
        'Effective value as text; null if it is unset, or set and secret. URLs are shown without user name, password and query.',
    }),
    secret: Type.Boolean({ description: 'Whether the value is never shown; its source says whether it is set.' }),
    source: Type.String(inDocument({ enum: ['environment', 'file', 'default', 'unset'] })),
    given_as: Type.Optional(Type.String({ description: 'Name that it was read under.' })),
    type: Type.String(),
    default: Type.Union([Type.String(), Type.Null()]),
    meaning: Type.String(),
    findings: Type.Array(Type.String(), { description: 'Problems, warnings and advice that name it.' }),
  },
  { title: 'Setting' },
)

export const settingsOfAdminRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/settings',
    schema: {
      operationId: 'listSettings',
      tags: ['admin'],
      summary: 'Effective settings, their sources, and what to review',
      description: 'Of the process that answers, as read at its start: a change needs a restart.',
      security: [{ admin: [] }],
      response: {
        200: Type.Object({
          settings: Type.Array(SettingShape),
          problems: Type.Array(Type.String(), { description: 'Settings with which a feature cannot work.' }),
          warnings: Sentences,
          review: Type.Array(Type.String(), { description: 'Valid settings that are less safe than they could be.' }),
        }),
        ...errorResponses(401, 403),
      },
    },
    handler: async () => showSettings(deps),
  })
}
