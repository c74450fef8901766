import type { Egress } from '@services/common/egress/egress'
import { EgressRefused, type Refusal } from '@services/common/egress/ssrf-guard'
import { apiError } from '../../errors.ts'

const PRIVATE = 'URL cannot resolve to private network addresses'
const LOOPBACK = 'URL cannot point to localhost or loopback addresses'

const TEXTS: Record<Refusal, string> = {
  'not a URL, or too long': 'URL is not valid, or longer than 2048 characters',
  scheme: 'URL must use HTTPS',
  'credentials in the URL': 'URL must not contain a user name or password',
  'our own address': 'URL cannot be an address of this service',
  'refused literal address': PRIVATE,
  'refused name or port': PRIVATE,
  'refused address': PRIVATE,
}

/** Checks addresses by field, and all that their names resolve to. Throws validation_failed for the first bad one. */
export async function checkAddresses(
  egress: Pick<Egress, 'check'>,
  addresses: readonly (readonly [field: string, address: string])[],
): Promise<void> {
  const problems = await Promise.all(
    addresses.map(async ([field, address]) => {
      try {
        await egress.check(address)
        return undefined
      } catch (error) {
        return `${field}: ${problemOf(address, error)}`
      }
    }),
  )
  const message = problems.find((problem) => problem !== undefined)
  if (message) throw apiError('validation_failed', { message })
}

function problemOf(address: string, error: unknown): string {
  const { protocol = '', hostname = '' } = URL.parse(address) ?? {}
  if (!(error instanceof EgressRefused)) return 'Unable to resolve hostname'
  if (error.refusal.startsWith('refused') && isLoopback(hostname)) return LOOPBACK
  return error.refusal.startsWith('refused') && protocol === 'http:' ? TEXTS.scheme : TEXTS[error.refusal]
}

const isLoopback = (hostname: string) => /^(localhost|.*\.localhost|127\.[\d.]+|\[::1\])\.?$/.test(hostname)
