import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { audit } from '../../../core/audit/audit.ts'
import { PasskeyShape, requirePasskey, toPasskeyBody } from '../../../core/passkeys/passkey-shape.ts'
import { listPasskeys } from '../../../core/passkeys/passkeys.store.ts'
import { removePasskey } from '../../../core/passkeys/remove-passkey.ts'
import { lockAndReadUser } from '../../../core/users/users.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { subjectOf } from '../../../http/caller/subject.ts'

const schema = { tags: ['admin'], security: [{ admin: [] }] }

/** Passkeys of the user of the path; also while passkeys are disabled, because they would work again later. */
export const adminPasskeysRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/users/:user_id/passkeys',
    schema: {
      ...schema,
      operationId: 'adminListPasskeys',
      summary: "A user's passkeys, oldest first",
      params: Type.Object({ user_id: Type.String() }),
      response: { 200: Type.Array(PasskeyShape), ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => (await listPasskeys(deps.db, subjectOf(request).id)).map(toPasskeyBody),
  })

  app.route({
    method: 'DELETE',
    url: '/admin/users/:user_id/passkeys/:passkey_id',
    schema: {
      ...schema,
      operationId: 'adminDeletePasskey',
      summary: 'Removes a passkey and ends the sessions that it started, for a user who lost it',
      params: Type.Object({ user_id: Type.String(), passkey_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { id: userId } = subjectOf(request)
      await deps.db.transaction().execute(async (trx) => {
        const user = await lockAndReadUser(trx, userId)
        if (!user) throw apiError('user_not_found', { status: 404, message: 'User not found' })
        const passkey = requirePasskey(await listPasskeys(trx, userId), request.params.passkey_id)
        await removePasskey(trx, passkey)
        const traits = { passkey_id: passkey.id }
        const actor = adminOf(request)
        await audit(deps, trx, request.log, { action: 'passkey_deleted', actor, target: user, traits })
      })
      return reply.code(204).send(null)
    },
  })
}
