import { DECLARED_TOLERANCE_SECONDS } from '../../make/probe/limits.ts'

export interface YtdlpRun {
  url: string
  /** With the name and password it wants. */
  proxy: string
  cookiesPath: string | undefined
  maxSeconds: number
  maxBytes: number
}

/**
 * The arguments of contract/media.md 3.5: it looks at one page and says what is there; it downloads nothing, reads no settings and
 * runs no program. `generic` would fetch any address, so it is off. The address comes last, where none of it is an option.
 */
export function ytdlpCommand({ url, proxy, cookiesPath, maxSeconds, maxBytes }: YtdlpRun): string[] {
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
