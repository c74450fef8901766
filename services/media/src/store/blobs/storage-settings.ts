import { join } from 'node:path'
import { boolean, httpUrl, oneOf, parsed, text, type Values } from '@services/common/config/variables'

/** Variables of the file storage, a part of ../config.ts. `requiredStorage` says which of them are required. */
export const storageVariables = {
  STORAGE: oneOf(['disk', 's3'], 'Storage of the files: BLOBS_DIR or S3_BUCKET.', { default: 'disk' }),
  BLOBS_DIR: text(
    'Directory of the stored files with STORAGE=disk; all processes that serve or transcode must share it.',
  ),
  WORK_DIR: text(
    'Directory for temporary files, `work` in BLOBS_DIR by default and best on the same volume. Required with STORAGE=s3, on a local disk.',
  ),
  S3_BUCKET: text('Name of the existing bucket with STORAGE=s3.'),
  S3_REGION: text('Region of the bucket.', { default: 'us-east-1', aliases: ['AWS_REGION'] }),
  S3_ENDPOINT: httpUrl("Address of an S3 server other than Amazon's."),
  S3_PREFIX: parsed(
    'string',
    'Folder in a shared bucket; two installations must not share one.',
    { default: '' },
    parsePrefix,
  ),
  S3_ACCESS_KEY_ID: text("Id of the access key; if absent, the SDK's default credential sources apply.", {
    secret: true,
  }),
  S3_SECRET_ACCESS_KEY: text('Secret of the access key.', { secret: true }),
  S3_FORCE_PATH_STYLE: boolean(
    'Puts the bucket into the path of addresses instead of the host; default with S3_ENDPOINT.',
  ),
} as const

type StorageValues = Values<typeof storageVariables>

export type S3Settings = Extract<ReturnType<typeof storageSettings>, { kind: 's3' }>['s3']

type Name = keyof typeof storageVariables

/** The variables that other variables require; `given` returns the text of a variable. */
export function requiredStorage(given: (name: Name) => string | undefined): Partial<typeof storageVariables> {
  return Object.fromEntries(namesRequired(given).map((name) => [name, { ...storageVariables[name], required: true }]))
}

function namesRequired(given: (name: Name) => string | undefined): Name[] {
  if (given('STORAGE')?.toLowerCase() !== 's3') return ['BLOBS_DIR']
  const hasKey = given('S3_ACCESS_KEY_ID') || given('S3_SECRET_ACCESS_KEY')
  return ['S3_BUCKET', 'WORK_DIR', ...(hasKey ? (['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const) : [])]
}

export function storageSettings(values: StorageValues) {
  const { BLOBS_DIR = '', WORK_DIR } = values
  if (values.STORAGE === 'disk') {
    return { kind: 'disk' as const, blobsDir: BLOBS_DIR, workDir: WORK_DIR ?? join(BLOBS_DIR, 'work') }
  }
  return {
    kind: 's3' as const,
    workDir: WORK_DIR ?? '',
    s3: {
      bucket: values.S3_BUCKET ?? '',
      region: values.S3_REGION,
      endpoint: values.S3_ENDPOINT,
      prefix: values.S3_PREFIX,
      accessKeyId: values.S3_ACCESS_KEY_ID,
      secretAccessKey: values.S3_SECRET_ACCESS_KEY,
      forcePathStyle: values.S3_FORCE_PATH_STYLE ?? values.S3_ENDPOINT !== undefined,
    },
  }
}

/** A bucket without STORAGE=s3 looks as if it were in use. */
export const storageWarnings = ({ STORAGE, S3_BUCKET }: StorageValues): string[] =>
  STORAGE === 'disk' && S3_BUCKET ? ['MEDIA_S3_BUCKET has no effect without MEDIA_STORAGE=s3'] : []

function parsePrefix(value: string): string {
  const path = value.replace(/^\/+|\/+$/g, '')
  if (path === '') return ''
  if (!/^[\w.-]+(\/[\w.-]+)*$/.test(path) || path.split('/').some((part) => /^\.+$/.test(part))) {
    throw new Error('must be a path of letters, digits, dots, hyphens and underscores')
  }
  return `${path}/`
}
