// Nonces for messages that wallets sign. They are not stored: core/web3/nonce.ts. The sign-in itself is a grant of
// POST /token.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { requireChains } from '../../core/web3/chains.ts'
import { makeNonce } from '../../core/web3/nonce.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'

export const web3NonceRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/web3/nonce',
    schema: {
      operationId: 'getWalletNonce',
      tags: ['sign-in'],
      summary: 'A nonce for one message that a wallet signs',
      response: {
        200: Type.Object(
          { nonce: Type.String(), expires_at: Type.Integer({ description: 'Unix seconds.' }) },
          { title: 'WalletNonce' },
        ),
        ...errorResponses(422),
      },
    },
    handler: async () => {
      requireChains(deps.web3)
      return makeNonce(deps)
    },
  })
}
