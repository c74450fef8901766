// Plans: every decision about a clip's files, made before ffmpeg runs. A plan is pure data.
// Size, delay, frame rate and byte budget of each file. Palette and dither: filter-graph.ts; fitting:
// core/clips/geometry.ts; measurements behind the numbers: contract/media.md 5.
import { fitVideo, type Size } from '../../core/clips/geometry.ts'
import { decodedSize } from '../../core/edits/decoded-size.ts'
import {
  type AnimationInfo,
  type Caption,
  type CaptionLayout,
  isAnimation,
  type MediaInfo,
  type VideoInfo,
} from '../../db/media-info.ts'
import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import { type Demuxer, demuxerOf, moreDecodersOf } from '../../ffmpeg/hardening.ts'
import { isAboveFullHd } from '../../ffmpeg/memory-bound.ts'
import { type CutPlan, planCut } from './cut-filters.ts'
import { type GifPlan, planGif, slowestGifDelay } from './gif-plan.ts'

/** Every decision about one clip, made once from its `MediaInfo`; `ffmpeg-command.ts` only translates it. */
export interface RenditionPlan {
  /** File in the work directory that ffmpeg reads: the source, or frames that are written for it. */
  file: 'input' | 'animation' | 'drawnGif'
  /** Left upper part of the decoded pictures that is shown; null shows all. */
  shownPart: Size | null
  demuxer: Demuxer
  /** Decoders beside the usual ones. */
  moreDecoders: readonly string[]
  /** Set where ffmpeg's own choice would lose the transparency. */
  decoder: 'libvpx' | 'libvpx-vp9' | null
  videoStream: number
  audioStream: number | null
  video: Size
  flattenOnWhite: boolean
  /** Transparency of the source stays in webm and gif; mp4 and jpg get a white background. */
  keepsAlpha: boolean
  deinterlacer: Ffmpeg['deinterlacer'] | null
  /** Color of the source's pixels; all but `as-is` are converted to BT.709 and tagged. */
  color: 'rgb' | 'bt709' | 'pq' | 'hlg' | 'as-is'
  /** Frames per second in ffmpeg's syntax, applied before scaling if it drops frames; null keeps the source's times. */
  frameRate: { rate: string; dropsFrames: boolean } | null
  /** Only the first frame is shown: there is no other, or the clip is too short to move. */
  isStill: boolean
  /** Start of the picture in the source. Earlier sound is dropped; every output begins with the picture. */
  startSeconds: number
  /** Frames before the start may come from the decoder, although they cannot be decoded whole. */
  cutsStart: boolean
  /** Repeats the last frame up to the cut; otherwise ffmpeg gets its duration right itself. */
  holdsLastFrame: boolean
  cutSeconds: number
  durationSeconds: number
  /** Part, speed and crop that a caller asked for; `startSeconds` is then 0. */
  cut: CutPlan | null
  /** Text in every picture; null without one. */
  caption: (CaptionLayout & Pick<Caption, 'position'>) | null
  /** Time of the poster in the result that a caller chose; null chooses a typical frame. */
  posterSeconds: number | null
  h264Crf: number
  webmCrf: number
  /** Bits per second that crf should stay below; film stays far below, only noise reaches it. */
  webmBitRate: number
  gif: GifPlan
  /** File that has the source's own streams; null if all are encoded. */
  copies: 'mp4' | 'webm' | null
  /** Frames for palette and poster: the keyframes if there are enough, else two frames a second. */
  overview: 'keyframes' | 'sampled'
  /** Encodes the webm in a run of its own: another decode, but only one encoder's memory at a time. */
  encodesInTurn: boolean
  /** Every thread holds frames of its own: at 1080p 10 MB in the decoder and 30 in x264. */
  mostThreads: number
  /**
   * x264 looks ahead in a thread of its own. That saves 4 % of the time at 720p and 12 % at 1080p, for a buffer of 30
   * MB there.
   */
  looksAheadApart: boolean
}

/** Up to 30 fps are kept, 60 only up to 720p, because 1080p60 costs 43 s where 30 fps costs 28. */
const USUAL_FPS = 30
export const FAST_FPS = 60
const FAST_PIXELS = 1280 * 720
/** Makes 59.94 and 60 the same rate, as well as 30 and a measured 30.02. */
export const FPS_TOLERANCE = 1.02

/** Frames keep their times if each lasts about one step of the source's grid, and at most half a second. */
const KEPT_FRAME = { leastSteps: 0.5, mostSteps: 1.5, mostSeconds: 0.5 }
/** Regular frames are at most 0.1 s apart, so that no picture is noticeably late. */
const SLOWEST_FPS = 10

/** Drops frames before scaling, because only one remains. A clip of 0.1 s needs more than one frame. */
const stillRate = ({ durationSeconds }: VideoInfo) => ({
  rate: String(durationSeconds < 1 ? USUAL_FPS : SLOWEST_FPS),
  dropsFrames: true,
})

const GIF_LONG_SIDE = 480
/** Invisible, and enough that rounding does not lose a frame at the very end. */
const CUT_MARGIN_SECONDS = 0.001

type Abilities = Pick<Ffmpeg, 'canToneMap' | 'deinterlacer'>

/** Without tone mapping in `abilities`, HDR is only scaled and comes out pale. */
export function planRenditions(info: MediaInfo, abilities: Abilities): RenditionPlan {
  return isAnimation(info) ? planFromAnimation(info) : planFromVideo(info, abilities)
}

function planFromVideo(info: VideoInfo, { canToneMap, deinterlacer }: Abilities): RenditionPlan {
  const video = fitVideo(info)
  const frameRate = info.isStill ? stillRate(info) : videoFrameRate(info, video)
  return {
    ...{ file: 'input', shownPart: null },
    demuxer: demuxerOf[info.type],
    moreDecoders: moreDecodersOf(info.type),
    decoder: info.alpha ? alphaDecoder(info.codec) : null,
    videoStream: info.videoStream,
    audioStream: info.audioStream,
    video,
    flattenOnWhite: info.alpha,
    keepsAlpha: info.alpha,
    deinterlacer: info.isInterlaced ? deinterlacer : null,
    color: info.alpha ? 'rgb' : (canToneMap && info.hdr) || sdrColor(info),
    frameRate,
    isStill: info.isStill,
    startSeconds: info.edited ? 0 : info.startSeconds,
    cutsStart: info.repaired === true,
    ...editOf(info),
    holdsLastFrame: frameRate !== null,
    cutSeconds: info.durationSeconds + CUT_MARGIN_SECONDS,
    durationSeconds: info.durationSeconds,
    h264Crf: 23,
    webmCrf: 36,
    webmBitRate: webmBitRate(video, frameRate ? toNumber(frameRate.rate) : info.fps),
    gif: planGif(info, GIF_LONG_SIDE, slowestGifDelay(info.durationSeconds)),
    copies: null,
    overview: info.keyframes < 2 && info.durationSeconds > 4 ? 'sampled' : overviewOf(info),
    ...withinMemory(decodedSize(info), video, { isHdr: info.hdr !== null }),
  }
}

const editOf = (info: MediaInfo) => ({
  cut: planCut(info),
  caption: captionOf(info),
  posterSeconds: info.edited?.edit.posterAt ?? null,
})

function captionOf({ edited }: MediaInfo): RenditionPlan['caption'] {
  const position = edited?.edit.caption?.position
  return edited?.caption && position ? { ...edited.caption, position } : null
}

/** Flat art shows artefacts sooner than film, hence the lower crf values. */
function planFromAnimation(info: AnimationInfo): RenditionPlan {
  const video = fitVideo(info)
  const frameRate = gifFrameRate(info, video)
  const { width, height } = info.edited?.source ?? info
  return {
    file: fileOf(info),
    shownPart: info.decoded ? { width, height } : null,
    demuxer: demuxerOf[info.type],
    moreDecoders: moreDecodersOf(info.type),
    decoder: null,
    videoStream: 0,
    audioStream: null,
    video,
    flattenOnWhite: true,
    keepsAlpha: info.mayBeTransparent,
    deinterlacer: null,
    color: 'rgb',
    isStill: false,
    ...{ startSeconds: 0, cutsStart: false },
    ...editOf(info),
    frameRate,
    holdsLastFrame: true,
    cutSeconds: info.durationSeconds,
    durationSeconds: info.durationSeconds,
    h264Crf: 20,
    webmCrf: 30,
    webmBitRate: webmBitRate(video, toNumber(frameRate.rate)),
    gif: info.rewritable ? { from: 'rewrite' } : planGif(info, GIF_LONG_SIDE, slowestGifDelay(info.durationSeconds)),
    copies: null,
    overview: 'sampled',
    ...withinMemory(decodedSize(info), video, { isHdr: false }),
  }
}

/** ffmpeg draws GIFs that cover all pixels as browsers do, and others only after `writeGifForFfmpeg`. */
function fileOf({ type, mayBeTransparent, decoded, repaired }: AnimationInfo): RenditionPlan['file'] {
  if (type !== 'gif') return 'animation'
  return mayBeTransparent || decoded || repaired ? 'drawnGif' : 'input'
}

/**
 * Both encoders at once need 410 to 480 MB at 1080p (contract/media.md 5.7). A larger source may have that; decoding it
 * twice would cost more than the webm.
 */
function withinMemory(
  source: Size,
  video: Size,
  { isHdr }: { isHdr: boolean },
): Pick<RenditionPlan, 'encodesInTurn' | 'mostThreads' | 'looksAheadApart'> {
  const isLarge = video.width * video.height > FAST_PIXELS
  const encodesInTurn = isLarge && !isAboveFullHd(source)
  // Tone mapping takes the memory of the buffer.
  return { encodesInTurn, mostThreads: isLarge ? 2 : 8, looksAheadApart: !isLarge || (encodesInTurn && !isHdr) }
}

/**
 * Highest rate of a webm: half a bit per pixel and frame, and 250 kbit/s at least, for tiny pictures. Without it noise
 * makes a webm six times as large. Film (176 x 144 to 1280 x 720) and dithered GIFs keep their bytes and SSIM; a
 * quarter of a bit costs GIFs 2 dB.
 */
const webmBitRate = ({ width, height }: Size, fps: number) => Math.max(250_000, Math.round(0.5 * width * height * fps))

/** Parses a rate in ffmpeg's syntax: `30`, or `100/3`. */
export function toNumber(rate: string): number {
  const [frames, seconds = '1'] = rate.split('/')
  return Number(frames) / Number(seconds)
}

function alphaDecoder(codec: string): RenditionPlan['decoder'] {
  if (codec === 'vp8') return 'libvpx'
  return codec === 'vp9' ? 'libvpx-vp9' : null
}

/**
 * Most decoders skip to keyframes cheaply; those of AV1 and libvpx decode everything first, so they get fewer pictures.
 * A clip cut without encoding may begin after its only keyframe; interlaced frames need their neighbours. Of a part,
 * the only keyframe may be lost between `trim` and `thumbnail`.
 */
function overviewOf(info: VideoInfo): RenditionPlan['overview'] {
  const needsAll = info.alpha || info.isInterlaced || info.edited
  return needsAll || info.codec === 'av1' || info.keyframes === 0 ? 'sampled' : 'keyframes'
}

/** An undeclared color is read as players do: BT.709 from 720 lines on; smaller pictures stay untagged. */
function sdrColor(info: VideoInfo): RenditionPlan['color'] {
  if (info.colorSpace === 'rgb' || info.colorSpace === 'bt709') return info.colorSpace
  const { width, height } = decodedSize(info)
  const isHighDefinition = Math.min(width, height) >= 720
  return info.colorSpace === 'unknown' && isHighDefinition ? 'bt709' : 'as-is'
}

/**
 * Keeps the source's frame times where the outputs can express them, else makes the frames regular. A browser's
 * recording has 1000 time steps a second, for which H.264 declares a level that hardware decoders refuse. Dropped
 * frames make ffmpeg write too short a duration into the mp4.
 */
function videoFrameRate(info: VideoInfo, size: Size): RenditionPlan['frameRate'] {
  const { baseFps, shortestFrameSeconds, longestFrameSeconds } = info
  const isEven =
    shortestFrameSeconds >= KEPT_FRAME.leastSteps / baseFps &&
    longestFrameSeconds <= Math.min(KEPT_FRAME.mostSteps / baseFps, KEPT_FRAME.mostSeconds)
  // ffmpeg takes another speed for frames that come too fast.
  const keepsSpeed = (info.edited?.edit.speed ?? 1) === 1
  return isEven && keepsSpeed && baseFps <= highestFps(size) * FPS_TOLERANCE ? null : regularRate(info, size)
}

/** The GIF's own grid, so that no frame moves, limited so that a large GIF costs no more than a large video. */
function gifFrameRate({ tickCentiseconds, fps }: AnimationInfo, size: Size): NonNullable<RenditionPlan['frameRate']> {
  const highest = highestFps(size)
  if (100 / tickCentiseconds <= highest * FPS_TOLERANCE) return { rate: `100/${tickCentiseconds}`, dropsFrames: false }
  return { rate: String(highest), dropsFrames: fps > highest }
}

const highestFps = ({ width, height }: Size) => (width * height <= FAST_PIXELS ? FAST_FPS : USUAL_FPS)

/** The source's own grid within limits, so that frames keep their times. */
function regularRate({ fps, baseFps }: VideoInfo, size: Size): NonNullable<RenditionPlan['frameRate']> {
  const wanted = fps <= USUAL_FPS * FPS_TOLERANCE ? USUAL_FPS : highestFps(size)
  const rate = Math.min(wanted, baseFps * Math.max(1, Math.ceil(SLOWEST_FPS / baseFps)))
  return { rate: String(Math.round(rate * 1000) / 1000), dropsFrames: rate < fps }
}

/**
 * The plan of the second attempt, after ffmpeg failed: regular frames, and a small slow GIF that needs little memory.
 */
export function simplerPlan(plan: RenditionPlan, info: MediaInfo): RenditionPlan {
  const gif = plan.gif.from === 'rewrite' ? plan.gif : planGif(info, 320, 10)
  if (isAnimation(info)) return { ...plan, gif }
  // Fields stay, because a deinterlacer takes one size only. Even frames need no hold, which would hide that the end of
  // a file cannot be decoded.
  return { ...plan, gif, deinterlacer: null, frameRate: plan.frameRate ?? regularRate(info, plan.video) }
}
