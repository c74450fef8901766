import { parseDurationSeconds, SECONDS_OR_DURATION } from '@services/common/config/duration'
import { command, printResult, UsageError } from '@services/common/process/command-line'
import { importSigningKeys } from '../../core/keys/signing-keys.ts'
import { startUp } from '../../start.ts'

/** 100 years. Much later no date can be written; `none` makes a token that never expires. */
const LONGEST_SECONDS = 876_000 * 3600

/** `tokens admin`: signs a token for the admin endpoints with the configured key. It belongs to no user. */
export const tokensAdmin = command({
  name: 'tokens admin',
  summary: 'make a token for the admin endpoints',
  options: {
    role: { value: 'ROLE', meaning: 'one of AUTH_JWT_ADMIN_ROLES; service_role if absent' },
    expires: { value: 'DURATION', meaning: 'as in 10m or 30d, or none; 10m if absent' },
  },
  run: async ({ options, json }) => {
    const { role = 'service_role', expires = '10m' } = options
    const seconds = expires === 'none' ? undefined : parseDurationSeconds(expires)
    if (expires !== 'none' && (!seconds || seconds < 1)) {
      throw new UsageError(`--expires must be none, ${SECONDS_OR_DURATION}, from a second to 100 years`)
    }
    if (seconds && seconds > LONGEST_SECONDS) {
      throw new UsageError('--expires must be at most 876000h, which is 100 years')
    }
    const { jwt } = startUp({ toStderr: true }).config
    if (!jwt.adminRoles.includes(role)) {
      throw new UsageError(`--role must be one of AUTH_JWT_ADMIN_ROLES, which are ${jwt.adminRoles.join(', ')}`)
    }
    const { sign } = await importSigningKeys(jwt)
    const issuedAt = Math.floor(Date.now() / 1000)
    const exp = seconds && issuedAt + Math.floor(seconds)
    const token = await sign({ iss: jwt.issuer, aud: jwt.audience, role, iat: issuedAt, ...(exp && { exp }) })
    const expiresAt = exp ? new Date(exp * 1000).toISOString() : null
    printResult(json, { token, role, expires_at: expiresAt }, token)
    const end = expiresAt ? `expires at ${expiresAt}` : 'never expires: only a change of key or secret revokes it'
    process.stderr.write(`It may do everything that ${role} may, and ${end}. It is stored nowhere.\n`)
  },
})
