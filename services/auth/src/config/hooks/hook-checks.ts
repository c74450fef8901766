import { HOOK_NAMES } from '../../adapters/hooks/points.ts'
import { hookSettings, prefixOf, valuesOf } from './hook-variables.ts'

export const hookProblems = (values: Record<string, unknown>): string[] =>
  HOOK_NAMES.flatMap((point) => {
    const prefix = `AUTH_${prefixOf(point)}`
    const {
      ENABLED: isEnabled,
      URI: target,
      SECRETS: secrets = [],
      UNSIGNED: isUnsigned,
      DATABASE_URL: url,
    } = valuesOf(point, values)
    if (isEnabled && !target) return [`${prefix}URI is required while ${prefix}ENABLED is true`]
    const isByHttp = target?.kind === 'http'
    return [
      ...(isEnabled && isByHttp && !isUnsigned && secrets.length === 0
        ? [`${prefix}SECRETS is required: a receiver must know who asks; ${prefix}UNSIGNED=true does without`]
        : []),
      ...(isUnsigned && secrets.length > 0 ? [`${prefix}UNSIGNED=true excludes ${prefix}SECRETS`] : []),
      ...(isByHttp && url ? [`${prefix}DATABASE_URL needs a pg-functions address in ${prefix}URI`] : []),
    ]
  })

/** Points whose requests wait; mails and SMS leave later. */
const WAITED_FOR = HOOK_NAMES.filter((point) => !point.startsWith('send-'))

/** Warns of time limits that a request never reaches, because its own ends first. */
export function hookWarnings(values: Record<string, unknown>, maxRequestSeconds: number): string[] {
  const hooks = hookSettings(values)
  return WAITED_FOR.flatMap((point) =>
    (hooks[point]?.timeoutSeconds ?? 0) >= maxRequestSeconds
      ? [
          `AUTH_${prefixOf(point)}TIMEOUT is not below AUTH_API_MAX_REQUEST_DURATION: a request ends before its hook does`,
        ]
      : [],
  )
}
