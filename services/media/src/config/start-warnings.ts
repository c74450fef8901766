import type { Config } from '../config.ts'
import type { MediaTools } from '../ffmpeg/binaries.ts'

interface StartWarning {
  text: string
  [fact: string]: unknown
}

/** Facts that an operator should know, as they are logged at the start and shown to administrators. */
export function startWarnings(
  { egress, limits, uploadNeedsToken, worker }: Config,
  { ffmpeg, limiters }: MediaTools,
): StartWarning[] {
  const { path, version, origin, isOld } = ffmpeg
  const all: (StartWarning & { applies: boolean })[] = [
    {
      ...{ applies: origin === 'embedded', ffmpeg: path, version },
      text: 'using the embedded ffmpeg of 2018: for development only, not for untrusted files',
    },
    {
      ...{ applies: origin !== 'embedded' && isOld, ffmpeg: path, version },
      text: 'configured ffmpeg is older than 5: for development only, not for untrusted files',
    },
    {
      applies: !limiters.sandbox,
      text: 'no sandbox for ffmpeg works here (bwrap, unshare): it has the network and rights of this process',
    },
    {
      ...{ applies: !ffmpeg.canDrawText, ffmpeg: path },
      text: 'this ffmpeg has no drawtext: captions are refused',
    },
    {
      ...{ applies: worker.extras && !ffmpeg.av1Encoder, ffmpeg: path },
      text: 'this ffmpeg has no libsvtav1: clips get a WebP poster and no AV1 copy',
    },
    {
      ...{ applies: egress.allowCidrs.length > 0, allowed: egress.allowCidrs },
      text: 'imports may reach private networks',
    },
    {
      applies: !uploadNeedsToken && !limits.header,
      text: 'uploads need no token and MEDIA_RATE_LIMIT_HEADER is not set: all callers share one limit',
    },
  ]
  return all.flatMap(({ applies, ...warning }) => (applies ? [warning] : []))
}

const isLocal = (host: string) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(host)

/** Valid settings that are less safe than they could be; none of a service that only its own machine reaches. */
export function settingsToReview({ site, encryptionKey, bootstrapToken, limits }: Config): string[] {
  const { protocol, hostname } = new URL(site.baseUrl)
  if (isLocal(hostname)) return []
  const open = {
    'MEDIA_BASE_URL is http: tokens and cookies cross the network in plain text': protocol === 'http:',
    'MEDIA_ENCRYPTION_KEY is unset: a reader of the database has the secrets of webhooks and can sign links':
      encryptionKey === undefined,
    'MEDIA_BOOTSTRAP_TOKEN is set: it has all scopes and never expires. Create tokens, then unset it':
      bootstrapToken !== undefined,
    'MEDIA_RATE_LIMIT_HEADER is unset: pages and files have no limit by address': limits.header === undefined,
  }
  return Object.entries(open).flatMap(([advice, applies]) => (applies ? [advice] : []))
}
