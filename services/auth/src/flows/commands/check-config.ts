import { ConfigError } from '@services/common/config/variables'
import { problemsOf } from '@services/common/process/service-commands'
import { checkTemplateSources } from '../../adapters/mail/check-sources.ts'
import { settingFaults, settingsToRenew } from '../../config/faults.ts'
import type { Config } from '../../config.ts'
import { importSigningKeys } from '../../core/keys/signing-keys.ts'
import { checkKeysOfRows } from './encryption/missing-keys.ts'
import { searchNotes } from './search-notes.ts'

/** Checks what a start refuses or logs, and what only a mail would meet. */
export async function checkConfig(config: Config) {
  const now = new Date()
  const ofRows = await checkKeysOfRows(config)
  const warnings = [...settingsToRenew(config, now), ...ofRows.warnings]
  const problems = [
    ...config.gaps,
    ...settingFaults(config, now),
    ...(await problemsOf(() => importSigningKeys(config.jwt))),
    ...ofRows.problems,
    ...(await problemsOf(async () => {
      const templates = await checkTemplateSources(config)
      warnings.push(...templates.warnings)
      if (templates.problems.length > 0) throw new ConfigError(templates.problems)
    })),
  ]
  return { problems, warnings, notes: problems.length > 0 ? [] : await searchNotes(config) }
}
