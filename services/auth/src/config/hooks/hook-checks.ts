import { HOOK_NAMES, type HookPoint } from '../../adapters/hooks/points.ts'
import { hookSettings, prefixOf, type SendingPoint, sendingSettings, valuesOf } from './hook-variables.ts'

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

/** Points that one request may ask, one after another; a sending one only where requests wait for it. */
const TOGETHER: Record<string, readonly HookPoint[]> = {
  'a sign-up': ['before-user-created', 'customize-access-token', 'after-user-created', 'send-email', 'send-sms'],
  'a sign-in by password': ['password-verification', 'customize-access-token'],
  'a second factor': ['mfa-verification', 'customize-access-token'],
}

/** Warns of time limits that a request never reaches, because its own ends first: of each hook, and of several. */
export function hookWarnings(values: Record<string, unknown>, maxRequestSeconds: number): string[] {
  const hooks = hookSettings(values)
  const isWaitedFor = (point: HookPoint) =>
    hooks[point] && (!isSending(point) || sendingSettings(values, point).waitsForHook)
  const secondsOf = (point: HookPoint) => hooks[point]?.timeoutSeconds ?? 0
  const variable = (point: HookPoint) => `AUTH_${prefixOf(point)}TIMEOUT`
  const tooLong = HOOK_NAMES.filter((point) => isWaitedFor(point) && secondsOf(point) >= maxRequestSeconds)
  const sums = Object.entries(TOGETHER).flatMap(([request, points]) => {
    const asked = points.filter(isWaitedFor)
    const isOwn = asked.some((point) => tooLong.includes(point))
    return !isOwn && asked.reduce((sum, point) => sum + secondsOf(point), 0) >= maxRequestSeconds
      ? [
          `${asked.map(variable).join(' + ')} is not below ${LIMIT}: ${request} asks all of them, and may end before the last answer`,
        ]
      : []
  })
  return [
    ...tooLong.map((point) => `${variable(point)} is not below ${LIMIT}: a request ends before its hook does`),
    ...sums,
  ]
}

const LIMIT = 'AUTH_API_MAX_REQUEST_DURATION'

const isSending = (point: HookPoint): point is SendingPoint => point === 'send-email' || point === 'send-sms'
