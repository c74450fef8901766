import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { shownDevices, TrustedDeviceShape } from '../../core/trusted-devices/device-info.ts'
import { removeDevices } from '../../core/trusted-devices/remove-devices.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses, Field } from '../../http/bodies/shapes.ts'
import { adminOf } from '../../http/caller/admin-only.ts'
import { callerOf, requireLiveSession } from '../../http/caller/authenticate.ts'
import { subjectOf } from '../../http/caller/subject.ts'
import { requireDevicesEnabled } from '../../http/caller/trusted-device.ts'
import { clientOf } from '../../http/limits/client.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { NewTrustedDevice, trustDevice } from './trust-device.ts'

const Devices = Type.Array(TrustedDeviceShape)

/** After the scope's check of the token, before the body. */
function requireEnabled(app: FastifyInstance, { config }: Deps): void {
  app.addHook('onRequest', async () => requireDevicesEnabled(config))
}

export const ownDevicesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireEnabled(app, deps)
  const url = '/factors/trusted-devices'
  const security = [{ user: [] }]
  const tags = ['second factors']

  app.route({
    method: 'POST',
    url,
    schema: {
      operationId: 'trustDevice',
      tags,
      summary: 'Trusts this device: its token replaces the second factor at sign-ins. Needs a factor proven just now',
      security,
      body: Type.Union([Type.Object({ name: Type.Optional(Field) }), Type.Null()]),
      response: { 200: NewTrustedDevice, ...errorResponses(400, 401, 403, 404, 413, 429) },
    },
    handler: async (request) => {
      const caller = requireLiveSession(request)
      await deps.limits.byAddress(request, 'user')
      const client = clientOf(request, deps.config)
      const order = { name: request.body?.name, client, acceptLanguage: acceptLanguageOf(request) }
      return trustDevice(deps, request.log, caller, order)
    },
  })

  app.route({
    method: 'GET',
    url,
    schema: {
      operationId: 'listTrustedDevices',
      tags,
      summary: "The user's trusted devices, newest first",
      security,
      response: { 200: Devices, ...errorResponses(400, 401, 403, 404) },
    },
    handler: (request) => shownDevices(deps, callerOf(request).user.id),
  })

  app.route({
    method: 'DELETE',
    url,
    schema: {
      operationId: 'removeTrustedDevices',
      tags,
      summary: 'Removes all trusted devices of the user; sessions that they began are aal1 again',
      security,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { user } = requireLiveSession(request)
      await removeDevices(deps, request.log, { actor: user, owner: user })
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/:device_id`,
    schema: {
      operationId: 'removeTrustedDevice',
      tags,
      summary: 'Removes a trusted device; sessions that it began are aal1 again',
      security,
      params: Type.Object({ device_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { user } = requireLiveSession(request)
      await removeDevices(deps, request.log, { actor: user, owner: user, id: request.params.device_id })
      return reply.code(204).send(null)
    },
  })
}

export const adminDevicesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireEnabled(app, deps)
  const url = '/admin/users/:user_id/trusted-devices'
  const UserParams = { user_id: Type.String() }
  const schema = { tags: ['admin'], security: [{ admin: [] }], params: Type.Object(UserParams) }

  app.route({
    method: 'GET',
    url,
    schema: {
      ...schema,
      operationId: 'adminListTrustedDevices',
      summary: "A user's trusted devices, newest first",
      response: { 200: Devices, ...errorResponses(401, 403, 404) },
    },
    handler: (request) => shownDevices(deps, subjectOf(request).id),
  })

  app.route({
    method: 'DELETE',
    url,
    schema: {
      ...schema,
      operationId: 'adminRemoveTrustedDevices',
      summary: 'Removes all trusted devices of a user; sessions that they began are aal1 again',
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      await removeDevices(deps, request.log, { actor: adminOf(request), owner: subjectOf(request) })
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/:device_id`,
    schema: {
      ...schema,
      operationId: 'adminRemoveTrustedDevice',
      summary: 'Removes a trusted device of a user; sessions that it began are aal1 again',
      params: Type.Object({ ...UserParams, device_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { device_id: id } = request.params
      await removeDevices(deps, request.log, { actor: adminOf(request), owner: subjectOf(request), id })
      return reply.code(204).send(null)
    },
  })
}
