import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { ListObjectsV2Command, S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { ConfigError } from '@services/common/config/variables'
import type { Logger } from '@services/common/telemetry/logger'
import type { TimeLimits } from '../../time-limits.ts'
import { StorageUnavailable } from './blob-storage.ts'
import type { S3Settings } from './storage-settings.ts'

export type S3Limits = Pick<TimeLimits, 'storageAnswerMs' | 'storageStartMs'>

/** A second attempt reaches another server behind the same name; a fourth only makes the caller wait. */
const ATTEMPTS = 3

const CONNECT_WITHIN_MS = 3_000

/** Each reader holds a connection while it reads; MAX_CONNECTIONS bounds the readers. */
const CONNECTIONS = { keepAlive: true, maxSockets: Number.POSITIVE_INFINITY, maxFreeSockets: 32 }

/**
 * A client for one bucket; nothing is sent yet. Without keys the SDK uses its default sources (environment, profile,
 * role).
 */
export function openS3Client(settings: S3Settings, { storageAnswerMs }: S3Limits): S3Client {
  const { endpoint, region, accessKeyId, secretAccessKey, forcePathStyle } = settings
  return new S3Client({
    region,
    forcePathStyle,
    maxAttempts: ATTEMPTS,
    ...(endpoint && { endpoint }),
    ...(accessKeyId && secretAccessKey && { credentials: { accessKeyId, secretAccessKey } }),
    // Servers other than Amazon's lack the newer checksums; ranges have none at all.
    requestChecksumCalculation: endpoint ? 'WHEN_REQUIRED' : 'WHEN_SUPPORTED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // "100 Continue" would cost a round trip for each part, on a separate connection.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: Math.min(CONNECT_WITHIN_MS, storageAnswerMs),
      throwOnRequestTimeout: true,
      // A socket timeout would end slow readers; read-patiently.ts has the clock for bytes that do not come.
      socketTimeout: 0,
      httpAgent: new HttpAgent(CONNECTIONS),
      httpsAgent: new HttpsAgent(CONNECTIONS),
    },
  })
}

/**
 * Sends a request and gives it up after `withinMs`. Every failure becomes StorageUnavailable, named by `operation`. The
 * signal covers only the request, not the body that is read afterwards.
 */
export async function askS3<Output>(
  operation: string,
  withinMs: number,
  send: (options: { abortSignal: AbortSignal; requestTimeout: number }) => Promise<Output>,
): Promise<Output> {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), withinMs)
  try {
    // Half of it for each attempt: a hanging server is not the only one behind its name.
    return await send({ abortSignal: deadline.signal, requestTimeout: withinMs / 2 })
  } catch (error) {
    throw toUnavailable(operation, error)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Drops the error itself: the SDK's errors carry the key's id, the signed text and the request's headers. `later` is a
 * failure that followed.
 */
export function toUnavailable(operation: string, error: unknown, later?: unknown): StorageUnavailable {
  if (error instanceof StorageUnavailable) return error
  const followed = later === undefined ? '' : `; then ${describe(later)}`
  return new StorageUnavailable(`S3 ${operation}: ${describe(error)}${followed}`)
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const status = statusOf(error)
  const { code } = error as { code?: string }
  return [error.name, status, code, error.message].filter((part) => part !== undefined && part !== 'Error').join(' ')
}

export const statusOf = (error: unknown): number | undefined =>
  error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined

/** Whether the object is missing; a missing bucket is another matter. */
export const isMissing = (error: unknown): boolean =>
  error instanceof S3ServiceException && (error.name === 'NoSuchKey' || error.name === 'NotFound')

const RETRY_START_EVERY_MS = 500

/**
 * Waits until the bucket answers. Throws a ConfigError with the reason, at once when waiting will not help. It lists,
 * because refusals of a list carry the reason, and without that right a missing object looks forbidden.
 */
export async function waitForBucket(client: S3Client, settings: S3Settings, timeLimits: S3Limits, log: Logger) {
  const deadline = Date.now() + timeLimits.storageStartMs
  for (let attempt = 0; ; attempt++) {
    try {
      const command = new ListObjectsV2Command({ Bucket: settings.bucket, Prefix: settings.prefix, MaxKeys: 1 })
      await client.send(command, { abortSignal: AbortSignal.timeout(timeLimits.storageAnswerMs) })
      return
    } catch (error) {
      const status = statusOf(error) ?? (isCredentialsError(error) ? 403 : 0)
      const isFinal = status >= 300 && status < 500 && status !== 429
      if (isFinal || Date.now() > deadline) throw new ConfigError([explain(error, status)])
      if (attempt === 0) log.warn({ reason: describe(error) }, 'waiting for the bucket: no answer yet')
      await new Promise((resolve) => setTimeout(resolve, RETRY_START_EVERY_MS))
    }
  }
}

const isCredentialsError = (error: unknown) => error instanceof Error && error.name === 'CredentialsProviderError'

function explain(error: unknown, status: number): string {
  const said = describe(error)
  if (error instanceof Error && error.name === 'InvalidBucketName')
    return `MEDIA_S3_BUCKET is not the name of a bucket (${said})`
  if (status === 404) return `MEDIA_S3_BUCKET does not exist there (${said})`
  if (status === 403 || status === 401) {
    return `MEDIA_S3_ACCESS_KEY_ID and MEDIA_S3_SECRET_ACCESS_KEY, or the role in their place, may not list the bucket (${said})`
  }
  if (status >= 300 && status < 500) return `MEDIA_S3_REGION or MEDIA_S3_ENDPOINT is not that of the bucket (${said})`
  return `MEDIA_S3_ENDPOINT does not answer (${said})`
}
