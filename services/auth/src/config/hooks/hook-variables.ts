// Variables of hooks: the same for each point at which the operator's own code is asked. Checks: hook-checks.ts.
import { boolean, duration, integer, parsed, type Values, type Variables } from '@services/common/config/variables'
import { parseDatabaseUrl, withModeOfDriver } from '@services/common/database/settings'
import { type HookTarget, parseHookUri } from '../../adapters/hooks/hook-uri.ts'
import { HOOK_NAMES, HOOK_POINTS, type HookPoint } from '../../adapters/hooks/points.ts'
import { parseSigningSecrets } from '../../adapters/hooks/signing-secrets.ts'
import { forEach } from '../for-each.ts'

/** Longest time limit of a hook: that of a statement is 15 s. */
const LONGEST_TIMEOUT = '15s'

/** Time limits that are not set, in seconds. */
const TIMEOUTS = { http: 5, function: 2 } as const

export const prefixOf = (point: HookPoint) => `HOOK_${HOOK_POINTS[point]}_`

/** Points that deliver messages, and do it later unless requests wait for them. */
export type SendingPoint = 'send-email' | 'send-sms'

const SYNC = boolean(
  'Requests that cause a message wait for the hook and fail with its error, which is not retried; answers then reveal which addresses have accounts.',
  { default: 'false' },
)

/** Variables of each point, without their prefix. */
const pointVariables = (point: HookPoint) =>
  ({
    ENABLED: boolean(`Asks your own code at ${point}.`, { default: 'false' }),
    URI: parsed(
      'URI',
      'Its address: `https://…`, `http://` of the same machine, or `pg-functions://postgres/schema/function`; required when enabled.',
      {},
      parseHookUri,
    ),
    SECRETS: parsed(
      'list',
      'Secrets that sign its requests, separated by `|`: `v1,whsec_…` (HMAC) or `v1a,whpk_…:whsk_…` (Ed25519); required by HTTP.',
      { secret: true },
      parseSigningSecrets,
    ),
    UNSIGNED: boolean('Its requests are not signed, so SECRETS is not required.', { default: 'false' }),
    TIMEOUT: duration('Time limit of all attempts together; unset: 5 s by HTTP, 2 s for a function.', {
      positive: true,
      max: LONGEST_TIMEOUT,
    }),
    ATTEMPTS: integer('Attempts by HTTP, when it cannot be reached or answers 429 or 503 with Retry-After.', {
      default: '3',
      min: 1,
      max: 10,
    }),
    DATABASE_URL: parsed(
      'string',
      'Connection string of the database with its function; unset: the database of this service.',
      { secret: true },
      parseDatabaseUrl,
    ),
  }) satisfies Variables

const failOpen = (what: string) => ({
  FAIL_OPEN: boolean(`${what} counts where the hook gives no answer; otherwise it is refused.`, { default: 'false' }),
})

/** Variables of single points. */
const OWN: Partial<Record<HookPoint, Variables>> = {
  'customize-access-token': {
    ADDITIVE: boolean(
      'Its `claims` are added to those of the token, and none is missing; otherwise they replace them.',
      {
        default: 'false',
      },
    ),
  },
  'password-verification': failOpen('A password'),
  'mfa-verification': failOpen('A second factor'),
  'send-email': { SYNC },
  'send-sms': { SYNC },
}

type PointValues = Values<ReturnType<typeof pointVariables>> & { ADDITIVE?: boolean; FAIL_OPEN?: boolean }

const prefixed = (prefix: string, variables: Variables): Variables =>
  Object.fromEntries(Object.entries(variables).map(([name, variable]) => [prefix + name, variable]))

const variablesOf = (point: HookPoint): Variables => ({ ...pointVariables(point), ...OWN[point] })

export const hookVariables = forEach(HOOK_NAMES, (point) => prefixed(prefixOf(point), variablesOf(point)))

/** Whether a hook sends the messages, and whether requests wait for it. */
export function sendingSettings(values: Record<string, unknown>, point: SendingPoint) {
  const byHook = isHookEnabled(values, point)
  return { byHook, waitsForHook: byHook && values[`${prefixOf(point)}SYNC`] === true }
}

export const isHookEnabled = (values: Record<string, unknown>, point: HookPoint): boolean =>
  values[`${prefixOf(point)}ENABLED`] === true

export const valuesOf = (point: HookPoint, values: Record<string, unknown>) =>
  Object.fromEntries(
    Object.keys(variablesOf(point)).map((name) => [name, values[prefixOf(point) + name]]),
  ) as PointValues

export interface HookSettings {
  target: HookTarget
  signers: NonNullable<PointValues['SECRETS']>
  timeoutSeconds: number
  attempts: number
  /** Database of the function, unless this service's. */
  databaseUrl: string | undefined
  /** customize-access-token: whether its claims are added. */
  isAdditive: boolean
  /** password-verification, mfa-verification: whether an attempt counts where it gives no answer. */
  failsOpen: boolean
}

/** Settings of the enabled hooks. */
export function hookSettings(values: Record<string, unknown>): Partial<Record<HookPoint, HookSettings>> {
  const enabled = HOOK_NAMES.flatMap((point) => {
    const { ENABLED: isEnabled, URI: target, ...own } = valuesOf(point, values)
    if (!isEnabled || !target) return []
    const settings: HookSettings = {
      target,
      signers: own.SECRETS ?? [],
      timeoutSeconds: own.TIMEOUT ?? TIMEOUTS[target.kind],
      attempts: own.ATTEMPTS,
      isAdditive: own.ADDITIVE ?? false,
      failsOpen: own.FAIL_OPEN ?? false,
      databaseUrl: own.DATABASE_URL && withModeOfDriver(own.DATABASE_URL),
    }
    return [[point, settings] as const]
  })
  return Object.fromEntries(enabled)
}
