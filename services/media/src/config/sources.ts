import { duration, integer, list, oneOf, parsed, type Values, type Variables } from '@services/common/config/variables'
import type { MediaType } from '../db/media-info.ts'
import { ADDABLE_MIMES, ALL_TYPES, mimeOf, USUAL_TYPES } from '../db/source-types.ts'
import { LARGEST_SIDE } from '../ffmpeg/hardening.ts'

/** Limits of a source without settings. */
export const USUAL_LIMITS = { maxSeconds: 30, maxSourceSeconds: 600, maxSide: 4096 }

export const sourceVariables = {
  UPLOAD_AUTH: oneOf(['required', 'optional'], '`optional` allows uploads without a token, within tight limits.', {
    default: 'required',
  }),
  BOOTSTRAP_TOKEN: parsed(
    'string',
    'First token, with all scopes, of at least 20 characters; it expires when the variable is removed.',
    { secret: true },
    parseBootstrapToken,
  ),
  ENCRYPTION_KEY: parsed(
    'string',
    'Key of at least 16 bytes that encrypts the secrets of webhooks and signs links to private clips. Without it, a reader of the database has both.',
    { secret: true },
    parseEncryptionKey,
  ),
  SOURCE_TYPES: parsed(
    'list',
    `Accepted types beside image/gif, video/mp4 and video/webm: a list of ${ADDABLE_MIMES.join(', ')}.`,
    { default: '' },
    parseSourceTypes,
  ),
  MAX_FILE_BYTES: integer('Largest source file in bytes.', { default: '157286400', min: 1 }),
  MAX_DURATION: parsed(
    'duration',
    'Longest clip, up to 39 s: the whole source, or the chosen part of it.',
    { default: `${USUAL_LIMITS.maxSeconds}s` },
    parseMaxDuration,
  ),
  MAX_SOURCE_DURATION: parsed(
    'duration',
    'Longest source of which `start` and `duration` choose a part, up to 60m.',
    { default: `${USUAL_LIMITS.maxSourceSeconds / 60}m` },
    parseMaxSourceDuration,
  ),
  MAX_SIDE: integer(
    `Largest width and height of a source in pixels, up to ${LARGEST_SIDE}; larger ones are refused before they are decoded.`,
    { default: String(USUAL_LIMITS.maxSide), min: 1, max: LARGEST_SIDE },
  ),
  SOURCE_KEEP: duration(
    'Time for which the original of a ready clip is kept, for further clips of it; ten minutes at least. It ends with the last clip.',
    { default: '10m' },
  ),
  RESUME_WITHIN: duration('Lifetime of an unfinished resumable upload.', {
    default: '24h',
    positive: true,
  }),
  SYNC_WAIT: parsed(
    'duration',
    'Longest wait of an upload or import for its files before the answer, up to 10m. An import must fetch its source within that time, or within 10 s if that is longer.',
    { default: '55s' },
    parseSyncWait,
  ),
} satisfies Variables

export const sourceSettings = (values: Values<typeof sourceVariables>) => ({
  uploadNeedsToken: values.UPLOAD_AUTH === 'required',
  bootstrapToken: values.BOOTSTRAP_TOKEN,
  encryptionKey: values.ENCRYPTION_KEY,
  source: {
    types: values.SOURCE_TYPES as MediaType[],
    maxBytes: values.MAX_FILE_BYTES,
    maxSeconds: values.MAX_DURATION,
    maxSourceSeconds: values.MAX_SOURCE_DURATION,
    maxSide: values.MAX_SIDE,
    keepSeconds: values.SOURCE_KEEP,
  },
  resumeWithinSeconds: values.RESUME_WITHIN,
  syncWaitSeconds: values.SYNC_WAIT,
})

function parseBootstrapToken(value: string): string {
  if (!/^[\x21-\x7e]{20,200}$/.test(value)) throw new Error('must be 20 to 200 visible ASCII characters')
  return value
}

/** Our names of the accepted types; the usual ones may be listed, too. */
function parseSourceTypes(value: string): MediaType[] {
  const mimes = (list('').parse(value) as string[]).map((mime) => mime.toLowerCase())
  const added = ALL_TYPES.filter((type) => mimes.includes(mimeOf(type)))
  if (!mimes.every((mime) => added.some((type) => mimeOf(type) === mime))) {
    throw new Error(`must be a comma-separated list of ${ADDABLE_MIMES.join(', ')}`)
  }
  return ALL_TYPES.filter((type) => USUAL_TYPES.includes(type) || added.includes(type))
}

function parseEncryptionKey(value: string): string {
  if (Buffer.byteLength(value) < 16) throw new Error('must be at least 16 bytes')
  return value
}

/** The probe reads 40 s of packets, so a higher limit would have no effect. */
function parseMaxDuration(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds <= 0 || seconds > 39) throw new Error('must be more than 0 and at most 39 seconds')
  return seconds
}

/** Headers of longer files take more memory, and a part of one is no short clip's source. */
const LONGEST_SOURCE_SECONDS = 3_600

function parseMaxSourceDuration(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds <= 0 || seconds > LONGEST_SOURCE_SECONDS) throw new Error('must be more than 0 and at most 60 minutes')
  return seconds
}

/** Longer than proxies wait, and far below the maximum of a timer. */
const LONGEST_SYNC_WAIT_SECONDS = 600

function parseSyncWait(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds > LONGEST_SYNC_WAIT_SECONDS) throw new Error('must be at most 10 minutes')
  return seconds
}
