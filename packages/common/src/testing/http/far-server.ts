import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { PATIENCE_MS } from '../patience.ts'

/**
 * HTTP server of a test's far side, which keeps idle connections. By default it would close them after 5 s: a client that has
 * been starved for as long, in the same process, would then write to a closed one.
 */
export const createFarServer = (listener: RequestListener, options: ServerOptions = {}): Server =>
  createServer({ ...options, keepAliveTimeout: PATIENCE_MS }, listener)
