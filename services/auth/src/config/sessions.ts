import { boolean, duration, type Values, type Variables } from '@services/common/config'

export const sessionVariables = {
  SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: boolean('A reused refresh token ends its session.', { default: 'true' }),
  SECURITY_REFRESH_TOKEN_REUSE_INTERVAL: duration(
    'Time after its replacement in which a reused refresh token returns its successor.',
    { default: '10' },
  ),
  SESSIONS_TIMEBOX: duration('Sessions end this long after sign-in.', { positive: true }),
  SESSIONS_INACTIVITY_TIMEOUT: duration('Sessions end this long after their last refresh.', { positive: true }),
  SESSIONS_SINGLE_PER_USER: boolean('Only the newest session of a user is valid.', { default: 'false' }),
} satisfies Variables

export const sessionSettings = (values: Values<typeof sessionVariables>) => ({
  rotation: values.SECURITY_REFRESH_TOKEN_ROTATION_ENABLED,
  reuseIntervalSeconds: values.SECURITY_REFRESH_TOKEN_REUSE_INTERVAL,
  timeboxSeconds: values.SESSIONS_TIMEBOX,
  inactivitySeconds: values.SESSIONS_INACTIVITY_TIMEOUT,
  singlePerUser: values.SESSIONS_SINGLE_PER_USER,
})
