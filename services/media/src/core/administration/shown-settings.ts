import { shownSetting } from '@services/common/config/shown-setting'
import { settingsToReview, startWarnings } from '../../config/start-warnings.ts'
import { variables } from '../../config.ts'
import type { Deps } from '../../deps.ts'

/** Lists the settings in force, without secrets, and what an operator should know of them. */
export function showSettings({ config, tools }: Pick<Deps, 'config' | 'tools'>) {
  const { given, warnings } = config.origin
  return {
    settings: Object.entries(variables).map(([name, variable]) => ({
      name: `MEDIA_${name}`,
      ...shownSetting(variable, given[name]),
      type: variable.type as string,
      default: variable.secret ? null : (variable.default ?? null),
      meaning: variable.meaning as string,
    })),
    warnings: [...warnings, ...startWarnings(config, tools).map(({ text }) => text)],
    review: settingsToReview(config),
  }
}
