import { copyFile, open } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { type RunLimits, type RunOutcome, runConfined } from '../../ffmpeg/run-confined.ts'
import { DECLARED_TOLERANCE_SECONDS } from '../../make/probe/limits.ts'
import { type Resolve, resolveName } from '../remote/resolve-name.ts'
import type { Guard } from '../remote/ssrf-guard.ts'
import { type GuardProxy, startGuardProxy } from './guard-proxy.ts'

export interface YtdlpOptions {
  path: string
  /** The operator's file; yt-dlp writes into the copy it gets. */
  cookies?: string | undefined
  guard: Guard
  resolve?: Resolve
  limiters: MediaTools['limiters']
  maxSeconds: number
  maxBytes: number
}

export interface YtdlpOutcome {
  outcome: RunOutcome
  /** Whether our guard said no to something it wanted. */
  hasRefused: boolean
}

const BRIDGE = fileURLToPath(new URL('./proxy-bridge.ts', import.meta.url))
const SOCKET = 'proxy'
/** Of the sandbox's own loopback, where nobody else is. */
const BRIDGE_PORT = 3128

/** Node, for the bridge, reserves gigabytes that it does not use. What a packed yt-dlp unpacks are files of some MB. */
const LIMITS: RunLimits = { wallSeconds: 60, cpuSeconds: 60, memoryBytes: 8 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }
const OUTPUT_CHARACTERS = 4 * 1024 ** 2

/**
 * Runs yt-dlp once, to the end or to a limit, in a private directory, with no way out but our proxy: where bwrap works it
 * has no network, else it is told to use the proxy and obeys. Rejects with the reason of `signal`.
 */
export async function runYtdlp(
  options: YtdlpOptions,
  url: string,
  { directory, signal, wallSeconds }: { directory: string; signal: AbortSignal; wallSeconds: number },
): Promise<YtdlpOutcome> {
  const { path, cookies, guard, resolve = resolveName, limiters, maxSeconds, maxBytes } = options
  const isSealed = limiters.sandbox?.kind === 'bwrap'
  const cookiesPath = cookies && join(directory, 'cookies')
  if (cookies && cookiesPath) await copyFile(cookies, cookiesPath)
  // Through the directory's handle: the path of a socket has room for a hundred letters only.
  await using handle = await open(directory)
  const socketPath = isSealed ? `/proc/self/fd/${handle.fd}/${SOCKET}` : undefined
  const proxy = await startGuardProxy({ guard, resolve, socketPath })
  try {
    const args = ytdlpArgs(url, { proxy: proxyUrl(proxy), cookiesPath, maxSeconds, maxBytes })
    const command = isSealed ? [process.execPath, BRIDGE, SOCKET, String(BRIDGE_PORT), path, ...args] : [path, ...args]
    const [program, ...programArgs] = command as [string]
    const outcome = await runConfined(program, programArgs, {
      limits: { ...LIMITS, wallSeconds: Math.min(LIMITS.wallSeconds, wallSeconds) },
      // The others have no way to our proxy: their loopback is down.
      limiters: isSealed ? limiters : { ...limiters, sandbox: null },
      ...{ cwd: directory, signal, outputCharacters: OUTPUT_CHARACTERS, environment: { TMPDIR: directory } },
    })
    return { outcome, hasRefused: proxy.hasRefused() }
  } finally {
    proxy.close()
  }
}

const proxyUrl = ({ credentials, port }: GuardProxy) => `http://${credentials}@127.0.0.1:${port || BRIDGE_PORT}`

/**
 * The arguments of contract/media.md 3.5: it looks at one page and says what is there; it downloads nothing, reads no settings and
 * runs no program. `generic` would fetch any address, so it is off. The address comes last, where none of it is an option.
 */
function ytdlpArgs(
  url: string,
  {
    proxy,
    cookiesPath,
    maxSeconds,
    maxBytes,
  }: Pick<YtdlpOptions, 'maxSeconds' | 'maxBytes'> & { proxy: string; cookiesPath: string | undefined },
): string[] {
  const duration = maxSeconds + DECLARED_TOLERANCE_SECONDS
  return [
    ...['--ignore-config', '--no-cache-dir', '--no-plugin-dirs', '--no-remote-components', '--no-js-runtimes'],
    ...['--no-playlist', '--playlist-items', '1', '--abort-on-error', '--no-warnings', '--no-progress'],
    ...['--socket-timeout', '10', '--retries', '1', '--extractor-retries', '1', '--fragment-retries', '1'],
    ...['--no-mtime', '--no-part', '--restrict-filenames', '--no-exec', '--max-filesize', String(maxBytes)],
    ...['--match-filters', `!is_live & duration<=?${duration}`, '--ies', 'default,-generic'],
    ...['-f', 'b[ext=mp4][height<=1080]/bv*[ext=mp4][height<=1080]+ba[ext=m4a]/b[ext=webm]/b'],
    ...['--proxy', proxy, ...(cookiesPath ? ['--cookies', cookiesPath] : [])],
    ...['-J', '--skip-download', '--', url],
  ]
}
