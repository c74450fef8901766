import { Type } from 'typebox'
import type { Metadata } from '../db/tables.ts'
import { apiError } from '../errors.ts'

/** An object of the caller's own making: stored and returned as it is. */
export const FreeForm = Type.Unsafe<Metadata>(Type.Object({}, { additionalProperties: true }))

/**
 * Metadata travels in every access token, and tokens in a header: with more than this the account could not be read any
 * more. MAX_HEADER_BYTES in app.ts leaves room for both kinds of metadata at this size.
 */
const MAX_METADATA_BYTES = 16 * 1024

/** What `changes` make of metadata, as metadata.store.ts merges it: by key at the top level; null removes. */
export const mergedMetadata = (metadata: Metadata, changes: Metadata): Metadata =>
  Object.fromEntries(Object.entries({ ...metadata, ...changes }).filter(([key]) => changes[key] !== null))

/** Throws validation_failed when an account's metadata has grown too large. */
export function requireModestMetadata(metadata: Metadata): void {
  if (Buffer.byteLength(JSON.stringify(metadata)) <= MAX_METADATA_BYTES) return
  throw apiError('validation_failed', {
    status: 422,
    message: `Metadata cannot be larger than ${MAX_METADATA_BYTES} bytes`,
  })
}
