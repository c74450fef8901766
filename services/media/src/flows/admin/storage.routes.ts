// /storage: files by kind, and their check in the background. Tests: storage.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { beginCheck, readStorage } from '../../core/administration/storage.ts'
import type { Deps } from '../../deps.ts'
import { adminOf } from '../../http/authenticate.ts'
import { answers, orNull, Time, tokenRoute } from '../../http/shapes.ts'

const FindingShape = Type.Object({}, { additionalProperties: true })
const CheckShape = Type.Object(
  {
    id: Type.String(),
    state: Type.Enum(['running', 'finished', 'failed'] as const),
    begun_at: Time,
    finished_at: orNull(Time),
    machine: orNull(Type.String({ description: 'Host name of the worker.' })),
    operator: orNull(Type.String({ description: 'Account of the machine, for a command.' })),
    result: orNull(
      Type.Object({
        files: Type.Integer(),
        bytes: Type.Integer(),
        rows: Type.Integer(),
        found: Type.Record(Type.String(), Type.Integer(), { description: 'Findings by kind.' }),
        findings: Type.Array(Type.Unsafe<object>(FindingShape), { description: 'The first 100.' }),
      }),
    ),
    error: orNull(Type.String()),
  },
  { title: 'StorageCheck' },
)

const StorageShape = Type.Object(
  {
    kinds: Type.Array(
      Type.Object({
        kind: Type.String({ description: 'Extension; `source` for files that wait to be transcoded.' }),
        files: Type.Integer(),
        bytes: Type.Integer(),
      }),
    ),
    files: Type.Integer(),
    bytes: Type.Integer(),
    counted_at: orNull(Time, { description: 'Time of the count; null before the first one.' }),
    check: orNull(CheckShape, { description: 'The check that runs, or the last one.' }),
  },
  { title: 'Storage' },
)

export const storageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.get(
    '/storage',
    {
      schema: {
        ...tokenRoute('administration', 'getStorage', 'Stored files and bytes by kind, and the last check'),
        description: 'More than 20,000 files are counted every hour.',
        response: answers(200, StorageShape, [401, 403, 429]),
      },
    },
    async () => ({ success: await readStorage(deps) }),
  )

  app.post(
    '/storage/check',
    {
      schema: {
        ...tokenRoute('administration', 'checkStorage', 'Compares the stored files with the database'),
        description: 'In the background, one check at a time; it repairs nothing. GET /storage has its result.',
        response: answers(202, CheckShape, [400, 401, 403, 408, 413, 415, 429]),
      },
    },
    async (request, reply) => reply.code(202).send({ success: await beginCheck(deps, adminOf(request)) }),
  )
}
