import { Type } from 'typebox'
import type { Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'

/** Any object; stored and returned as it is. */
export const FreeForm = Type.Unsafe<Metadata>(Type.Object({}, { title: 'FreeForm', additionalProperties: true }))

/** Access tokens in headers contain metadata: MAX_HEADER_BYTES in app.ts allows for both kinds at this size. */
export const MAX_METADATA_BYTES = 16 * 1024

/** Merges metadata as metadata.store.ts does: by key at the top level; null removes. */
export const mergedMetadata = (metadata: Metadata, changes: Metadata): Metadata =>
  Object.fromEntries(Object.entries({ ...metadata, ...changes }).filter(([key]) => changes[key] !== null))

/** PostgreSQL writes numbers without an exponent: 1e308 takes 5 bytes of a request and 309 of every answer. */
const MAX_NUMBER_LENGTH = 25

/** Throws validation_failed for metadata that is too large or contains a number that is too long. */
export function requireModestMetadata(metadata: Metadata, maxBytes = MAX_METADATA_BYTES): void {
  const json = JSON.stringify(metadata, (_key, value) => {
    if (typeof value === 'number' && plainLength(value) > MAX_NUMBER_LENGTH) throw tooLongNumber()
    return value
  })
  if (Buffer.byteLength(json) > maxBytes) throw invalid(`Metadata cannot be larger than ${maxBytes} bytes`)
}

/** Reports whether metadata is small enough, for data that no caller sent. */
export const isModestMetadata = (metadata: Metadata): boolean =>
  Buffer.byteLength(JSON.stringify(metadata)) <= MAX_METADATA_BYTES

/** Characters of a number without an exponent. A non-finite one was written with hundreds of digits. */
function plainLength(value: number): number {
  if (!Number.isFinite(value)) return Number.POSITIVE_INFINITY
  const [mantissa = '', exponent] = String(value).split('e')
  if (exponent === undefined) return mantissa.length
  const digits = mantissa.replace(/[-.]/g, '').length
  const power = Number(exponent)
  return power > 0 ? Math.max(digits, power + 1) : 1 + digits - power
}

const tooLongNumber = () =>
  invalid(`Numbers in metadata cannot be longer than ${MAX_NUMBER_LENGTH} characters, written without an exponent`)

const invalid = (message: string) => apiError('validation_failed', { status: 422, message })
