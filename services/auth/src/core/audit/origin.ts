/** Client of a request: its address, as limits and session lists have it, and its user agent. */
export interface Origin {
  ip: string | null
  userAgent: string | null
}

const origins = new WeakMap<object, () => Origin>()

/** Ties a request's logger to its origin, so that audit entries get it with the logger; read only where something is audited. */
export const noteOrigin = (log: object, readOrigin: () => Origin): void => void origins.set(log, readOrigin)

/** Origin of the request that this logger belongs to; undefined for commands and workers. */
export const originOf = (log: object): Origin | undefined => origins.get(log)?.()
