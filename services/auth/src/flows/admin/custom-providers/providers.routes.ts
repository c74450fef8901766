import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { providersOfApi, providersOfSettings } from './shown-providers.ts'

const ListedProviderShape = Type.Object(
  {
    provider: Type.String({ description: 'Name in `provider` of GET /authorize.' }),
    name: Type.Optional(Type.String()),
    origin: Type.String(inDocument({ enum: ['built_in', 'settings', 'admin_api'] })),
    enabled: Type.Boolean(),
    usable: Type.Boolean({ description: 'Whether browsers can sign in with it.' }),
    redirect_uri: Type.String({ description: 'Redirect address to register at the provider.' }),
    setting: Type.Optional(Type.String({ description: 'Variable that enables it.' })),
    missing: Type.Array(Type.String(), { description: 'Variables that it lacks, whether or not it is enabled.' }),
    problems: Type.Array(Type.String(), { description: 'Its settings that cannot work.' }),
  },
  { title: 'ListedProvider' },
)

export const providersRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/providers',
    schema: {
      operationId: 'listProviders',
      tags: ['admin'],
      summary: 'All providers with their redirect address and what they lack',
      description: 'Those of the admin API are at most the newest 1000; GET /admin/custom-providers has pages.',
      security: [{ admin: [] }],
      response: { 200: Type.Object({ providers: Type.Array(ListedProviderShape) }), ...errorResponses(401, 403) },
    },
    handler: async () => ({
      providers: [...providersOfSettings(deps), ...(await providersOfApi(deps.db, deps.config))],
    }),
  })
}
