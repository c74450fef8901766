// Settings as administrators see them: effective, with their sources, and without secrets. They are read at start, so a
// change needs a restart. Route: settings.routes.ts. Keys: shown-keys.ts.
import { shownSetting } from '@services/common/config/shown-setting'
import { settingFaults, settingsToRenew } from '../../../config/faults.ts'
import { settingsToReview } from '../../../config/review.ts'
import type { Config } from '../../../config.ts'
import type { Encryption } from '../../../core/keys/encryption.ts'
import { missingKeys, type SealedRowsWatch, sentence } from '../../../core/keys/sealed-rows.ts'

export interface SettingsDeps {
  config: Config
  encryption: Pick<Encryption, 'keys'>
  sealedRows: Pick<SealedRowsWatch, 'figures'>
  now: () => Date
}

/** Lists the settings with the findings of `config check` that need no other server. */
export function showSettings({ config, encryption, sealedRows, now }: SettingsDeps) {
  const { variables, given, warnings } = config.origin
  const findings = {
    problems: [
      ...config.gaps,
      ...settingFaults(config, now()),
      ...missingKeys(encryption, sealedRows.figures() ?? []).map(sentence),
    ],
    warnings: [...warnings, ...settingsToRenew(config, now())],
    review: settingsToReview(config),
  }
  const all = Object.values(findings)
    .flat()
    .map((finding) => ({ finding, subject: subjectOf(finding) }))
  const settings = Object.entries(variables).map(([name, variable]) => ({
    name: `AUTH_${name}`,
    ...shownSetting(variable, given[name]),
    type: variable.type,
    default: variable.default ?? null,
    meaning: variable.meaning,
    findings: all.filter(({ subject }) => subject.test(`AUTH_${name}`)).map(({ finding }) => finding),
  }))
  return { settings, ...findings }
}

/** Matches the settings that a sentence names before its reason; `*` stands for a part of a name. */
function subjectOf(finding: string): RegExp {
  const [subject = ''] = finding.split(': ', 1)
  const names = subject.match(/\bAUTH_[A-Z\d_*]+/g) ?? []
  return new RegExp(`^(?:${names.map((name) => name.replaceAll('*', '[A-Z\\d_]+')).join('|') || '$.'})$`)
}
