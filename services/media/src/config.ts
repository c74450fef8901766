// Settings: config/ has a file per subject, which reads and checks its variables. Nothing else reads the environment;
// code receives the part it needs (`config.limits`), checked and in seconds. Tests: test/config.test.ts.
import {
  type Environment,
  type GivenValue,
  readVariables,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { databaseSettings, databaseWarnings } from '@services/common/database/settings'
import { databaseVariables } from './config/database.ts'
import { importSettings, importVariables } from './config/imports.ts'
import { librarySettings, libraryVariables } from './config/library.ts'
import { limitSettings, limitVariables } from './config/limits.ts'
import { logSettings, logVariables } from './config/log.ts'
import { moderationSettings, moderationVariables, moderationWarnings, requiredModeration } from './config/moderation.ts'
import { serverSettings, serverVariables, serverWarnings } from './config/server.ts'
import { sourceSettings, sourceVariables } from './config/sources.ts'
import { workerSettings, workerVariables } from './config/workers.ts'
import { requiredStorage, storageSettings, storageVariables, storageWarnings } from './store/blobs/storage-settings.ts'

/** All variables, read as `MEDIA_<NAME>`, then as `<NAME>`; docs/reference/media/configuration.md shows them. */
export const variables = {
  ...serverVariables,
  ...databaseVariables,
  ...storageVariables,
  ...sourceVariables,
  ...importVariables,
  ...workerVariables,
  ...limitVariables,
  ...moderationVariables,
  ...libraryVariables,
  ...logVariables,
} satisfies Variables

export type RawConfig = Values<typeof variables>
export type Config = ReturnType<typeof groupConfig> & { origin: Origin }

/** Throws a ConfigError that lists all problems. `warnings` name settings that are unknown or without effect. */
export function readConfig(environment: Environment, file: Environment = {}): { config: Config; warnings: string[] } {
  const given = (name: string) =>
    [environment, file].flatMap((source) => [source[`MEDIA_${name}`], source[name]]).find(Boolean)
  const all = { ...variables, ...requiredStorage(given), ...requiredModeration(given) }
  const { values, warnings: ofNames, given: set } = readVariables(all, 'MEDIA_', environment, file)
  const warnings = [
    ...ofNames,
    ...databaseWarnings(values, 'MEDIA_'),
    ...storageWarnings(values),
    ...serverWarnings(values),
    ...moderationWarnings(values),
  ]
  const origin: Origin = { given: set, warnings }
  return { config: { ...groupConfig(values, environment.PATH ?? ''), origin }, warnings }
}

/** Texts of the settings, for administrators. `warnings` are those of readConfig. */
interface Origin {
  given: Readonly<Record<string, GivenValue>>
  warnings: readonly string[]
}

function groupConfig(values: RawConfig, searchPath: string) {
  return {
    ...serverSettings(values),
    database: databaseSettings(values),
    storage: storageSettings(values),
    ...sourceSettings(values),
    ...importSettings(values),
    ...workerSettings(values, searchPath),
    ...limitSettings(values),
    ...moderationSettings(values),
    ...librarySettings(values),
    ...logSettings(values),
  }
}
