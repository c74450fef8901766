// Settings as administrators see them: effective, with their sources, and without secrets. They are read at start, so a
// change needs a restart. Route: settings.routes.ts. Keys: shown-keys.ts.
import type { GivenValue, Variable } from '@services/common/config/variables'
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
    ...shownValue(variable, given[name]),
    type: variable.type,
    default: variable.default ?? null,
    meaning: variable.meaning,
    findings: all.filter(({ subject }) => subject.test(`AUTH_${name}`)).map(({ finding }) => finding),
  }))
  return { settings, ...findings }
}

function shownValue({ type, default: fallback, secret = false }: Variable<unknown>, given: GivenValue | undefined) {
  const value = given?.value ?? fallback ?? null
  return {
    value: value !== null && secret && given ? null : type === 'list' ? value : value && withoutCredentials(value),
    secret,
    source: given?.from ?? (fallback === undefined ? ('unset' as const) : ('default' as const)),
    ...(given && { given_as: given.name }),
  }
}

/**
 * Hides user names, passwords and queries of URLs, where other systems take keys; not for a list, where `?` is a glob.
 * A value that begins as a URL is one, whatever characters they hold. In a text, a URL ends at the first of a few.
 */
const withoutCredentials = (value: string): string =>
  value
    .replace(/^([a-z][a-z\d+.-]*:\/\/)[^/?#]*@/i, '$1…@')
    .replace(/^([a-z][a-z\d+.-]*:\/\/[^?#]*)\?.+/is, '$1?…')
    .replaceAll(/([a-z][a-z\d+.-]*:\/\/)[^\s/?#,|"]*@/gi, '$1…@')
    .replaceAll(/(:\/\/[^\s?#,|"]*)\?[^\s,|"]+/g, '$1?…')

/** Matches the settings that a sentence names before its reason; `*` stands for a part of a name. */
function subjectOf(finding: string): RegExp {
  const [subject = ''] = finding.split(': ', 1)
  const names = subject.match(/\bAUTH_[A-Z\d_*]+/g) ?? []
  return new RegExp(`^(?:${names.map((name) => name.replaceAll('*', '[A-Z\\d_]+')).join('|') || '$.'})$`)
}
