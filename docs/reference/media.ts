// Generated parts of docs/reference/media. The pages need marks for each: `<!-- NAME -->` and `<!-- end NAME -->`.
import { createLogger } from '../../packages/common/src/telemetry/logger.ts'
import { createApp } from '../../services/media/src/app.ts'
import { commands } from '../../services/media/src/commands.ts'
import { databaseVariables } from '../../services/media/src/config/database.ts'
import { importVariables } from '../../services/media/src/config/imports.ts'
import { libraryVariables } from '../../services/media/src/config/library.ts'
import { limitVariables } from '../../services/media/src/config/limits.ts'
import { logVariables } from '../../services/media/src/config/log.ts'
import { moderationVariables } from '../../services/media/src/config/moderation.ts'
import { serverVariables } from '../../services/media/src/config/server.ts'
import { sourceVariables } from '../../services/media/src/config/sources.ts'
import { workerVariables } from '../../services/media/src/config/workers.ts'
import { readConfig, variables } from '../../services/media/src/config.ts'
import type { Deps } from '../../services/media/src/deps.ts'
import { errorCatalogue } from '../../services/media/src/errors.ts'
import { createRateLimits } from '../../services/media/src/http/rate-limit.ts'
import { storageVariables } from '../../services/media/src/store/blobs/storage-settings.ts'
import { TIME_LIMITS } from '../../services/media/src/time-limits.ts'
import { commandsPart, errorsPart, type Generated } from './generated.ts'
import { type ApiDocument, operationParts } from './operations.ts'
import { type VariableGroup, variableTables } from './variables.ts'

const GROUPS: VariableGroup[] = [
  { mark: 'server', variables: serverVariables },
  { mark: 'database', variables: databaseVariables },
  { mark: 'storage', variables: storageVariables },
  { mark: 'sources', variables: sourceVariables },
  { mark: 'imports', variables: importVariables },
  { mark: 'workers', variables: workerVariables },
  { mark: 'limits', variables: limitVariables },
  { mark: 'moderation', variables: moderationVariables },
  { mark: 'library', variables: libraryVariables },
  { mark: 'log', variables: logVariables },
]

export async function generatedParts(): Promise<Generated[]> {
  return [
    ...operationParts(await readDocument(), {
      page: 'media/http.md',
      authorization: { '': 'none', token: 'token', bearer: 'token', gifsApiKey: 'token', deleteToken: 'delete token' },
      explainedOnce: ['401', '403', '405', '408', '415', '429', '431', '500', '503', '504'],
    }),
    errorsPart('media/errors.md', errorCatalogue),
    commandsPart('media/command-line.md', commands),
    ...variableTables('media/configuration.md', 'MEDIA_', variables, GROUPS),
  ]
}

/** The OpenAPI document, from an app that reaches nothing. */
async function readDocument(): Promise<ApiDocument> {
  const { config } = readConfig({
    MEDIA_BASE_URL: 'https://media.example.com',
    MEDIA_DATABASE_URL: 'postgres://localhost/media',
    MEDIA_BLOBS_DIR: '/var/lib/media/blobs',
  })
  const log = createLogger({ name: 'reference', level: 'fatal' })
  const never = new AbortController().signal
  const limits = createRateLimits({} as Parameters<typeof createRateLimits>[0], config)
  const signals = { stopping: never, forceStop: never }
  const app = await createApp({ config, log, limits, timeLimits: TIME_LIMITS, ...signals } as Deps)
  // A real connection: answers of media set a timeout of theirs, which injected requests do not have.
  const base = await app.listen({ host: '127.0.0.1', port: 0 })
  const document = (await (await fetch(`${base}/openapi.json`)).json()) as ApiDocument
  await app.close()
  return document
}
