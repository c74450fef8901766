// Hooks for administrators: which are asked, and how they failed lately.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { describeTarget } from '../../../adapters/hooks/hook-uri.ts'
import { HOOK_NAMES, HOOK_POINTS, type HookPoint } from '../../../adapters/hooks/points.ts'
import type { HookSettings } from '../../../config/hooks/hook-variables.ts'
import { listHookFailures, type StoredHookFailure } from '../../../core/hooks/hook-failures.store.ts'
import type { Deps } from '../../../deps.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'

const FailureShape = Type.Object(
  {
    failed_at: Type.String({ format: 'date-time' }),
    result: Type.String({ description: 'Code of the error.' }),
    reason: Type.String({
      description: 'Its cause; of an error of PostgreSQL only the SQLSTATE. The log has its text.',
    }),
    question_id: Type.String({ description: 'Id of the question, which is the header `webhook-id`.' }),
    failures: Type.Integer({ description: 'Failures since the entry before, of the process that wrote it.' }),
  },
  { title: 'HookFailure' },
)

const HookShape = Type.Object(
  {
    point: Type.String(),
    setting: Type.String({ description: 'Variable that enables it.' }),
    enabled: Type.Boolean(),
    uri: Type.Optional(Type.String({ description: 'Its address, without a query.' })),
    timeout: Type.Optional(Type.Number({ description: 'Seconds.' })),
    attempts: Type.Optional(Type.Integer()),
    signed: Type.Optional(Type.Boolean()),
    fails_open: Type.Optional(Type.Boolean({ description: 'Whether an attempt counts where it gives no answer.' })),
    failures: Type.Array(FailureShape, { description: 'The last 20, newest first; they stay 30 days.' }),
  },
  { title: 'Hook' },
)

export const hooksRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/hooks',
    schema: {
      operationId: 'listHooks',
      tags: ['admin'],
      summary: 'Hooks with their last failures',
      description: 'A refusal is an answer. A process writes one entry of a point in ten seconds.',
      security: [{ admin: [] }],
      response: { 200: Type.Object({ hooks: Type.Array(HookShape) }), ...errorResponses(401, 403) },
    },
    handler: async () => {
      const failures = await deps.reads.current(listHookFailures)
      return { hooks: HOOK_NAMES.map((point) => toBody(point, deps.config.hooks[point], failures)) }
    },
  })
}

const toBody = (point: HookPoint, hook: HookSettings | undefined, failures: readonly StoredHookFailure[]) => ({
  point,
  setting: `AUTH_HOOK_${HOOK_POINTS[point]}_ENABLED`,
  enabled: hook !== undefined,
  ...(hook && {
    uri: describeTarget(hook.target),
    timeout: hook.timeoutSeconds,
    attempts: hook.attempts,
    ...(hook.target.kind === 'http' && { signed: hook.signers.length > 0 }),
    fails_open: hook.failsOpen,
  }),
  failures: failures
    .filter((failure) => failure.point === point)
    .map(({ id: _id, point: _point, failed_at, ...failure }) => ({ ...failure, failed_at: failed_at.toISOString() })),
})
