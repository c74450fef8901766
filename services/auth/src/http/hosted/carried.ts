import type { KeyObject } from 'node:crypto'
import { seal, unseal } from '@services/common/seal'

/** Values that an address carries for this browser alone, sealed: addresses of people do not belong into URLs. */
export type Carried = Readonly<Record<string, string>>

/** Time that an address may be kept, as long as its page may stay open. */
export const PAGE_SECONDS = 86_400

/** Longest value; the rest is cut off. Proxies take 4 to 8 KiB for an address. */
const MAX_LENGTH = 1_000

/** Seals values under the secret of the browser's cookie. */
export function sealCarried(key: KeyObject, values: Carried, secret: string, now: Date): string {
  const until = now.getTime() + PAGE_SECONDS * 1000
  const bounded = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.slice(0, MAX_LENGTH)]))
  return Buffer.from(seal(key, { until, values: bounded }, secret), 'base64').toString('base64url')
}

/** Opens the values of an address; none where another browser's cookie sealed them. */
export function openCarried(key: KeyObject, text: string | undefined, secrets: readonly string[], now: Date): Carried {
  for (const secret of text === undefined ? [] : secrets) {
    try {
      const { until, values } = unseal<{ until: number; values: Carried }>(key, text as string, secret)
      if (until > now.getTime()) return values
    } catch {
      // Another browser's, or cut off.
    }
  }
  return {}
}
