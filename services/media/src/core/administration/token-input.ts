// Administration beyond clips, for the endpoints and the pages alike: fields of tokens, dead letters, the queue, the
// stored files, the settings. Acts on clips: ../lifecycle/moderate.ts.
import { parseDurationSeconds, SECONDS_OR_DURATION } from '@services/common/config/duration'
import { invalidField, oneLine } from '../clips/clip-fields.ts'

const MAX_NAME = 100

/** A hundred years: a later date is not valid everywhere. */
const LONGEST_LIFE_SECONDS = 876_000 * 3600

/** Reads the purpose of a token. Throws invalid_field. */
export function readTokenName(text: string): string {
  const name = oneLine(text)
  if (name && name.length <= MAX_NAME) return name
  throw invalidField('name', `must be 1 to ${MAX_NAME} characters`)
}

/** Reads the end of a token that lives this long from now. Throws invalid_field. */
export function readTokenEnd(span: string | number, now: Date): Date {
  const seconds = Math.floor(parseDurationSeconds(String(span).trim()) ?? 0)
  if (seconds >= 1 && seconds <= LONGEST_LIFE_SECONDS) return new Date(now.getTime() + seconds * 1000)
  throw invalidField('expires_in', `must be ${SECONDS_OR_DURATION}, from a second to 100 years`)
}
