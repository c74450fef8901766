import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { PATIENCE_MS } from '../patience.ts'

/**
 * HTTP server of an upstream in a test, which keeps idle connections. By default it would close them after 5 s. A
 * client in the same process that was starved for as long would then write to a closed one.
 */
export const createFarServer = (listener: RequestListener, options: ServerOptions = {}): Server =>
  createServer({ ...options, keepAliveTimeout: PATIENCE_MS }, listener)
