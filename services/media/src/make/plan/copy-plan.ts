// Decides whether the source's own streams may be the mp4 or the webm. A copy has only what our files have, because it
// reaches players unchanged. These are common codecs and sizes, whole frames from the start, seeks within 5 s, and no
// more bits. The probe knows the beginning; `requireFitToItsEnd` (verify-renditions.ts) checks the rest after a decode
// of all frames.
import type { StoredStreams, VideoInfo } from '../../db/media-info.ts'
import type { RenditionPlan } from './rendition-plan.ts'

/** Reasons to encode a file although the source is of its type. */
export type Misfit = 'edited' | 'codec' | 'picture' | 'size' | 'times' | 'start' | 'keyframes' | 'bit_rate' | 'sound'

/** Level 4.2, which all hardware of the last ten years decodes (ITU-T H.264, table A-1): blocks of 16 x 16 pixels. */
const H264 = {
  profile: /^(Constrained Baseline|Baseline|Main|High)$/,
  level: 42,
  blocks: 8704,
  blocksPerSecond: 522_240,
}

const VP9_PROFILE = 'Profile 0'

/** Our own files have keyframes every 2 to 4 s and at most 6 Mbit/s; richer sources become smaller by encoding. */
const MOST = { startSeconds: 0.05, keyframeGapSeconds: 5, bitRate: 6_000_000, bitsPerPixel: 0.15 }

const SOUND = { codecs: { mp4: ['aac'], webm: ['opus', 'vorbis'] }, channels: 2, sampleRate: 48_000, bitRate: 192_000 }

/** The file that streams in these containers can be. */
export const copyOf = ({ type, codec }: VideoInfo): 'mp4' | 'webm' =>
  type === 'webm' || (type === 'mkv' && codec !== 'h264') ? 'webm' : 'mp4'

/** Null if the source's streams fit as they are. `plan.audioStream` is null for a silent track, which is left out. */
export function misfitOf(info: VideoInfo, plan: RenditionPlan): Misfit | null {
  const { stored } = info
  if (!stored) return 'edited'
  if (!fitsCodec(info, stored)) return 'codec'
  const isUsualPicture = stored.pixelFormat === 'yuv420p' && stored.isPlain && !info.alpha && !info.hdr
  if (!isUsualPicture || info.isInterlaced || info.isStill) return 'picture'
  if (info.width !== plan.video.width || info.height !== plan.video.height) return 'size'
  if (plan.frameRate !== null) return 'times'
  if (!stored.isWhole || info.startSeconds > MOST.startSeconds) return 'start'
  if (stored.longestKeyframeGapSeconds > MOST.keyframeGapSeconds) return 'keyframes'
  const bitsPerPixel = stored.bitRate / (info.width * info.height * info.fps)
  if (stored.bitRate > MOST.bitRate || bitsPerPixel > MOST.bitsPerPixel) return 'bit_rate'
  return plan.audioStream === null || fitsSound(copyOf(info), stored) ? null : 'sound'
}

function fitsCodec(info: VideoInfo, { profile, level }: StoredStreams): boolean {
  const { codec, width, height, fps } = info
  if (copyOf(info) === 'webm') return codec === 'vp8' || (codec === 'vp9' && profile === VP9_PROFILE)
  const blocks = Math.ceil(width / 16) * Math.ceil(height / 16)
  const fitsLevel = level > 0 && level <= H264.level && blocks <= H264.blocks && blocks * fps <= H264.blocksPerSecond
  return codec === 'h264' && H264.profile.test(profile) && fitsLevel
}

function fitsSound(file: 'mp4' | 'webm', { sound, soundTracks }: StoredStreams): boolean {
  if (!sound || soundTracks > 1 || !SOUND.codecs[file].includes(sound.codec)) return false
  const isUsual = sound.codec !== 'aac' || sound.profile === 'LC'
  const { channels, sampleRate, bitRate } = SOUND
  return isUsual && sound.channels <= channels && sound.sampleRate <= sampleRate && sound.bitRate <= bitRate
}
