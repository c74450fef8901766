/** Codes of a service (its `errors.ts`); the handler in error-handler.ts answers the errors of `errorFactory`. */
export type ErrorCatalogue = Record<string, { status: number; message: string }>

export interface ErrorOptions {
  message?: string
  status?: number
  /** Public facts in the body: limits, reasons, a parameter's name. */
  details?: Record<string, unknown>
  retryAfterSeconds?: number
  /** Private: logged, never sent. */
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

/** Builds a service's `apiError` from its catalogue, so that an unknown code does not compile. */
export function errorFactory<Catalogue extends ErrorCatalogue>(catalogue: Catalogue) {
  return <Code extends keyof Catalogue & string>(code: Code, options: ErrorOptions = {}): ApiError<Code> => {
    const entry = catalogue[code] as ErrorCatalogue[string]
    return new ApiError(code, options.status ?? entry.status, options.message ?? entry.message, options)
  }
}

/** The request reached its time limit; the client's failure if the body was still awaited. */
export class RequestTimeout extends Error {
  readonly awaitsBody: boolean
  constructor(awaitsBody: boolean) {
    super('the request took too long')
    this.awaitsBody = awaitsBody
  }
}
