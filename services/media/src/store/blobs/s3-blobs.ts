// Blobs in a bucket. Loaded only where one is configured (deps.ts), because the SDK takes 30 MB. Every wait for S3
// ends, and its failures are StorageUnavailable, never a missing blob.
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { createSemaphore, type Semaphore } from '@services/common/concurrency/semaphore'
import type { Logger } from '@services/common/telemetry/logger'
import { busy } from '../../errors.ts'
import { type BlobName, type BlobStorage, type ByteRange, blobKey, isLeftover, parseBlobKey } from './blob-storage.ts'
import { readPatiently } from './read-patiently.ts'
import { askS3, isMissing, openS3Client, type S3Limits, statusOf, toUnavailable, waitForBucket } from './s3-client.ts'
import type { S3Settings } from './storage-settings.ts'

/** Larger files are uploaded in parts, so that two parts of 8 MiB are all that is in memory (contract/media.md 6.2). */
const PART_BYTES = 8 * 1024 ** 2
const PARTS_AT_ONCE = 2

/** Each takes some 40 MiB for large files; four are more than any machine can produce. */
const PUTS_AT_ONCE = 4

/** Multiple of `answerMs` that a part of 8 MiB may take; an answer takes milliseconds. */
const ANSWERS_PER_PART = 3

const CONTENT_TYPES: Record<string, string> = {
  gif: 'image/gif',
  jpg: 'image/jpeg',
  mp4: 'video/mp4',
  webm: 'video/webm',
  webp: 'image/webp',
  av1: 'video/mp4',
}

interface Bucket extends Pick<S3Settings, 'bucket' | 'prefix'> {
  client: S3Client
  answerMs: number
  puts: Semaphore
}

/** Blobs in a bucket that exists. Throws a ConfigError that says what is wrong with the settings. */
export async function openS3Blobs(settings: S3Settings, timeLimits: S3Limits, log: Logger): Promise<BlobStorage> {
  const client = openS3Client(settings, timeLimits)
  try {
    await waitForBucket(client, settings, timeLimits, log)
  } catch (error) {
    client.destroy()
    throw error
  }
  const { bucket, prefix } = settings
  // Callers are bounded themselves, and a hanging put is given up.
  const puts = createSemaphore({ atOnce: PUTS_AT_ONCE, waiting: Infinity, waitMs: Infinity }, busy)
  const s3 = { client, bucket, prefix, answerMs: timeLimits.storageAnswerMs, puts }
  return {
    put: (name, path) => putBlob(s3, name, path),
    open: (name, range) => openBlob(s3, name, range),
    copyTo: async (name, path, signal) => {
      const stream = await openBlob(s3, name)
      if (!stream) return false
      await pipeline(stream, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal })
      return true
    },
    stat: (name) => statBlob(s3, name),
    delete: async (name) => {
      const command = new DeleteObjectCommand(objectOf(s3, name))
      await askS3('DeleteObject', s3.answerMs, (options) => client.send(command, options))
    },
    list: () => listBlobs(s3),
    listUnfinished: () => listUploads(s3),
    sweep: async () => {
      for await (const { startedAt, ...upload } of listUploads(s3)) {
        if (isLeftover({ startedAt })) await abortUpload(s3, upload)
      }
    },
    close: async () => client.destroy(),
  }
}

const objectOf = ({ bucket, prefix }: Bucket, name: BlobName) => ({ Bucket: bucket, Key: prefix + blobKey(name) })

async function putBlob(s3: Bucket, name: BlobName, path: string): Promise<void> {
  const [existing, { size }] = await Promise.all([statBlob(s3, name), stat(path)])
  // A file of another size under this name is damaged and is replaced.
  if (existing?.bytes === size) return
  await s3.puts.run(() => uploadFile(s3, name, { path, size }))
}

async function uploadFile(s3: Bucket, name: BlobName, { path, size }: { path: string; size: number }): Promise<void> {
  const file = createReadStream(path, { highWaterMark: 1024 ** 2 })
  let unreadable: Error | undefined
  file.on('error', (error) => {
    // A failing upload aborts its source.
    if (error.name !== 'AbortError') unreadable = error
  })
  const progress = givenUpAfter(s3.answerMs * ANSWERS_PER_PART)
  let uncleaned: unknown
  const type = CONTENT_TYPES[name.extension]
  const upload = new Upload({
    client: under(s3, progress.signal, (error) => {
      uncleaned = error
    }),
    params: {
      ...objectOf(s3, name),
      Body: file,
      ContentLength: size,
      ContentType: type ?? 'application/octet-stream',
      // Any other type is an original, which is never served.
      CacheControl: type ? 'public, max-age=31536000, immutable' : 'private, no-store',
    },
    partSize: PART_BYTES,
    queueSize: PARTS_AT_ONCE,
  })
  upload.on('httpUploadProgress', progress.happened)
  try {
    await upload.done()
  } catch (error) {
    throw unreadable ?? toUnavailable('Upload', error, uncleaned)
  } finally {
    progress.end()
    file.destroy()
  }
}

function givenUpAfter(ms: number) {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(), ms)
  return { signal: controller.signal, happened: () => void timer.refresh(), end: () => clearTimeout(timer) }
}

/**
 * The client as an upload sees it: the signal ends every request but the abort that cleans up. A failed abort is
 * reported, and does not take the place of the failure that it follows; the sweep removes the parts.
 */
function under(
  { client, answerMs }: Bucket,
  abortSignal: AbortSignal,
  onFailedAbort: (error: unknown) => void,
): S3Client {
  const send = (command: Parameters<S3Client['send']>[0]) =>
    command instanceof AbortMultipartUploadCommand
      ? askS3('AbortMultipartUpload', answerMs, (options) => client.send(command, options)).catch(onFailedAbort)
      : client.send(command, { abortSignal })
  return { config: client.config, send } as unknown as S3Client
}

/** Yields the requested bytes or fails: a connection that ends early or stalls is not the end of the file. */
async function openBlob(s3: Bucket, name: BlobName, range?: ByteRange): Promise<Readable | undefined> {
  const command = new GetObjectCommand({
    ...objectOf(s3, name),
    ...(range && { Range: `bytes=${range.start}-${range.end}` }),
  })
  const answer = await askS3('GetObject', s3.answerMs, (options) => unlessMissing(s3.client.send(command, options)))
  if (!answer) return undefined
  const body = answer.Body as Readable
  if (range && answer.ContentLength !== range.end - range.start + 1) {
    body.destroy()
    throw new Error(`the object ${name.sha256}.${name.extension} became shorter`)
  }
  return readPatiently(body, s3.answerMs, (error) => toUnavailable('GetObject', error))
}

async function statBlob(s3: Bucket, name: BlobName) {
  const command = new HeadObjectCommand(objectOf(s3, name))
  const answer = await askS3('HeadObject', s3.answerMs, (options) => unlessMissing(s3.client.send(command, options)))
  return answer && { bytes: answer.ContentLength ?? 0, storedAt: answer.LastModified ?? new Date() }
}

async function* listBlobs({ client, bucket, prefix, answerMs }: Bucket) {
  let next: string | undefined
  do {
    const command = new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: next })
    const page = await askS3('ListObjectsV2', answerMs, (options) => client.send(command, options))
    for (const { Key = '', Size = 0, LastModified = new Date() } of page.Contents ?? []) {
      const name = parseBlobKey(Key.slice(prefix.length))
      if (name) yield { name, bytes: Size, storedAt: LastModified }
    }
    next = page.IsTruncated ? page.NextContinuationToken : undefined
  } while (next)
}

/**
 * Lists only the uploads of blobs, because a bucket may be shared. A server without this list must expire them itself.
 */
async function* listUploads({ client, bucket, prefix, answerMs }: Bucket) {
  let page: ListMultipartUploadsCommandOutput | undefined
  do {
    const command = new ListMultipartUploadsCommand({
      Bucket: bucket,
      Prefix: prefix,
      KeyMarker: page?.NextKeyMarker,
      UploadIdMarker: page?.NextUploadIdMarker,
    })
    page = await askS3('ListMultipartUploads', answerMs, (options) =>
      client.send(command, options).catch((error) => {
        if (cannotList(error)) return undefined
        throw error
      }),
    )
    for (const { Key = '', UploadId, Initiated } of page?.Uploads ?? []) {
      const isOurs = Key.startsWith(prefix) && parseBlobKey(Key.slice(prefix.length))
      if (isOurs && UploadId && Initiated) yield { Key, UploadId, startedAt: Initiated }
    }
  } while (page?.IsTruncated)
}

/**
 * Answers of servers without this list: not implemented, not allowed, or not found (rclone before its first upload in
 * parts).
 */
const cannotList = (error: unknown) => {
  const status = statusOf(error)
  return status === 501 || status === 405 || (status === 404 && (error as Error).name === 'NoSuchUpload')
}

async function abortUpload({ client, bucket, answerMs }: Bucket, upload: { Key: string; UploadId: string }) {
  const command = new AbortMultipartUploadCommand({ Bucket: bucket, ...upload })
  await askS3('AbortMultipartUpload', answerMs, (options) => unlessGone(client.send(command, options)))
}

/** An upload may be completed or aborted elsewhere since it was listed. */
const unlessGone = (sent: Promise<unknown>) =>
  sent.catch((error) => {
    if (statusOf(error) !== 404) throw error
  })

const unlessMissing = <Output>(sent: Promise<Output>): Promise<Output | undefined> =>
  sent.catch((error) => {
    if (!isMissing(error)) throw error
    return undefined
  })
