import { execFile } from 'node:child_process'
import { access, chmod, constants, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ConfigError } from '@services/common/config/variables'
import { isolatedEnvironment, type Limiters, limiterArgs, SETPRIV_ARGS } from './run-confined.ts'
import { SANDBOX_PROGRAMS, SANDBOXES, type Sandbox } from './sandbox.ts'

const run = promisify(execFile)

/** `embedded`: the npm package's build. For ffmpeg that is one of 2018: fine for a laptop, not for untrusted files. */
export type Origin = 'configured' | 'system' | 'embedded'

export interface Ffmpeg extends Ffprobe {
  /** Older than ffmpeg 5: its vulnerabilities are known and will not be fixed. */
  isOld: boolean
  /** ffmpeg 5.1 renamed the option, 8 removes the old name, 2018 knows only the old one. */
  frameRateModeFlag: '-fps_mode' | '-vsync'
  webmVideoEncoder: 'libvpx-vp9' | 'libvpx'
  webmAudioEncoder: 'libopus' | 'libvorbis'
  /** Encoder of the background copy; null where this ffmpeg lacks it. Others take minutes for a clip. */
  av1Encoder: 'libsvtav1' | null
  /** Whether it writes animated WebP. */
  animatesWebp: boolean
  /** Whether zscale and tonemap exist; without them HDR comes out pale. */
  canToneMap: boolean
  /** Whether drawtext exists; without it there are no captions. */
  canDrawText: boolean
  deinterlacer: 'bwdif' | 'yadif'
}

export interface Ffprobe {
  path: string
  /** Version as printed, such as `5.1.9-0+deb12u1`. */
  version: string
  origin: Origin
}

export interface MediaTools {
  ffmpeg: Ffmpeg
  ffprobe: Ffprobe
  /** ffprobe for our own output, so age is no danger: the embedded static build starts in 2 ms, others in 40. */
  verifier: Ffprobe
  limiters: Limiters
}

/** libavcodec 59 came with ffmpeg 5. Its number is there in nightly builds too, whose version is only a revision. */
const OLDEST_SYSTEM_LIBAVCODEC = 59

/**
 * Finds the programs once at start: the configured path, else the system's, else the npm package's (design.md 6.5).
 * Throws when a configured one does not work, or when none does. `searchPath` is the PATH to look in.
 */
export async function resolveTools(options: {
  searchPath: string
  ffmpegPath?: string | undefined
  ffprobePath?: string | undefined
}): Promise<MediaTools> {
  const { searchPath } = options
  const ffmpeg = await resolveFfmpeg(searchPath, options.ffmpegPath)
  const ffprobe = await resolveFfprobe(ffmpeg, options.ffprobePath)
  const [verifier, nice, prlimit, setpriv] = await Promise.all([
    ffprobe.origin === 'system' ? embeddedFfprobe().catch(() => ffprobe) : ffprobe,
    findLimiter(searchPath, 'nice', '-n', '10'),
    findLimiter(searchPath, 'prlimit', '--core=0'),
    findLimiter(searchPath, 'setpriv', ...SETPRIV_ARGS),
  ])
  const limiters = { nice, prlimit, setpriv, sandbox: null }
  return { ffmpeg, ffprobe, verifier, limiters: { ...limiters, sandbox: await findSandbox(searchPath, limiters) } }
}

async function resolveFfmpeg(searchPath: string, configured: string | undefined): Promise<Ffmpeg> {
  if (configured) return describeFfmpeg(configured, 'configured').catch(asConfigError('MEDIA_FFMPEG_PATH'))
  const system = await findOnPath(searchPath, 'ffmpeg')
  const usable = system && (await describeFfmpeg(system, 'system').catch(() => undefined))
  if (usable && !usable.isOld) return usable
  return describeFfmpeg((await import('@ffmpeg-installer/ffmpeg')).default.path, 'embedded')
}

async function resolveFfprobe(ffmpeg: Ffmpeg, configured: string | undefined): Promise<Ffprobe> {
  if (configured) return describeFfprobe(configured, 'configured').catch(asConfigError('MEDIA_FFPROBE_PATH'))
  const sibling = join(dirname(ffmpeg.path), 'ffprobe')
  if (ffmpeg.origin !== 'embedded' && (await isExecutable(sibling))) return describeFfprobe(sibling, ffmpeg.origin)
  return embeddedFfprobe()
}

const asConfigError = (variable: string) => (cause: Error) => {
  throw new ConfigError([`${variable}: ${cause.message.split('\n')[0]}`], cause)
}

const embeddedFfprobe = async () =>
  describeFfprobe((await import('@ffprobe-installer/ffprobe')).default.path, 'embedded')

/** Throws with the reason when the binary does not start or lacks an encoder that every clip needs. */
async function describeFfmpeg(path: string, origin: Origin): Promise<Ffmpeg> {
  await makeExecutable(path)
  const [{ banner, names: encoders }, { names: filters }] = await Promise.all([
    listNames(path, '-encoders'),
    listNames(path, '-filters'),
  ])
  const firstOf = <Name extends string>(...names: Name[]): Name => {
    const found = names.find((name) => encoders.has(name))
    if (!found) throw new Error(`${path} has no encoder ${names.join(' or ')}`)
    return found
  }
  firstOf('libx264')
  firstOf('aac')
  const [, major = 0, minor = 0] = (/libavcodec\s+(\d+)\.\s*(\d+)/.exec(banner) ?? []).map(Number)
  return {
    path,
    version: versionIn(banner),
    origin,
    isOld: major < OLDEST_SYSTEM_LIBAVCODEC,
    frameRateModeFlag: major > 59 || (major === 59 && minor >= 37) ? '-fps_mode' : '-vsync',
    webmVideoEncoder: firstOf('libvpx-vp9', 'libvpx'),
    webmAudioEncoder: firstOf('libopus', 'libvorbis'),
    av1Encoder: encoders.has('libsvtav1') ? 'libsvtav1' : null,
    animatesWebp: encoders.has('libwebp_anim'),
    canToneMap: filters.has('zscale') && filters.has('tonemap'),
    canDrawText: filters.has('drawtext'),
    deinterlacer: filters.has('bwdif') ? 'bwdif' : 'yadif',
  }
}

async function describeFfprobe(path: string, origin: Origin): Promise<Ffprobe> {
  await makeExecutable(path)
  return { path, version: versionIn((await output(path, '-version')).stdout), origin }
}

const versionIn = (text: string): string => /version (\S+)/.exec(text)?.[1] ?? 'unknown'

/**
 * The banner beside a list has the versions: to ask for them alone is another 55 ms of CPU for a distribution's build.
 */
export async function listNames(path: string, list: '-encoders' | '-decoders' | '-filters') {
  const { stdout, stderr } = await output(path, list)
  return { banner: stderr, names: new Set(stdout.split('\n').map((line) => line.trim().split(/\s+/)[1] ?? '')) }
}

const output = (path: string, ...args: string[]) => run(path, args, { env: isolatedEnvironment, timeout: 10_000 })

/** npm skips the packages' own `chmod` when install scripts are not approved. */
async function makeExecutable(path: string): Promise<void> {
  if (await isExecutable(path)) return
  await chmod(path, 0o755).catch((cause) => {
    throw new Error(`${path} cannot be run and cannot be made executable`, { cause })
  })
}

async function findOnPath(searchPath: string, name: string): Promise<string | null> {
  for (const directory of searchPath.split(delimiter)) {
    const path = join(directory, name)
    if (directory && (await isExecutable(path))) return path
  }
  return null
}

/** Runs the limiter once, because busybox has a `setpriv` that lacks the option. */
async function findLimiter(searchPath: string, name: string, ...args: string[]): Promise<string | null> {
  const path = await findOnPath(searchPath, name)
  return path && (await succeeds(output(path, ...args, 'true'))) ? path : null
}

/** The first sandbox that runs a program behind all other limiters; a container may forbid any of them. */
async function findSandbox(searchPath: string, limiters: Limiters): Promise<Sandbox | null> {
  const limits = { cpuSeconds: 1, memoryBytes: 1024 ** 3, fileBytes: 0, wallSeconds: 1 }
  for (const kind of SANDBOXES) {
    const path = await findOnPath(searchPath, SANDBOX_PROGRAMS[kind])
    if (!path) continue
    const sandbox = { kind, path }
    const [command, ...args] = limiterArgs({ limiters: { ...limiters, sandbox }, limits, cwd: tmpdir() }) as [string]
    if (await succeeds(output(command, ...args, 'true'))) return sandbox
  }
  return null
}

const succeeds = (attempt: Promise<unknown>): Promise<boolean> =>
  attempt.then(
    () => true,
    () => false,
  )

const isExecutable = (path: string): Promise<boolean> => succeeds(requireExecutable(path))

/** Rejects with the `code` of the problem for anything but an executable file. A folder has X_OK as well. */
export async function requireExecutable(path: string): Promise<void> {
  await access(path, constants.X_OK)
  if (!(await stat(path)).isFile()) throw Object.assign(new Error(`${path} is not a file`), { code: 'EISDIR' })
}
