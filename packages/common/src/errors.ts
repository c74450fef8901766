/**
 * The one kind of expected failure. Each service declares a catalogue of codes (`errors.ts`) and throws what
 * `errorFactory(catalogue)` makes; the one handler (`error-handler.ts`) turns it into an answer.
 */
export type ErrorCatalogue = Record<string, { status: number; message: string }>

export interface ErrorOptions {
  /** Replaces the catalogue's text; must help the caller and leak nothing. */
  message?: string
  /** For the few codes whose status depends on the endpoint. */
  status?: number
  /** Public facts the body carries beside the text: limits, reasons, the parameter's name. */
  details?: Record<string, unknown>
  /** Whole seconds until another try makes sense; becomes the `Retry-After` header. */
  retryAfterSeconds?: number
  /** Private: goes to the log, never to the caller. */
  cause?: unknown
}

/** An expected failure: `message` is public, `cause` is private. */
export class ApiError<Code extends string = string> extends Error {
  override readonly name = 'ApiError'
  readonly code: Code
  readonly status: number
  readonly details: Record<string, unknown> | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: Code, status: number, message: string, options: ErrorOptions) {
    super(message, { cause: options.cause })
    this.code = code
    this.status = status
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** Builds the `apiError` function of a service from its catalogue, so that an unknown code does not compile. */
export function errorFactory<Catalogue extends ErrorCatalogue>(catalogue: Catalogue) {
  return <Code extends keyof Catalogue & string>(code: Code, options: ErrorOptions = {}): ApiError<Code> => {
    const entry = catalogue[code] as ErrorCatalogue[string]
    return new ApiError(code, options.status ?? entry.status, options.message ?? entry.message, options)
  }
}

/** A request that ran into its time limit; the client's matter if it was the body that was waited for. */
export class RequestTimeout extends Error {
  readonly awaitsBody: boolean
  constructor(awaitsBody: boolean) {
    super('the request took too long')
    this.awaitsBody = awaitsBody
  }
}
