/** Codes of the service, each explained at its `/docs/errors`; a newer service may have more. */
export const ERROR_CODES = [
  'invalid_request',
  'missing_source',
  'missing_file',
  'invalid_json',
  'malformed_multipart',
  'session_required',
  'token_missing_or_invalid',
  'insufficient_scope',
  'source_forbidden',
  'wrong_origin',
  'bad_signature',
  'not_found',
  'method_not_allowed',
  'request_too_slow',
  'upload_too_slow',
  'offset_conflict',
  'idempotency_conflict',
  'already_decided',
  'gone',
  'clip_changed',
  'precondition_failed',
  'tus_version_unsupported',
  'album_changed',
  'file_too_large',
  'body_too_large',
  'unsupported_media_type',
  'range_not_satisfiable',
  'invalid_field',
  'album_full',
  'too_many_albums',
  'edit_out_of_range',
  'edit_not_supported',
  'cannot_fit',
  'duration_exceeded',
  'no_video_stream',
  'corrupt_media',
  'archive_too_large',
  'bulk_too_large',
  'dimensions_exceeded',
  'too_many_frames',
  'unsupported_site_content',
  'site_login_required',
  'site_gone',
  'blocked_content',
  'upload_locked',
  'source_fetch_failed',
  'queue_full',
  'too_many_variants',
  'daily_bytes_exceeded',
  'rate_limited',
  'headers_too_large',
  'hidden',
  'internal',
  'format_not_supported',
  'busy',
  'unavailable',
  'scan_timeout',
  'processing_timeout',
  'quota_exceeded',
] as const

/** Our own are `network_error`, for no answer, and `unexpected_answer`, for one of a proxy. */
export type MediaErrorCode = (typeof ERROR_CODES)[number] | 'network_error' | 'unexpected_answer'

interface Facts {
  code: MediaErrorCode
  status: number
  param?: string | undefined
  details?: Record<string, unknown> | undefined
  requestId?: string | undefined
  retryAfterSeconds?: number | undefined
  cause?: unknown
}

/**
 * A refusal of the service, or no answer at all (`network_error`, status 0). An abort is not one: it throws its reason.
 */
export class MediaError extends Error {
  override readonly name = 'MediaError'
  readonly code: MediaErrorCode
  readonly status: number
  /** Field that was refused. */
  readonly param: string | undefined
  /** Facts such as `limit` and `actual`. */
  readonly details: Record<string, unknown> | undefined
  /** Finds the request in the log of the service. */
  readonly requestId: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(message: string, { code, status, param, details, requestId, retryAfterSeconds, cause }: Facts) {
    super(message, { cause })
    this.code = code
    this.status = status
    this.param = param
    this.details = details
    this.requestId = requestId
    this.retryAfterSeconds = retryAfterSeconds
  }
}

export const networkError = (cause: unknown): MediaError =>
  new MediaError('The service cannot be reached.', { code: 'network_error', status: 0, cause })

/** Reads a refusal; `text` is its body, perhaps a page of a proxy. */
export function toMediaError(status: number, headers: Headers, text: string): MediaError {
  const { code, message, param, details, request_id: requestId } = errorIn(text) ?? {}
  const known = code && message ? { code: code as MediaErrorCode, message } : unexpected(status)
  return new MediaError(known.message, {
    ...{ code: known.code, status, param, details },
    requestId: requestId ?? headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: parseRetryAfter(headers.get('retry-after'), Date.now()),
  })
}

const unexpected = (status: number) => ({
  code: 'unexpected_answer' as const,
  message: `The answer ${status} is not one of the media service.`,
})

interface ErrorBody {
  code?: string
  message?: string
  param?: string
  details?: Record<string, unknown>
  request_id?: string
}

function errorIn(text: string): ErrorBody | undefined {
  try {
    return (JSON.parse(text) as { error?: ErrorBody } | null)?.error
  } catch {
    return undefined
  }
}

/** Seconds of a Retry-After header, which is a number or a date (RFC 9110 10.2.3). */
export function parseRetryAfter(value: string | null, now: number): number | undefined {
  if (value === null) return undefined
  if (/^\d+$/.test(value.trim())) return Number(value)
  // A negative number is no date, although Date.parse takes it for one.
  const at = /^[A-Za-z]/.test(value.trim()) ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000))
}
