import { withTimeout } from '@services/common/concurrency/with-timeout'
import type { Egress } from '@services/common/egress/egress'
import { EgressRefused, type Refusal } from '@services/common/egress/ssrf-guard'
import { apiError } from '../../errors.ts'

const PRIVATE = 'URL cannot resolve to private network addresses'
const LOOPBACK = 'URL cannot point to localhost or loopback addresses'

const TEXTS: Record<Refusal, string> = {
  'not a URL, or too long': 'URL is not valid, or longer than 2048 characters',
  scheme: 'URL must use HTTPS',
  'credentials in the URL': 'URL must not contain a user name or password',
  'our own address': PRIVATE,
  'refused literal address': PRIVATE,
  'refused name or port': PRIVATE,
  'refused address': PRIVATE,
}

const UNRESOLVED = 'Unable to resolve hostname'

/** Starts a limit over several steps. The result is the time that is left, in ms. */
export function startDeadline(ms: number): () => number {
  const end = performance.now() + ms
  return () => Math.max(0, Math.ceil(end - performance.now()))
}

/**
 * Checks addresses by field, and all that their names resolve to. Throws validation_failed for the first bad one, or
 * one whose name is not resolved in time.
 */
export async function checkAddresses(
  egress: Pick<Egress, 'check'>,
  addresses: readonly (readonly [field: string, address: string])[],
  withinMs: number,
): Promise<void> {
  const problems = await Promise.all(
    addresses.map(async ([field, address]) => {
      try {
        const checked = await withTimeout(withinMs, egress.check(address))
        return checked === 'late' ? `${field}: ${UNRESOLVED}` : undefined
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
  if (!(error instanceof EgressRefused)) return UNRESOLVED
  if (error.refusal.startsWith('refused') && isLoopback(hostname)) return LOOPBACK
  return error.refusal.startsWith('refused') && protocol === 'http:' ? TEXTS.scheme : TEXTS[error.refusal]
}

const isLoopback = (hostname: string) => /^(localhost|.*\.localhost|127\.[\d.]+|\[::1\])\.?$/.test(hostname)
