import { availableParallelism, totalmem } from 'node:os'
import {
  baseUrl,
  boolean,
  duration,
  type Environment,
  headerName,
  integer,
  list,
  oneOf,
  parsed,
  port,
  readVariables,
  text,
  type Values,
  type Variables,
} from '@services/common/config'
import { LOG_LEVELS } from '@services/common/logger'
import { metricsVariables, telemetrySettings } from '@services/common/telemetry-settings'
import ipaddr from 'ipaddr.js'
import { requiredStorage, storageSettings, storageVariables, storageWarnings } from './blobs/storage-settings.ts'
import { SITE_NAMES } from './sites/site-names.ts'
import { LARGEST_SIDE } from './transcode/hardening.ts'

/** Every variable of the service; the README's table is made from it. Read as `MEDIA_<NAME>`, then as bare `<NAME>`. */
export const variables = {
  BASE_URL: baseUrl('URL under which this service is reachable; every address in a result starts with it.', {
    required: true,
  }),
  FILES_BASE_URL: baseUrl(
    'URL under which the files are reachable, for a CDN or a host without cookies; else BASE_URL.',
  ),
  FILES_REDIRECT_URL: baseUrl(
    'URL of the bucket or of BLOBS_DIR itself, at a CDN: requests for files are answered 302 to it, not with bytes.',
  ),
  ACCEL_PREFIX: parsed(
    'string',
    'Internal location of an nginx in front that has BLOBS_DIR: requests for files are answered with X-Accel-Redirect to it.',
    {},
    parseAccelPrefix,
  ),
  HOST: text('Address to listen on.', { default: '0.0.0.0' }),
  PORT: port('Port to listen on.', { default: '8082' }),
  SITE_NAME: text('Name shown on pages and in oEmbed.', { default: 'Media' }),
  REQUEST_ID_HEADER: headerName('Header to take the request id from; without it each request gets a new one.'),
  MAX_CONNECTIONS: integer(
    'Connections one process holds at once; more are closed unanswered. Each may cost some 200 KiB and two open files.',
    { default: '2000', min: 1, max: 1_000_000 },
  ),
  WEB_CONCURRENCY: integer('Processes on this machine.', { default: '1', min: 1, max: 256 }),

  DATABASE_URL: text('PostgreSQL connection string.', { required: true, aliases: ['DB_DATABASE_URL'] }),
  DB_MAX_POOL_SIZE: integer(
    'Most connections of requests and workers per process, beside three or so of the queue; 0 means no limit of ours.',
    { default: '20', max: 10_000 },
  ),
  DB_NAMESPACE: parsed(
    'string',
    'Prefix of every table name: `acme` makes `acme_clips`.',
    { default: '' },
    parseNamespace,
  ),
  MIGRATE_ON_START: boolean('Apply migrations at start; false where `migrate` runs on its own.', { default: 'true' }),

  ...storageVariables,

  UPLOAD_AUTH: oneOf(['required', 'optional'], '`optional` lets anybody upload without a token, within tight limits.', {
    default: 'required',
  }),
  BOOTSTRAP_TOKEN: parsed(
    'string',
    'A first token with every scope, of 20 characters or more; it ends when the variable is removed.',
    {},
    parseBootstrapToken,
  ),
  ENCRYPTION_KEY: parsed(
    'string',
    'Secret of at least 16 bytes under which the secrets of webhooks are stored; without it they are stored as they are.',
    {},
    parseEncryptionKey,
  ),
  MAX_FILE_BYTES: integer('Largest source file.', { default: '157286400', min: 1 }),
  MAX_DURATION: parsed('duration', 'Longest source, up to 39 s.', { default: '30s' }, parseMaxDuration),
  MAX_SIDE: integer(
    `Largest width and height of a source in pixels, up to ${LARGEST_SIDE}; larger ones are refused before they are decoded.`,
    { default: '4096', min: 1, max: LARGEST_SIDE },
  ),
  RESUME_WITHIN: duration('How long an unfinished resumable upload is kept, from its beginning.', {
    default: '24h',
    positive: true,
  }),
  SYNC_WAIT: parsed(
    'duration',
    'How long an upload or import waits for its files before it is answered without them, up to 10m. A source must have been fetched by then, or within 10 s.',
    { default: '55s' },
    parseSyncWait,
  ),
  IMPORT_ALLOW_CIDRS: parsed(
    'list',
    'Networks that imports may reach although they are not public, on any port.',
    { default: '' },
    parseCidrs,
  ),
  IMPORT_PORTS: parsed('list', 'Ports of public servers that imports may reach.', { default: '80,443' }, parsePorts),
  EGRESS_DENY_CIDRS: parsed('list', 'Networks that are refused although they are public.', { default: '' }, parseCidrs),

  IMPORT_SITES: parsed(
    'list',
    'Sites whose pages are imported; `other` are the pages of everybody else, `none` means files only.',
    { default: SITE_NAMES.join() },
    parseSites,
  ),
  IMPORT_SITE_BASES: parsed(
    'list',
    'Addresses to use for hosts instead of their own, `host=URL`: a mirror, or a test server.',
    { default: '' },
    parseBases,
  ),
  GIPHY_API_KEY: text('Key of the GIPHY API, for titles, names and ratings; its clips come without.'),
  IMGUR_CLIENT_ID: text('Client id of an application registered at imgur, for albums, titles and names.'),
  REDDIT_CLIENT_ID: text('Application registered at reddit, which refuses many servers without one.'),
  REDDIT_CLIENT_SECRET: text('Its secret.'),

  YTDLP_PATH: text(
    'A yt-dlp to ask about pages that only it understands, instagram and facebook among them; without one these are refused.',
  ),
  YTDLP_COOKIES: text('Cookies for it, in a file of the Netscape format: it then sees what their account sees.'),

  WORKERS_ENABLED: boolean('Transcode in this process; false where separate `worker` processes do.', {
    default: 'true',
  }),
  WORKER_CONCURRENCY: integer('Clips transcoded at once by one process; by default as many as cores and memory bear.', {
    min: 1,
    max: 256,
  }),
  QUEUE_LIMIT: integer(
    'Clips waiting or being made before new ones are answered 503; a token that has none of them is let in until there are twice as many.',
    { default: '100', min: 1 },
  ),
  QUEUE_PER_TOKEN: integer(
    'Clips of one token (or of all callers without one) waiting or being made, in all processes, before its new ones are answered 429; half of QUEUE_LIMIT if unset.',
    { min: 1 },
  ),
  EXTRAS: boolean(
    'Make an AV1 copy and a WebP poster of each clip too, in the background, while nothing else is to be done.',
    { default: 'false' },
  ),
  FFMPEG_PATH: text('The ffmpeg to use; else the one of the system, else an old one that comes along.'),
  FFPROBE_PATH: text('The ffprobe to use; else the one beside ffmpeg.'),

  RATE_LIMIT_HEADER: headerName(
    'Header, set by a trusted proxy, whose last address is that of a caller without a token; behind a CDN the one that the CDN sets.',
  ),
  RATE_LIMIT_UPLOAD: parsed('rate', 'Uploads per token.', { default: '120/1h' }, parseRate),
  RATE_LIMIT_IMPORT: parsed('rate', 'Imports per token.', { default: '60/1h' }, parseRate),
  RATE_LIMIT_IMPORT_BURST: parsed(
    'rate',
    'Imports per token within a short time, beside RATE_LIMIT_IMPORT; a token with a higher limit of its own has more in proportion.',
    { default: '10/1m' },
    parseRate,
  ),
  RATE_LIMIT_READ: parsed(
    'rate',
    'Other calls per token, or per address without one where RATE_LIMIT_HEADER is set.',
    { default: '600/1m' },
    parseRate,
  ),
  RATE_LIMIT_PUBLIC: parsed(
    'rate',
    'Calls of pages and oEmbed per address, and as many for files that are not there, in one process; needs RATE_LIMIT_HEADER.',
    { default: '1200/1m' },
    parseRate,
  ),
  RATE_LIMIT_ANONYMOUS: parsed(
    'rate',
    'Uploads without a token per client address, or of all such callers together without RATE_LIMIT_HEADER.',
    { default: '10/1h' },
    parseRate,
  ),
  PARALLEL_PER_TOKEN: integer(
    'Uploads, and downloads of imports, that one token (or one address without a token) may have at once in one process. More uploads are answered 429; more imports wait a moment first.',
    { default: '4', min: 1, max: 10_000 },
  ),

  QUOTA_BYTES: integer('Bytes that the clips of one token may take, sources and files; no limit if unset.', { min: 1 }),
  DAILY_BYTES: integer('Bytes of sources that one token may bring on a day of UTC.', { default: '5368709120', min: 1 }),
  ANONYMOUS_LIFETIME: parsed(
    'duration',
    'How long clips are kept that were uploaded without a token.',
    { default: '720h' },
    parseLifetime,
  ),

  LOG_LEVEL: oneOf(LOG_LEVELS, 'Least severe level that is logged.', { default: 'info' }),
  LOG_FILE: text('File that log lines are appended to instead of standard output.'),
  TRACING_ENABLED: boolean('Export traces; the `OTEL_*` variables say where.', { default: 'false' }),
  ...metricsVariables('9101'),
} satisfies Variables

export type RawConfig = Values<typeof variables>
export type Config = ReturnType<typeof groupConfig>

/**
 * Checked settings in groups, as code receives them; durations in seconds. Throws a ConfigError that lists all problems.
 * `warnings` name settings that are unknown or without effect.
 */
export function readConfig(environment: Environment, file: Environment = {}): { config: Config; warnings: string[] } {
  const given = (name: string) =>
    [environment, file].flatMap((source) => [source[`MEDIA_${name}`], source[name]]).find(Boolean)
  const all = { ...variables, ...requiredStorage(given) }
  const { values, warnings } = readVariables(all, 'MEDIA_', environment, file)
  return {
    config: groupConfig(values, environment.PATH ?? ''),
    warnings: [...warnings, ...storageWarnings(values), ...deliveryWarnings(values)],
  }
}

function groupConfig(values: RawConfig, searchPath: string) {
  return {
    site: {
      name: values.SITE_NAME,
      baseUrl: values.BASE_URL,
      filesBaseUrl: values.FILES_BASE_URL ?? values.BASE_URL,
      filesRedirectUrl: values.ACCEL_PREFIX ? undefined : values.FILES_REDIRECT_URL,
    },
    accelPrefix: values.ACCEL_PREFIX,
    server: {
      host: values.HOST,
      port: values.PORT,
      requestIdHeader: values.REQUEST_ID_HEADER,
      maxConnections: values.MAX_CONNECTIONS,
      processes: values.WEB_CONCURRENCY,
    },
    database: {
      url: values.DATABASE_URL,
      maxPoolSize: values.DB_MAX_POOL_SIZE,
      namespace: values.DB_NAMESPACE,
      migrateOnStart: values.MIGRATE_ON_START,
    },
    storage: storageSettings(values),
    uploadNeedsToken: values.UPLOAD_AUTH === 'required',
    bootstrapToken: values.BOOTSTRAP_TOKEN,
    encryptionKey: values.ENCRYPTION_KEY,
    source: { maxBytes: values.MAX_FILE_BYTES, maxSeconds: values.MAX_DURATION, maxSide: values.MAX_SIDE },
    resumeWithinSeconds: values.RESUME_WITHIN,
    syncWaitSeconds: values.SYNC_WAIT,
    egress: {
      allowCidrs: values.IMPORT_ALLOW_CIDRS,
      denyCidrs: values.EGRESS_DENY_CIDRS,
      ports: values.IMPORT_PORTS,
      ownPort: values.PORT,
      ownUrls: [values.BASE_URL, values.FILES_BASE_URL ?? values.BASE_URL],
      standIns: values.IMPORT_SITE_BASES,
    },
    sites: {
      enabled: values.IMPORT_SITES,
      keys: {
        giphyApiKey: values.GIPHY_API_KEY,
        imgurClientId: values.IMGUR_CLIENT_ID,
        redditClientId: values.REDDIT_CLIENT_ID,
        redditClientSecret: values.REDDIT_CLIENT_SECRET,
      },
    },
    ytdlp: { path: values.YTDLP_PATH, cookies: values.YTDLP_COOKIES },
    worker: {
      enabled: values.WORKERS_ENABLED,
      concurrency: values.WORKER_CONCURRENCY ?? Math.max(1, Math.floor(slotsOfMachine() / values.WEB_CONCURRENCY)),
      /** Of the `worker` command, which is one process whatever WEB_CONCURRENCY says. */
      concurrencyAlone: values.WORKER_CONCURRENCY ?? slotsOfMachine(),
      processes: values.WEB_CONCURRENCY,
      queueLimit: values.QUEUE_LIMIT,
      extras: values.EXTRAS,
      queueLimitPerToken: values.QUEUE_PER_TOKEN ?? Math.ceil(values.QUEUE_LIMIT / 2),
    },
    ffmpeg: {
      ffmpegPath: values.FFMPEG_PATH,
      ffprobePath: values.FFPROBE_PATH,
      searchPath,
    },
    limits: {
      header: values.RATE_LIMIT_HEADER,
      upload: values.RATE_LIMIT_UPLOAD,
      import: values.RATE_LIMIT_IMPORT,
      importBurst: values.RATE_LIMIT_IMPORT_BURST,
      read: values.RATE_LIMIT_READ,
      public: values.RATE_LIMIT_PUBLIC,
      anonymous: values.RATE_LIMIT_ANONYMOUS,
      parallel: values.PARALLEL_PER_TOKEN,
    },
    allowances: { quotaBytes: values.QUOTA_BYTES, dailyBytes: values.DAILY_BYTES as number | undefined },
    anonymousLifetimeSeconds: values.ANONYMOUS_LIFETIME,
    log: { level: values.LOG_LEVEL, file: values.LOG_FILE },
    telemetry: telemetrySettings(values),
  }
}

const deliveryWarnings = ({ ACCEL_PREFIX, FILES_REDIRECT_URL }: RawConfig): string[] =>
  ACCEL_PREFIX && FILES_REDIRECT_URL ? ['MEDIA_FILES_REDIRECT_URL has no effect with MEDIA_ACCEL_PREFIX'] : []

/** What one 1080p clip takes at its peak, and what is left for the rest (contract/media.md 5.7). */
const BYTES_PER_CLIP = 700 * 1024 ** 2
const BYTES_LEFT_FREE = 1024 ** 3

/** As many clips at once as there are cores, with one thread each: 1.4 times what one clip on all cores gives. */
function slotsOfMachine(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return Math.max(1, Math.min(availableParallelism(), Math.floor((memory - BYTES_LEFT_FREE) / BYTES_PER_CLIP)))
}

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

function parseNamespace(value: string): string {
  if (!/^([a-z][a-z0-9_]{0,30})?$/.test(value)) {
    throw new Error('must be up to 31 lower-case letters, digits and underscores, starting with a letter')
  }
  return value
}

function parseAccelPrefix(value: string): string {
  if (!/^(\/[\w.-]+)+$/.test(value)) throw new Error('must be a path like /blobs, without a slash at its end')
  return value
}

function parseBootstrapToken(value: string): string {
  if (!/^[\x21-\x7e]{20,200}$/.test(value)) throw new Error('must be 20 to 200 visible ASCII characters')
  return value
}

function parseEncryptionKey(value: string): string {
  if (Buffer.byteLength(value) < 16) throw new Error('must be at least 16 bytes')
  return value
}

/** The probe reads 40 s of packets and no more, so a longer limit would go unnoticed. */
function parseMaxDuration(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds <= 0 || seconds > 39) throw new Error('must be more than 0 and at most 39 seconds')
  return seconds
}

/** Longer than any proxy waits, and far below what a timer can count. */
const LONGEST_SYNC_WAIT_SECONDS = 600

function parseSyncWait(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds > LONGEST_SYNC_WAIT_SECONDS) throw new Error('must be at most 10 minutes')
  return seconds
}

/** A hundred years: later is no date everywhere. */
const LONGEST_LIFETIME_SECONDS = 876_000 * 3600

function parseLifetime(value: string): number {
  const seconds = duration('').parse(value) as number
  if (seconds <= 0 || seconds > LONGEST_LIFETIME_SECONDS) throw new Error('must be more than 0 and at most 876000h')
  return seconds
}

function parsePorts(value: string): number[] {
  const ports = (list('').parse(value) as string[]).map(Number)
  if (!ports.every((port) => Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw new Error('must be a comma-separated list of ports')
  }
  return ports
}

function parseCidrs(value: string): string[] {
  const cidrs = list('').parse(value) as string[]
  if (!cidrs.every((cidr) => ipaddr.isValidCIDR(cidr))) throw new Error('must be a comma-separated list of CIDRs')
  return cidrs
}

function parseSites(value: string): string[] {
  const names = (list('').parse(value) as string[]).filter((name) => name !== 'none')
  const known: readonly string[] = SITE_NAMES
  if (!names.every((name) => known.includes(name))) throw new Error(`must be none, or a list of ${known.join(', ')}`)
  return names
}

function parseBases(value: string): Map<string, string> {
  const pairs = (list('').parse(value) as string[]).map((pair) => /^([^=/@\s]+)=(.+)$/.exec(pair))
  return new Map(
    pairs.map((pair) => {
      if (!pair?.[1] || !pair[2]) throw new Error('must be a comma-separated list of host=URL')
      return [pair[1].toLowerCase(), baseUrl('').parse(pair[2]) as string]
    }),
  )
}
