import {
  baseUrl,
  headerName,
  integer,
  list,
  parsed,
  port,
  text,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import type { moderationVariables } from './moderation.ts'

export const serverVariables = {
  BASE_URL: baseUrl('Public URL of this service; all URLs in a result start with it.', {
    required: true,
  }),
  FILES_BASE_URL: baseUrl('Public URL of the files, for a CDN or a host without cookies; BASE_URL if unset.'),
  FILES_REDIRECT_URL: baseUrl(
    'URL of the bucket or of BLOBS_DIR at a CDN: requests for files are redirected there (302).',
  ),
  ACCEL_PREFIX: parsed(
    'string',
    'Internal nginx location that serves BLOBS_DIR: requests for files are answered with X-Accel-Redirect to it.',
    {},
    parseAccelPrefix,
  ),
  VARIANT_KEY: parsed(
    'list',
    'Keys of at least 16 characters for signed addresses of variants, of which the first signs; without one only the fixed set exists.',
    { default: '', secret: true },
    parseVariantKeys,
  ),
  HOST: text('Address to listen on.', { default: '0.0.0.0' }),
  PORT: port('Port to listen on.', { default: '8082' }),
  SITE_NAME: text('Name shown on pages and in oEmbed.', { default: 'Media' }),
  REQUEST_ID_HEADER: headerName('Header that holds the request id; if unset, each request gets a new one.'),
  MAX_CONNECTIONS: integer(
    'Connections of one process at once; further ones are closed unanswered. Each may cost 200 KiB and two open files.',
    { default: '2000', min: 1, max: 1_000_000 },
  ),
  WEB_CONCURRENCY: integer('Processes on this machine.', { default: '1', min: 1, max: 256 }),
} satisfies Variables

export const serverSettings = (
  values: Values<typeof serverVariables & Pick<typeof moderationVariables, 'REPORTS'>>,
) => ({
  site: {
    name: values.SITE_NAME,
    baseUrl: values.BASE_URL,
    filesBaseUrl: values.FILES_BASE_URL ?? values.BASE_URL,
    filesRedirectUrl: values.ACCEL_PREFIX ? undefined : values.FILES_REDIRECT_URL,
    takesReports: values.REPORTS === 'on',
  },
  accelPrefix: values.ACCEL_PREFIX,
  variantKeys: values.VARIANT_KEY,
  server: {
    host: values.HOST,
    port: values.PORT,
    requestIdHeader: values.REQUEST_ID_HEADER,
    maxConnections: values.MAX_CONNECTIONS,
    processes: values.WEB_CONCURRENCY,
  },
})

export const serverWarnings = ({ ACCEL_PREFIX, FILES_REDIRECT_URL }: Values<typeof serverVariables>): string[] =>
  ACCEL_PREFIX && FILES_REDIRECT_URL ? ['MEDIA_FILES_REDIRECT_URL has no effect with MEDIA_ACCEL_PREFIX'] : []

function parseAccelPrefix(value: string): string {
  if (!/^(\/[\w.-]+)+$/.test(value)) throw new Error('must be a path like /blobs, without a slash at its end')
  return value
}

function parseVariantKeys(value: string): string[] {
  const keys = list('').parse(value) as string[]
  if (keys.some((key) => key.length < 16))
    throw new Error('must be a comma-separated list of keys of at least 16 characters')
  return keys
}
