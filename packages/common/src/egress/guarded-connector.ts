import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import type { Resolve } from './resolve-name.ts'
import type { Guard, Target } from './ssrf-guard.ts'

/** Connects to the very DNS answer that it checked (DNS rebinding); throws the guard's refusal for other addresses. */
export function guardedConnector(guard: Guard, resolve: Resolve, timeoutMs: number): buildConnector.connector {
  return (options, callback) => {
    const target = {
      hostname: options.hostname,
      port: Number(options.port || (options.protocol === 'https:' ? 443 : 80)),
      isPlain: options.protocol !== 'https:',
    }
    // Node skips `lookup` for literal addresses.
    if (isIP(target.hostname) && !guard.permits(target, target.hostname)) return callback(refused(guard), null)

    // HTTP/2 off: one request per socket keeps every limit (headers, idle, size) about one response.
    const lookup = guardedLookup(guard, resolve, target)
    const connect = buildConnector({ lookup, timeout: timeoutMs, autoSelectFamily: true, allowH2: false })
    connect(options, (error, socket) => {
      if (error) return callback(error, null)
      // Second lock on the same door: whatever the layers above did, this is the connected peer.
      if (guard.permits(target, socket.remoteAddress ?? '')) return callback(null, socket)
      socket.destroy()
      callback(refused(guard), null)
    })
  }
}

/** One refused answer refuses them all: a name with public and private addresses is an attack, not a mistake. */
function guardedLookup(guard: Guard, resolve: Resolve, target: Target): LookupFunction {
  return async (hostname, options, callback) => {
    try {
      const answers = await resolve(hostname)
      const [first] = answers
      if (!first || !answers.every(({ address }) => guard.permits(target, address))) throw refused(guard)
      if (options.all) callback(null, [...answers])
      else callback(null, first.address, first.family)
    } catch (error) {
      callback(error as Error, '')
    }
  }
}

const refused = ({ refuse }: Guard) => refuse('refused address')
