// Limits of callers: rates, quotas, uploads. Limits of a source are in sources.ts.
import { duration, headerName, integer, parsed, type Values, type Variables } from '@services/common/config/variables'

const rate = (meaning: string, usual: string) => parsed('rate', meaning, { default: usual }, parseRate)

export const limitVariables = {
  RATE_LIMIT_HEADER: headerName(
    "Header in which the nearest proxy writes the client's address; the last entry of a list is used, without its port. Behind a CDN: the header that the CDN sets.",
  ),
  RATE_LIMIT_UPLOAD: rate('Uploads per token.', '120/1h'),
  RATE_LIMIT_IMPORT: rate('Imports per token.', '60/1h'),
  RATE_LIMIT_IMPORT_BURST: rate(
    'Imports per token within a short time, beside RATE_LIMIT_IMPORT; a token with a higher limit gets proportionally more.',
    '10/1m',
  ),
  RATE_LIMIT_READ: rate('Other calls per token; without a token per address, if RATE_LIMIT_HEADER is set.', '600/1m'),
  RATE_LIMIT_PUBLIC: rate(
    'Calls of pages and oEmbed per address in one process, and as many of missing files; needs RATE_LIMIT_HEADER.',
    '1200/1m',
  ),
  RATE_LIMIT_VARIANTS: rate(
    'Variants of clips (other sizes and formats) that are made for one address; needs RATE_LIMIT_HEADER.',
    '600/1h',
  ),
  RATE_LIMIT_ANONYMOUS: rate(
    'Uploads without a token per client address; without RATE_LIMIT_HEADER all such callers share it.',
    '10/1h',
  ),
  PARALLEL_PER_TOKEN: integer(
    'Uploads, and downloads of imports, that one token (or one address without a token) may run at once in one process. Further uploads get 429; further imports wait a moment first.',
    { default: '4', min: 1, max: 10_000 },
  ),

  QUOTA_BYTES: integer('Bytes that the clips of one token may occupy, sources and files; unlimited if unset.', {
    min: 1,
  }),
  DAILY_BYTES: integer('Bytes that one token may add per day (UTC).', { default: '5368709120', min: 1 }),
  ANONYMOUS_LIFETIME: parsed(
    'duration',
    'Lifetime of clips that were uploaded without a token.',
    { default: '720h' },
    parseLifetime,
  ),
  TOMBSTONES_KEEP: parsed(
    'duration',
    'Time for which the URLs of a deleted clip answer 410, two days at least; 404 after it.',
    { default: '8760h' },
    parseTombstonesKeep,
  ),
} satisfies Variables

export const limitSettings = (values: Values<typeof limitVariables>) => ({
  limits: {
    header: values.RATE_LIMIT_HEADER,
    upload: values.RATE_LIMIT_UPLOAD,
    import: values.RATE_LIMIT_IMPORT,
    importBurst: values.RATE_LIMIT_IMPORT_BURST,
    read: values.RATE_LIMIT_READ,
    public: values.RATE_LIMIT_PUBLIC,
    variants: values.RATE_LIMIT_VARIANTS,
    anonymous: values.RATE_LIMIT_ANONYMOUS,
    parallel: values.PARALLEL_PER_TOKEN,
  },
  allowances: { quotaBytes: values.QUOTA_BYTES, dailyBytes: values.DAILY_BYTES as number | undefined },
  anonymousLifetimeSeconds: values.ANONYMOUS_LIFETIME,
  tombstonesKeepSeconds: values.TOMBSTONES_KEEP,
})

export interface Rate {
  points: number
  seconds: number
}

function parseRate(value: string): Rate {
  const [points, period = '1h'] = value.split('/')
  const seconds = duration('').parse(period) as number
  if (!/^[1-9]\d*$/.test(points as string) || seconds === 0) throw new Error('must be a number, or N/duration')
  return { points: Number(points), seconds }
}

/** A hundred years: a later date is not valid everywhere. */
const LONGEST_LIFETIME_SECONDS = 876_000 * 3600

function parseLifetime(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds <= 0 || seconds > LONGEST_LIFETIME_SECONDS) throw new Error('must be more than 0 and at most 876000h')
  return seconds
}

/** A request that is sent again with its Idempotency-Key learns that its clip was deleted. */
const SHORTEST_TOMBSTONES_SECONDS = 2 * 86_400

function parseTombstonesKeep(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds < SHORTEST_TOMBSTONES_SECONDS) throw new Error('must be at least 48h')
  return seconds
}
