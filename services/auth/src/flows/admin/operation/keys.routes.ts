import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { showKeys } from './shown-keys.ts'

const Id = Type.Union([Type.String(), Type.Null()])

const SigningKeyShape = Type.Object(
  {
    id: Type.Union([Type.String(), Type.Null()], { description: '`kid`; null: AUTH_JWT_SECRET.' }),
    algorithm: Type.String(),
    state: Type.String(inDocument({ enum: ['signs', 'verifies'] })),
    published: Type.Boolean({ description: 'Whether /.well-known/jwks.json has its public half.' }),
    created: Type.Optional(Type.String({ description: 'Time of `keys generate`.' })),
  },
  { title: 'SigningKey' },
)

const EncryptionKeyShape = Type.Object(
  {
    id: Id,
    algorithm: Type.String(),
    state: Type.String({
      description:
        'The one that `encrypts`; others only decrypt. Rows need a `missing` key, or the former one of a `changed` id.',
      ...inDocument({ enum: ['encrypts', 'decrypts', 'missing', 'changed'] }),
    }),
    created: Type.Optional(Type.String({ description: 'Month in the id that `keys generate` made.' })),
    rows: Type.Optional(
      Type.Record(Type.String(), Type.Integer(), { description: 'Rows by table that it encrypted, at `counted_at`.' }),
    ),
  },
  { title: 'EncryptionKey' },
)

export const keysRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/keys',
    schema: {
      operationId: 'listKeys',
      tags: ['admin'],
      summary: 'Keys that sign tokens and encrypt rows, and what still uses them',
      description:
        'Never the keys themselves. Rows are counted every quarter of an hour; a key without rows can be dropped after `keys encryption status` has counted none.',
      security: [{ admin: [] }],
      response: {
        200: Type.Object({
          signing: Type.Array(SigningKeyShape),
          access_token_lifetime: Type.Integer({
            description: 'Seconds for which a key must still verify after it has stopped to sign.',
          }),
          encryption: Type.Array(EncryptionKeyShape),
          counted_at: Type.Optional(Type.String({ format: 'date-time' })),
        }),
        ...errorResponses(401, 403),
      },
    },
    handler: async () => showKeys(deps),
  })
}
