import { boolean, duration, type Values, type Variables } from '@services/common/config/variables'
import type { jwtVariables } from './jwt.ts'
import type { limitVariables } from './limits.ts'

export const sessionVariables = {
  SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: boolean('A reused refresh token ends its session.', { default: 'true' }),
  SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: duration(
    'Time after its replacement in which a refresh token returns its successor, whatever client uses it.',
    { default: '10' },
  ),
  SESSIONS_TIMEBOX: duration('Sessions end this long after sign-in.', { positive: true }),
  SESSIONS_INACTIVITY_TIMEOUT: duration('Sessions end this long after their last refresh.', { positive: true }),
  SESSIONS_KEEP_IDLE: duration(
    'Deletes sessions without a refresh for this long, a day at least; until then they stay usable. Unset: never.',
    { positive: true },
  ),
  SESSIONS_SINGLE_PER_USER: boolean('Only the newest session of a user is valid.', { default: 'false' }),
} satisfies Variables

type Session = typeof sessionVariables &
  Pick<typeof limitVariables, 'RATE_LIMIT_HEADER' | 'SECURITY_SB_FORWARDED_FOR_ENABLED'>

export const sessionSettings = (values: Values<Session>) => ({
  rotation: values.SECURITY_REFRESH_TOKEN_ROTATION_ENABLED,
  reuseIntervalSeconds: values.SECURITY_REFRESH_TOKEN_REUSE_INTERVAL,
  comparesAddress: values.RATE_LIMIT_HEADER !== undefined || values.SECURITY_SB_FORWARDED_FOR_ENABLED,
  timeboxSeconds: values.SESSIONS_TIMEBOX,
  inactivitySeconds: values.SESSIONS_INACTIVITY_TIMEOUT,
  keepIdleSeconds: values.SESSIONS_KEEP_IDLE,
  singlePerUser: values.SESSIONS_SINGLE_PER_USER,
})

/** A session is in use without a refresh while its access token is valid; an inactivity limit promises more. */
export function sessionProblems(
  values: Values<typeof sessionVariables & Pick<typeof jwtVariables, 'JWT_EXP'>>,
): string[] {
  const { SESSIONS_KEEP_IDLE: keep, SESSIONS_INACTIVITY_TIMEOUT: inactivity = 0, JWT_EXP: lifetime } = values
  if (keep === undefined) return []
  const shortest = { '24h': 86_400, AUTH_JWT_EXP: lifetime, AUTH_SESSIONS_INACTIVITY_TIMEOUT: inactivity }
  return Object.entries(shortest)
    .filter(([, seconds]) => keep < seconds)
    .map(([name]) => `AUTH_SESSIONS_KEEP_IDLE must be at least ${name}`)
}
