import type { Resolve } from './resolve-name.ts'
import type { GuardOptions } from './ssrf-guard.ts'

export interface EgressOptions extends GuardOptions {
  userAgent: string
  /** Replaces `resolveName`, for tests with a hostile name server. */
  resolve?: Resolve
}

export interface EgressRequest {
  method?: string
  headers?: Headers | Record<string, string>
  body?: string | URLSearchParams | null
  signal?: AbortSignal | null
}

export interface EgressBounds {
  /** Limit from the first DNS query, a free slot included, to the last byte. */
  timeoutMs: number
  maxBytes: number
}

/** Client for addresses that a person can choose. */
export interface Egress {
  /**
   * Checks a URL and all addresses that its name has now, without a connection. Throws the guard's refusal, or the
   * error of the look-up, which has a `code`.
   */
  check(url: string): Promise<URL>
  /**
   * Requests a URL at an address that was checked, and returns the whole answer. Redirects are answers, not followed.
   * Throws the guard's refusal, AnswerTooLarge, the signal's reason (TimeoutError), or the error of the connection.
   */
  fetch(url: string, request: EgressRequest, bounds: EgressBounds): Promise<Response>
  close(): Promise<void>
}
