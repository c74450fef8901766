/**
 * This folder owns the bytes: files named by their SHA-256, in the same layout on a disk and in a bucket. A name never
 * changes its content, so storing twice and deleting twice are harmless. Drivers: disk-blobs.ts and s3-blobs.ts, one
 * test for both beside this file. References are counted in SQL: keep-files.ts.
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
  end: number
}

export interface StoredBlob {
  name: BlobName
  bytes: number
  storedAt: Date
}

/** A put that is in progress, or whose process was killed. */
export interface UnfinishedPut {
  startedAt: Date
}

/** The store does not answer or refuses us: requests get 503, jobs wait. The message holds no credential. */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'
}

/** Every method throws StorageUnavailable while the store cannot be reached. */
export interface BlobStorage {
  /** Stores a copy of the file; durable once resolved. The caller vouches for the hash and keeps its file. */
  put: (name: BlobName, path: string) => Promise<void>
  /** Undefined when there is no such blob. The range must lie within it. The stream must be read or destroyed. */
  open: (name: BlobName, range?: ByteRange) => Promise<Readable | undefined>
  /** Copies the whole blob to a path that does not exist yet. False when there is no such blob. */
  copyTo: (name: BlobName, path: string, signal: AbortSignal) => Promise<boolean>
  /** Reads at most SMALL_PART bytes, where that costs less than a stream. Throws when the blob is shorter. */
  readPart?: (name: BlobName, range: ByteRange) => Promise<Buffer | undefined>
  stat: (name: BlobName) => Promise<Omit<StoredBlob, 'name'> | undefined>
  /** A missing blob is no error. An open stream stays readable. */
  delete: (name: BlobName) => Promise<void>
  /** All blobs by name, one page in memory at a time. Other files are skipped. */
  list: () => AsyncIterable<StoredBlob>
  listUnfinished: () => AsyncIterable<UnfinishedPut>
  /** Removes the unfinished puts of killed processes; safe at any time. */
  sweep: () => Promise<void>
  close: () => Promise<void>
}

/** A stalled reader holds this much in any case, so a stream would cost more than it saves. */
export const SMALL_PART = 64 * 1024

/** Longer than any upload (time-limits.ts) and put: an older unfinished put belongs to a killed process. */
export const LEFTOVER_AGE_MS = 60 * 60 * 1000

export const isLeftover = ({ startedAt }: UnfinishedPut): boolean => Date.now() - startedAt.getTime() > LEFTOVER_AGE_MS

const SHA256 = /^[0-9a-f]{64}$/
const EXTENSION = /^[a-z0-9]{1,8}$/

/** `aa/bb/<sha256>.<ext>`: two levels keep directories small. Throws on other names, so that none leaves the store. */
export function blobKey({ sha256, extension }: BlobName): string {
  if (!SHA256.test(sha256) || !EXTENSION.test(extension)) throw new Error('not a blob name')
  return `${sha256.slice(0, 2)}/${sha256.slice(2, 4)}/${blobFile({ sha256, extension })}`
}

export function parseBlobKey(key: string): BlobName | undefined {
  const [, sha256 = '', extension = ''] = /^[0-9a-f]{2}\/[0-9a-f]{2}\/([0-9a-f]{64})\.([a-z0-9]{1,8})$/.exec(key) ?? []
  return sha256 && blobKey({ sha256, extension }) === key ? { sha256, extension } : undefined
}

export const blobFile = ({ sha256, extension }: BlobName): string => `${sha256}.${extension}`

export function parseBlobFile(file: string): BlobName {
  const [sha256 = '', extension = ''] = file.split('.')
  return { sha256, extension }
}
