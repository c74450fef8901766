/**
 * Owns the bytes: files named by their own SHA-256, the same shape on a disk and in a bucket.
 * The rule: a name never changes its content, so storing twice and deleting twice are harmless.
 * Who still needs a blob is counted in SQL, not here. Drivers: disk-blobs.ts, s3-blobs.ts; one test for both.
 */
import type { Readable } from 'node:stream'

export interface BlobName {
  /** 64 lower-case hex digits. */
  sha256: string
  /** Lower-case letters and digits, without the dot. */
  extension: string
}

export interface ByteRange {
  start: number
  /** Inclusive, as in HTTP. */
  end: number
}

export interface StoredBlob {
  name: BlobName
  bytes: number
  storedAt: Date
}

/** A put that has not come to its end: it is under way, or its process was killed. */
export interface UnfinishedPut {
  startedAt: Date
}

/**
 * The store does not answer or refuses us; temporary, and no fault of the caller. Requests are answered 503, jobs wait.
 * The message is for the log and never holds a credential.
 */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'
}

/** Every method throws StorageUnavailable while the store cannot be reached. */
export interface BlobStorage {
  /** Stores a copy of the file; durable once resolved. The caller vouches for the hash and keeps (or removes) its file. */
  put: (name: BlobName, path: string) => Promise<void>
  /** Undefined when there is no such blob. The range must lie within it. The stream must be read or destroyed. */
  open: (name: BlobName, range?: ByteRange) => Promise<Readable | undefined>
  /** Writes a copy of the whole blob to a path where nothing is yet. False when there is no such blob. */
  copyTo: (name: BlobName, path: string, signal: AbortSignal) => Promise<boolean>
  /** Where it costs less than a stream: at most SMALL_PART bytes, in one piece. Throws when the blob is shorter. */
  readPart?: (name: BlobName, range: ByteRange) => Promise<Buffer | undefined>
  stat: (name: BlobName) => Promise<Omit<StoredBlob, 'name'> | undefined>
  /** Deleting what is not there is fine. A stream that is already open stays readable. */
  delete: (name: BlobName) => Promise<void>
  /** Everything that is stored, in the order of names, a page of it in memory at a time. What is not named like a blob is not ours. */
  list: () => AsyncIterable<StoredBlob>
  listUnfinished: () => AsyncIterable<UnfinishedPut>
  /** Removes what puts of killed processes left unfinished; safe at any time. */
  sweep: () => Promise<void>
  close: () => Promise<void>
}

/** What a stalled reader may keep in memory anyway; for so little a stream costs more than it saves. */
export const SMALL_PART = 64 * 1024

/** No upload takes longer (patience.ts), and a put takes seconds: what is unfinished for so long was left by a killed process. */
export const LEFTOVER_AGE_MS = 60 * 60 * 1000

export const isLeftover = ({ startedAt }: UnfinishedPut): boolean => Date.now() - startedAt.getTime() > LEFTOVER_AGE_MS

const SHA256 = /^[0-9a-f]{64}$/
const EXTENSION = /^[a-z0-9]{1,8}$/

/**
 * `aa/bb/<sha256>.<ext>`: two levels keep directories small at millions of files. Throws on anything else than a hash and
 * a plain extension, so that no name can point outside the store whatever it was built from.
 */
export function blobKey({ sha256, extension }: BlobName): string {
  if (!SHA256.test(sha256) || !EXTENSION.test(extension)) throw new Error('not a blob name')
  return `${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${blobFile({ sha256, extension })}`
}

/** Undefined for what is not the key of a blob. */
export function parseBlobKey(key: string): BlobName | undefined {
  const [, sha256 = '', extension = ''] = /^[0-9a-f]{2}\/[0-9a-f]{2}\/([0-9a-f]{64})\.([a-z0-9]{1,8})$/.exec(key) ?? []
  return sha256 && blobKey({ sha256, extension }) === key ? { sha256, extension } : undefined
}

export const blobFile = ({ sha256, extension }: BlobName): string => `${sha256}.${extension}`
