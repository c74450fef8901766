import { copyFile, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type Resolve, resolveName } from '@services/common/egress/resolve-name'
import type { Guard } from '@services/common/egress/ssrf-guard'
import { moduleBeside } from '@services/common/process/sibling-module'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { type RunLimits, type RunOutcome, runConfined } from '../../ffmpeg/run-confined.ts'
import { DECLARED_TOLERANCE_SECONDS } from '../../make/probe/source-limits.ts'
import { type GuardProxy, startGuardProxy } from './guard-proxy.ts'

export interface YtdlpOptions {
  path: string
  /** The operator's file; yt-dlp writes into a copy. */
  cookies?: string | undefined
  guard: Guard
  resolve?: Resolve
  limiters: MediaTools['limiters']
  maxSeconds: number
  maxBytes: number
}

export interface YtdlpOutcome {
  outcome: RunOutcome
  hasRefused: boolean
}

const BRIDGE = moduleBeside(import.meta, 'proxy-bridge')
const SOCKET = 'proxy'
/** Port on the sandbox's own loopback, where nothing else listens. */
const BRIDGE_PORT = 3128

/** The bridge's Node reserves gigabytes without using them; a packed yt-dlp unpacks files of some MB. */
const LIMITS: RunLimits = { wallSeconds: 60, cpuSeconds: 60, memoryBytes: 8 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }
const OUTPUT_CHARACTERS = 4 * 1024 ** 2

/**
 * Runs yt-dlp once in a private directory, until it ends or reaches a limit. Where bwrap works, our proxy is its only
 * network; elsewhere only its own --proxy option sends requests there. Rejects with the reason of `signal`.
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
  // Uses the directory's handle, because the path of a socket is limited to some hundred characters.
  await using handle = await open(directory)
  const socketPath = isSealed ? `/proc/self/fd/${handle.fd}/${SOCKET}` : undefined
  const proxy = await startGuardProxy({ guard, resolve, socketPath })
  try {
    const args = ytdlpArgs(url, { proxy: proxyUrl(proxy), cookiesPath, maxSeconds, maxBytes })
    const bridged = isSealed ? [BRIDGE, SOCKET, String(BRIDGE_PORT), path, ...args] : args
    const outcome = await runConfined(isSealed ? process.execPath : path, bridged, {
      limits: { ...LIMITS, wallSeconds: Math.min(LIMITS.wallSeconds, wallSeconds) },
      // Other sandboxes cannot reach our proxy: their loopback is down.
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
 * The arguments of contract/media.md 3.5: yt-dlp reads one page and reports its media; it downloads nothing, reads no
 * settings and runs no program. `generic` would fetch any address, so it is disabled. The address comes last, behind
 * `--`, so that it is never an option.
 */
function ytdlpArgs(
  url: string,
  how: { proxy: string; cookiesPath: string | undefined; maxSeconds: number; maxBytes: number },
): string[] {
  const duration = how.maxSeconds + DECLARED_TOLERANCE_SECONDS
  return [
    ...['--ignore-config', '--no-cache-dir', '--no-plugin-dirs', '--no-remote-components', '--no-js-runtimes'],
    ...['--no-playlist', '--playlist-items', '1', '--abort-on-error', '--no-warnings', '--no-progress'],
    ...['--socket-timeout', '10', '--retries', '1', '--extractor-retries', '1', '--fragment-retries', '1'],
    ...['--no-mtime', '--no-part', '--restrict-filenames', '--no-exec', '--max-filesize', String(how.maxBytes)],
    ...['--match-filters', `!is_live & duration<=?${duration}`, '--ies', 'default,-generic'],
    ...['-f', 'b[ext=mp4][height<=1080]/bv*[ext=mp4][height<=1080]+ba[ext=m4a]/b[ext=webm]/b'],
    ...['--proxy', how.proxy, ...(how.cookiesPath ? ['--cookies', how.cookiesPath] : [])],
    ...['-J', '--skip-download', '--', url],
  ]
}
