import { createHash } from 'node:crypto'
import type { Logger } from '@services/common/telemetry/logger'
import { fetchText } from '@services/common/upstream/fetch-text'
import { apiError } from '../../errors.ts'
import { countLeakCheck } from '../../metrics.ts'

export type LeakedPasswords = ReturnType<typeof createLeakedPasswords>

export interface LeakSettings {
  enabled: boolean
  url: string
  /** Refuse new passwords while the look-up fails. */
  failClosed: boolean
}

/** Range API: https://haveibeenpwned.com/API/v3#PwnedPasswords. Padded answers have up to 1,000 rows of 45 bytes. */
const MAX_ANSWER_BYTES = 512 * 1024
const TIMEOUT_MS = 5_000
/** Longest wait of a sign-in, which writes its session in parallel within a few milliseconds. */
const AT_ONCE_MS = 500
const RETRY_AFTER_SECONDS = 5
const ROW = /^([0-9A-F]{35}):(\d+)$/i

/**
 * Looks passwords up by the first five of the forty digits of their SHA-1, so the list's operator learns neither
 * password nor hash. Padding hides the size of the answer from the network.
 */
export function createLeakedPasswords(
  settings: LeakSettings,
  log: Logger,
  { timeoutMs = TIMEOUT_MS, atOnceMs = AT_ONCE_MS } = {},
) {
  return {
    /** Looks up a new password; a failed look-up throws service_unavailable or passes, as `failClosed` says. */
    async isLeaked(password: string): Promise<boolean> {
      if (!settings.enabled) return false
      try {
        return await lookUp(settings.url, password, timeoutMs)
      } catch (cause) {
        countLeakCheck('unavailable')
        // A refusal blocks all sign-ups until an operator acts; a pass does not.
        log[settings.failClosed ? 'error' : 'warn']({ err: cause }, 'look-up of leaked passwords failed')
        if (settings.failClosed) {
          throw apiError('service_unavailable', { retryAfterSeconds: RETRY_AFTER_SECONDS, cause })
        }
        return false
      }
    },
    /** Looks up a password in use; false if the look-up fails or takes long. */
    async isLeakedAtOnce(password: string): Promise<boolean> {
      if (!settings.enabled) return false
      return lookUp(settings.url, password, atOnceMs).catch(() => {
        countLeakCheck('unavailable')
        return false
      })
    },
  }
}

async function lookUp(url: string, password: string, timeoutMs: number): Promise<boolean> {
  const digest = createHash('sha1').update(password).digest('hex').toUpperCase()
  const { status, text } = await fetchText(
    `${url}/range/${digest.slice(0, 5)}`,
    { headers: { 'add-padding': 'true', 'user-agent': 'auth' } },
    { timeoutMs, maxBytes: MAX_ANSWER_BYTES },
  )
  if (status !== 200) throw new Error(`the list of leaked passwords answered ${status}`)
  const rows = text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => ROW.exec(line.trim()))
  if (rows.includes(null)) throw new Error('the list of leaked passwords answered a row of another format')
  // Padding has the count 0.
  const isLeaked = rows.some((row) => row?.[1]?.toUpperCase() === digest.slice(5) && Number(row[2]) > 0)
  countLeakCheck(isLeaked ? 'leaked' : 'unknown')
  return isLeaked
}
