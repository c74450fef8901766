import { join } from 'node:path'
import { boolean, httpUrl, oneOf, parsed, text, type Values } from '@services/common/config'

/** Where files are kept, as a part of config.ts. Which of them are required depends on others: `requiredStorage`. */
export const storageVariables = {
  STORAGE: oneOf(['disk', 's3'], 'Where files are kept: in BLOBS_DIR, or in S3_BUCKET.', { default: 'disk' }),
  BLOBS_DIR: text(
    'With STORAGE=disk: directory of the stored files; all processes that serve or transcode must see the same one.',
  ),
  WORK_DIR: text(
    'Directory for files on their way in and out. With STORAGE=disk best on the same volume, else `work` in BLOBS_DIR; with STORAGE=s3 required, on a disk of the machine.',
  ),
  S3_BUCKET: text('With STORAGE=s3: name of the bucket, which must exist.'),
  S3_REGION: text('Its region.', { default: 'us-east-1', aliases: ['AWS_REGION'] }),
  S3_ENDPOINT: httpUrl("Address of a server that is not Amazon's."),
  S3_PREFIX: parsed(
    'string',
    'Folder in the bucket, for buckets that are shared; two installations never share one.',
    { default: '' },
    parsePrefix,
  ),
  S3_ACCESS_KEY_ID: text('Id of the key; without it the SDK looks for credentials where it always does.'),
  S3_SECRET_ACCESS_KEY: text('Secret of the key.'),
  S3_FORCE_PATH_STYLE: boolean('The bucket is in the path of addresses, not in the host; by default with S3_ENDPOINT.'),
} as const

type StorageValues = Values<typeof storageVariables>

export interface S3Settings {
  bucket: string
  region: string
  endpoint: string | undefined
  /** Empty, or with a slash at its end. */
  prefix: string
  accessKeyId: string | undefined
  secretAccessKey: string | undefined
  forcePathStyle: boolean
}

export type StorageSettings =
  | { kind: 'disk'; workDir: string; blobsDir: string }
  | { kind: 's3'; workDir: string; s3: S3Settings }

type Name = keyof typeof storageVariables

/** The variables that are required because of others; `given` answers the text of one, if any. */
export function requiredStorage(given: (name: Name) => string | undefined): Partial<typeof storageVariables> {
  return Object.fromEntries(namesRequired(given).map((name) => [name, { ...storageVariables[name], required: true }]))
}

function namesRequired(given: (name: Name) => string | undefined): Name[] {
  if (given('STORAGE')?.toLowerCase() !== 's3') return ['BLOBS_DIR']
  const hasKey = given('S3_ACCESS_KEY_ID') || given('S3_SECRET_ACCESS_KEY')
  return ['S3_BUCKET', 'WORK_DIR', ...(hasKey ? (['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const) : [])]
}

/** Of values that have what `requiredStorage` names. */
export function storageSettings(values: StorageValues): StorageSettings {
  const { BLOBS_DIR = '', WORK_DIR, S3_BUCKET = '' } = values
  if (values.STORAGE === 'disk') {
    return { kind: 'disk', blobsDir: BLOBS_DIR, workDir: WORK_DIR ?? join(BLOBS_DIR, 'work') }
  }
  return {
    kind: 's3',
    workDir: WORK_DIR ?? '',
    s3: {
      bucket: S3_BUCKET,
      region: values.S3_REGION,
      endpoint: values.S3_ENDPOINT,
      prefix: values.S3_PREFIX,
      accessKeyId: values.S3_ACCESS_KEY_ID,
      secretAccessKey: values.S3_SECRET_ACCESS_KEY,
      forcePathStyle: values.S3_FORCE_PATH_STYLE ?? values.S3_ENDPOINT !== undefined,
    },
  }
}

/** A bucket without STORAGE=s3 looks as if files went there. */
export const storageWarnings = ({ STORAGE, S3_BUCKET }: StorageValues): string[] =>
  STORAGE === 'disk' && S3_BUCKET ? ['MEDIA_S3_BUCKET has no effect without MEDIA_STORAGE=s3'] : []

function parsePrefix(value: string): string {
  const path = value.replace(/^\/+|\/+$/g, '')
  if (path === '') return ''
  if (!/^[\w.-]+(\/[\w.-]+)*$/.test(path) || path.split('/').some((part) => /^\.+$/.test(part))) {
    throw new Error('must be folders of letters, digits, dots, hyphens and underscores')
  }
  return `${path}/`
}
