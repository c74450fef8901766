import type { Dispatcher } from 'undici'

/**
 * A piece of a body costs the parser the same with one byte as with 64 KiB. A clip in single bytes takes it a minute.
 * TCP delivers 536 bytes and more at a time (RFC 9293 3.7.1), so only an attacker stays below half of that.
 */
const SMALLEST_AVERAGE_BYTES = 256
const CRUMBS_ALLOWED = 10_000

/** Aborts bodies that come in crumbs. Counts at the parser, because a reader finds the pieces joined. */
export const limitCrumbs =
  (refuse: () => Error): Dispatcher.DispatcherComposeInterceptor =>
  (dispatch) =>
  (options, handler) => {
    let pieces = 0
    let bytes = 0
    return dispatch(options, {
      onRequestStart: (...args) => handler.onRequestStart?.(...args),
      onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (controller, piece) => {
        pieces++
        bytes += piece.length
        const isFine = pieces <= CRUMBS_ALLOWED + bytes / SMALLEST_AVERAGE_BYTES
        if (isFine) handler.onResponseData?.(controller, piece)
        else controller.abort(refuse())
      },
      onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
    })
  }
