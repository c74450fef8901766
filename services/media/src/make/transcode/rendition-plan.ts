import { fitGif, fitVideo, type Size } from '../../core/clips/geometry.ts'
import type { GifInfo, MediaInfo, VideoInfo } from '../../db/media-info.ts'
import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import { type Demuxer, demuxerOf } from '../../ffmpeg/hardening.ts'
import type { RunLimits } from '../../ffmpeg/run-confined.ts'

/** Every decision about one clip, made once from what was probed; `ffmpeg-command.ts` only spells it out. */
export interface RenditionPlan {
  demuxer: Demuxer
  /** Where ffmpeg's own choice would lose the transparency. */
  decoder: 'libvpx' | 'libvpx-vp9' | null
  videoStream: number
  audioStream: number | null
  video: Size
  flattenOnWhite: boolean
  /** What shows through in the source shows through in webm and gif; mp4 and jpg have white behind it. */
  keepsAlpha: boolean
  /** The filter that makes whole pictures of frames that are made of two fields. */
  deinterlacer: Ffmpeg['deinterlacer'] | null
  /** What the pixels are before they become yuv420p; all but `as-is` come out as BT.709 and say so. */
  color: 'rgb' | 'bt709' | 'pq' | 'hlg' | 'as-is'
  /** Frames per second as ffmpeg reads it, before scaling when it drops frames; null keeps the source's own times. */
  frameRate: { rate: string; dropsFrames: boolean } | null
  /** The first frame is shown all the time: there is one, or the clip is too short to move. */
  isStill: boolean
  /** When the picture begins in the source. What is heard before it is left out; every output begins with it. */
  startSeconds: number
  /** Repeat the last frame up to the cut; otherwise ffmpeg gets its duration right by itself. */
  holdsLastFrame: boolean
  /** Where every output ends. */
  cutSeconds: number
  durationSeconds: number
  h264Crf: number
  webmCrf: number
  /** Bits per second that crf stays below where it can; film stays far below, only noise meets it. */
  webmBitRate: number
  gif: GifPlan
  /** Where the palette and the poster come from: the keyframes where there are enough, else two frames a second. */
  overview: 'keyframes' | 'sampled'
}

export type GifPlan =
  | { from: 'rewrite' }
  /** `loopCount` as in the source: 0 is for ever, null plays once. */
  | { from: 'frames'; size: Size; delayCentiseconds: number; loopCount: number | null }

/** 30 fps sources and slower stay as they are; 60 only up to 720p, because 1080p60 costs 43 s where 30 fps costs 28. */
const USUAL_FPS = 30
const FAST_FPS = 60
const FAST_PIXELS = 1280 * 720
/** 59.94 and 60 are the same rate to this rule, and so is a clip that measures 30.02. */
const FPS_TOLERANCE = 1.02

/** Frames that keep their times last about one step of the source's grid each, and no longer than half a second. */
const KEPT_FRAME = { leastSteps: 0.5, mostSteps: 1.5, mostSeconds: 0.5 }
/** Regular frames are at most a tenth of a second apart, so that no picture is shown much too late. */
const SLOWEST_FPS = 10

/** Dropping frames first, because all but one are dropped. A tenth of a second needs more than one frame. */
const stillRate = ({ durationSeconds }: VideoInfo) => ({
  rate: String(durationSeconds < 1 ? USUAL_FPS : SLOWEST_FPS),
  dropsFrames: true,
})

const GIF_LONG_SIDE = 480
const ROUNDED_CENTISECONDS = 0.1
/** Bigger than any cut would show: a frame at the very end must not be lost to rounding. */
const CUT_MARGIN_SECONDS = 0.001

type Abilities = Pick<Ffmpeg, 'canToneMap' | 'deinterlacer'>

/** Abilities are those of the ffmpeg at hand: without tone mapping HDR is only scaled, and comes out pale. */
export function planRenditions(info: MediaInfo, abilities: Abilities): RenditionPlan {
  return info.type === 'gif' ? planFromGif(info) : planFromVideo(info, abilities)
}

function planFromVideo(info: VideoInfo, { canToneMap, deinterlacer }: Abilities): RenditionPlan {
  const video = fitVideo(info)
  const frameRate = info.isStill ? stillRate(info) : videoFrameRate(info, video)
  return {
    demuxer: demuxerOf[info.type],
    decoder: info.alpha ? alphaDecoder(info.codec) : null,
    videoStream: info.videoStream,
    audioStream: info.audioStream,
    video,
    flattenOnWhite: info.alpha,
    keepsAlpha: info.alpha,
    deinterlacer: info.isInterlaced ? deinterlacer : null,
    color: info.alpha ? 'rgb' : (canToneMap && info.hdr) || sdrColor(info),
    frameRate,
    isStill: Boolean(info.isStill),
    startSeconds: info.startSeconds,
    holdsLastFrame: frameRate !== null,
    cutSeconds: info.durationSeconds + CUT_MARGIN_SECONDS,
    durationSeconds: info.durationSeconds,
    h264Crf: 23,
    webmCrf: 32,
    webmBitRate: webmBitRate(video, frameRate ? toNumber(frameRate.rate) : info.fps),
    gif: planGif(info, GIF_LONG_SIDE, slowestGifDelay(info.durationSeconds)),
    overview: info.keyframes < 2 && info.durationSeconds > 4 ? 'sampled' : overviewOf(info),
  }
}

/** Flat art shows artefacts sooner than film, hence the lower crf values. */
function planFromGif(info: GifInfo): RenditionPlan {
  const video = fitVideo(info)
  const frameRate = gifFrameRate(info, video)
  return {
    demuxer: 'gif',
    decoder: null,
    videoStream: 0,
    audioStream: null,
    video,
    flattenOnWhite: true,
    keepsAlpha: Boolean(info.mayBeTransparent),
    deinterlacer: null,
    color: 'rgb',
    isStill: false,
    startSeconds: 0,
    frameRate,
    holdsLastFrame: true,
    cutSeconds: info.durationSeconds,
    durationSeconds: info.durationSeconds,
    h264Crf: 20,
    webmCrf: 30,
    webmBitRate: webmBitRate(video, toNumber(frameRate.rate)),
    gif: info.rewritable ? { from: 'rewrite' } : planGif(info, GIF_LONG_SIDE, slowestGifDelay(info.durationSeconds)),
    overview: 'sampled',
  }
}

/**
 * Half a bit for each pixel, and enough for a tiny picture. Without a rate to stay below, noise makes a webm six times as large;
 * film (176 x 144 to 1280 x 720) and dithered GIFs stay where they were on the curve of bytes and SSIM, a quarter of a bit costs
 * GIFs 2 dB.
 */
const webmBitRate = ({ width, height }: Size, fps: number) => Math.max(250_000, Math.round(0.5 * width * height * fps))

/** A rate as ffmpeg reads it: `30`, or `100/3`. */
export function toNumber(rate: string): number {
  const [frames, seconds = '1'] = rate.split('/')
  return Number(frames) / Number(seconds)
}

/** Only libvpx decodes the alpha plane of VP8 and VP9. */
function alphaDecoder(codec: string): RenditionPlan['decoder'] {
  if (codec === 'vp8') return 'libvpx'
  return codec === 'vp9' ? 'libvpx-vp9' : null
}

/**
 * These decoders skip to keyframes cheaply; AV1's and libvpx decode everything first, so fewer pictures must do. A clip that
 * was cut without encoding may begin after its only keyframe; frames of two fields need their neighbours.
 */
function overviewOf(info: VideoInfo): RenditionPlan['overview'] {
  return info.alpha || info.isInterlaced || info.codec === 'av1' || info.keyframes === 0 ? 'sampled' : 'keyframes'
}

/** A file that does not say is taken as players take it: BT.709 from 720 lines on; smaller ones stay untagged. */
function sdrColor(info: VideoInfo): RenditionPlan['color'] {
  if (info.colorSpace === 'rgb' || info.colorSpace === 'bt709') return info.colorSpace
  const isHighDefinition = Math.min(info.width, info.height) >= 720
  return info.colorSpace === 'unknown' && isHighDefinition ? 'bt709' : 'as-is'
}

/**
 * Keeps the source's frame times where the outputs can express them. A browser's recording has times on a grid of 1000
 * a second, which would make H.264 claim a level that hardware decoders refuse; where frames were left out, ffmpeg writes
 * too short a duration into the mp4. Both become regular frames.
 */
function videoFrameRate(info: VideoInfo, size: Size): RenditionPlan['frameRate'] {
  const { baseFps, shortestFrameSeconds, longestFrameSeconds } = info
  const isEven =
    shortestFrameSeconds >= KEPT_FRAME.leastSteps / baseFps &&
    longestFrameSeconds <= Math.min(KEPT_FRAME.mostSteps / baseFps, KEPT_FRAME.mostSeconds)
  return isEven && baseFps <= highestFps(size) * FPS_TOLERANCE ? null : regularRate(info, size)
}

/** The grid of the GIF, so that no frame moves; a large one whose delays need a fine grid costs no more than a large video. */
function gifFrameRate({ tickCentiseconds, fps }: GifInfo, size: Size): NonNullable<RenditionPlan['frameRate']> {
  const highest = highestFps(size)
  if (100 / tickCentiseconds <= highest * FPS_TOLERANCE) return { rate: `100/${tickCentiseconds}`, dropsFrames: false }
  return { rate: String(highest), dropsFrames: fps > highest }
}

const highestFps = ({ width, height }: Size) => (width * height <= FAST_PIXELS ? FAST_FPS : USUAL_FPS)

/** The source's own grid as far as it is neither too fine nor too coarse, so that frames stay where they were. */
function regularRate({ fps, baseFps }: VideoInfo, size: Size): NonNullable<RenditionPlan['frameRate']> {
  const wanted = fps <= USUAL_FPS * FPS_TOLERANCE ? USUAL_FPS : highestFps(size)
  const rate = Math.min(wanted, baseFps * Math.max(1, Math.ceil(SLOWEST_FPS / baseFps)))
  return { rate: String(Math.round(rate * 1000) / 1000), dropsFrames: rate < fps }
}

/** Longer clips get fewer frames, because a GIF's size is its frames: 16.7, 12.5 or 10 a second. */
function slowestGifDelay(durationSeconds: number): number {
  if (durationSeconds <= 10) return 6
  return durationSeconds <= 20 ? 8 : 10
}

/**
 * A GIF counts in centiseconds: the shortest delay that is neither below `minDelay` nor faster than the source, but for what a
 * rate like 16.7 is rounded by.
 */
export function planGif(info: MediaInfo, longSide: number, minDelay: number): GifPlan & { from: 'frames' } {
  const finestFps = info.type === 'gif' ? 100 / info.tickCentiseconds : Math.max(info.fps, info.baseFps)
  const sourceDelay = Math.ceil(100 / finestFps - ROUNDED_CENTISECONDS)
  return {
    from: 'frames',
    size: fitGif(info, longSide),
    delayCentiseconds: Math.max(minDelay, sourceDelay),
    loopCount: info.type === 'gif' ? info.loopCount : 0,
  }
}

/** A GIF over this is made again from the mp4, smaller and slower (contract/media.md 5.5). The last one stands. */
export const GIF_BUDGET_BYTES = 8_000_000

/** Plans to try one after the other instead of a GIF that takes more. */
export const smallerGifs = (info: MediaInfo, { delayCentiseconds }: { delayCentiseconds: number }) =>
  [planGif(info, 400, Math.max(delayCentiseconds, 8)), planGif(info, 320, Math.max(delayCentiseconds, 10))] as const

/** The same clip by the plainest means, for a second try after ffmpeg failed: regular frames, and a small slow GIF needs little memory. */
export function simplerPlan(plan: RenditionPlan, info: MediaInfo): RenditionPlan {
  const gif = plan.gif.from === 'rewrite' ? plan.gif : planGif(info, 320, 10)
  if (info.type === 'gif') return { ...plan, gif }
  // Fields stay as they are, because a deinterlacer takes one size. Even frames need no hold, which would make a file look whole
  // whose end cannot be decoded.
  return { ...plan, gif, deinterlacer: null, frameRate: plan.frameRate ?? regularRate(info, plan.video) }
}

/** CPU seconds per pixel for all renditions together, measured on one core of the reference machine (5.9). */
const CPU_SECONDS_PER_PIXEL = 2.9e-8

/** The worst legal clip, 30 s of noise in 1080p, makes a webm of 220 MB; more is a runaway. */
export const LARGEST_FILE_BYTES = 512 * 1024 ** 2

/**
 * What one run may take: ten times the prediction and a start, so that only a file made to be slow gets there. The
 * memory is address space, of which a 1080p job needs 1 GB, and every thread reserves some.
 */
export function runLimits(info: MediaInfo, threads: number): RunLimits {
  const frames = Math.max(info.frames, info.durationSeconds * 10)
  const predicted = CPU_SECONDS_PER_PIXEL * info.width * info.height * frames
  const wallSeconds = Math.min(240, 15 + 10 * predicted)
  return {
    wallSeconds,
    cpuSeconds: 2 * wallSeconds * threads,
    memoryBytes: 3 * 1024 ** 3 + threads * 256 * 1024 ** 2,
    fileBytes: LARGEST_FILE_BYTES,
  }
}
