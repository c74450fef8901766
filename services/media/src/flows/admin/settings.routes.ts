import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { showSettings } from '../../core/administration/shown-settings.ts'
import type { Deps } from '../../deps.ts'
import { answers, orNull, tokenRoute } from '../../http/shapes.ts'

const SettingShape = Type.Object(
  {
    name: Type.String({ description: 'Variable of the environment.' }),
    value: orNull(Type.String(), {
      description:
        'Effective value as text; null if it is unset, or set and secret. URLs are shown without user name, password and query.',
    }),
    secret: Type.Boolean({ description: 'Whether the value is never shown; its source says whether it is set.' }),
    source: Type.Enum(['environment', 'file', 'default', 'unset'] as const),
    given_as: Type.Optional(Type.String({ description: 'Name that it was read under.' })),
    type: Type.String(),
    default: orNull(Type.String()),
    meaning: Type.String(),
  },
  { title: 'Setting' },
)

const SettingsShape = Type.Object(
  {
    settings: Type.Array(SettingShape),
    warnings: Type.Array(Type.String(), { description: 'Those of the start.' }),
    review: Type.Array(Type.String(), { description: 'Valid settings that are less safe than they could be.' }),
  },
  { title: 'Settings' },
)

export const settingsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.get(
    '/settings',
    {
      schema: {
        ...tokenRoute('administration', 'listSettings', 'Effective settings, their sources, and what to review'),
        description: 'Of the process that answers, as read at its start: a change needs a restart.',
        response: answers(200, SettingsShape, [401, 403, 429]),
      },
    },
    async () => ({ success: showSettings(deps) }),
  )
}
