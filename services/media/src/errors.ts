import { errorFactory } from '@services/common/errors'

/** Every expected failure (statuses: contract/media.md 2.6); docs/reference/media/errors.md is generated from it. */
export const errorCatalogue = {
  invalid_request: { status: 400, message: 'The request is not valid.' },
  missing_source: { status: 400, message: 'expecting value "source"' },
  missing_file: { status: 400, message: 'expecting value "file"' },
  invalid_json: { status: 400, message: 'The body is not valid JSON.' },
  malformed_multipart: { status: 400, message: 'The multipart body is malformed or ended early.' },
  session_required: { status: 401, message: 'The session of this browser has ended.' },
  token_missing_or_invalid: { status: 401, message: 'A valid Token header is required.' },
  insufficient_scope: { status: 403, message: 'The token does not allow this operation.' },
  source_forbidden: { status: 403, message: 'The source address is not allowed.' },
  wrong_origin: { status: 403, message: 'A session of a browser serves the pages of this service alone.' },
  bad_signature: { status: 403, message: 'The signature of this address is wrong.' },
  not_found: { status: 404, message: 'There is nothing at this address.' },
  method_not_allowed: { status: 405, message: 'This address does not support that method.' },
  request_too_slow: { status: 408, message: 'The request did not arrive in time.' },
  upload_too_slow: { status: 408, message: 'The upload was slower than 16 KiB a second.' },
  offset_conflict: { status: 409, message: 'Upload-Offset does not match the current offset.' },
  idempotency_conflict: { status: 409, message: 'This Idempotency-Key was used for another request.' },
  already_decided: { status: 409, message: 'This report was decided already.' },
  gone: { status: 410, message: 'This media item was removed.' },
  clip_changed: { status: 412, message: 'The clip was changed since it was read.' },
  precondition_failed: { status: 412, message: 'The file does not match the condition of the request.' },
  tus_version_unsupported: { status: 412, message: 'Tus-Resumable must be 1.0.0.' },
  album_changed: { status: 412, message: 'The album was changed meanwhile.' },
  file_too_large: { status: 413, message: 'The file is larger than the limit.' },
  body_too_large: { status: 413, message: 'The request body is too large.' },
  unsupported_media_type: { status: 415, message: 'This type of media is not accepted.' },
  range_not_satisfiable: { status: 416, message: 'The file has no bytes in that range.' },
  invalid_field: { status: 422, message: 'A field has an invalid value.' },
  album_full: { status: 422, message: 'An album has at most 500 clips.' },
  too_many_albums: { status: 422, message: 'There are too many albums.' },
  edit_out_of_range: { status: 422, message: 'The edit does not fit the source.' },
  edit_not_supported: { status: 422, message: 'This service cannot make that edit.' },
  cannot_fit: { status: 422, message: 'The clip does not fit into that number of bytes.' },
  duration_exceeded: { status: 422, message: 'The clip is longer than the limit.' },
  no_video_stream: { status: 422, message: 'The file has no video stream.' },
  corrupt_media: { status: 422, message: 'The file is damaged or incomplete.' },
  archive_too_large: { status: 422, message: 'An archive may have at most 100 clips and 2 GB.' },
  bulk_too_large: { status: 422, message: 'A request may name at most 500 clips.' },
  dimensions_exceeded: { status: 422, message: 'The picture is larger than the limit.' },
  too_many_frames: { status: 422, message: 'The clip has more frames than the limit.' },
  unsupported_site_content: { status: 422, message: 'No clip of an accepted type was found at the source address.' },
  site_login_required: { status: 422, message: 'The site requires a login to show this.' },
  site_gone: { status: 422, message: 'The site of this address no longer exists.' },
  blocked_content: { status: 422, message: 'This file is not accepted by the operator of this service.' },
  upload_locked: { status: 423, message: 'Another request is writing to this upload.' },
  source_fetch_failed: { status: 424, message: 'The source could not be fetched.' },
  queue_full: { status: 429, message: 'Too many uploads or imports at once.' },
  too_many_variants: { status: 429, message: 'This clip has as many variants as it may have.' },
  daily_bytes_exceeded: { status: 429, message: 'This token has reached its daily upload limit.' },
  rate_limited: { status: 429, message: 'Too many requests.' },
  headers_too_large: { status: 431, message: 'The headers of the request are too large.' },
  hidden: { status: 451, message: 'This media item was hidden by the operator of this service.' },
  internal: { status: 500, message: 'Something went wrong on our side.' },
  format_not_supported: { status: 501, message: 'This format is not supported.' },
  busy: { status: 503, message: 'The service is busy; try again shortly.' },
  unavailable: { status: 503, message: 'The service is temporarily unavailable; try again shortly.' },
  scan_timeout: { status: 504, message: 'The clip could not be checked in time.' },
  processing_timeout: { status: 504, message: 'Processing the clip took too long.' },
  quota_exceeded: { status: 507, message: 'This token has reached its storage quota.' },
} as const

export type ErrorCode = keyof typeof errorCatalogue

export const apiError = errorFactory(errorCatalogue)

/** Seconds that the work under way takes. */
const BUSY_SECONDS = 5

/** The refusal of common/concurrency/semaphore.ts. */
export const busy = (isShare: boolean) => apiError(isShare ? 'queue_full' : 'busy', { retryAfterSeconds: BUSY_SECONDS })

/** Path of an error's `reference`; the fragment is the code. */
export const ERRORS_PATH = '/docs/errors'
