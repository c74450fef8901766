import type { StoredStreams } from '../../db/media-info.ts'
import type { FfprobePacket, FfprobeStream } from './ffprobe.ts'
import { readRatio, readTag, seconds, toMicroseconds } from './ffprobe-values.ts'
import { gapsOf, type Timing } from './picture-times.ts'

interface Read {
  streams: FfprobeStream[]
  video: FfprobeStream
  packets: FfprobePacket[]
  /** Packets of the picture in the order of their times. */
  shown: FfprobePacket[]
  audio: FfprobeStream | undefined
}

/** Reads the facts that decide whether the streams may be copied. */
export function readStored(
  { streams, video, packets, shown, audio }: Read,
  { durationSeconds, endSeconds }: Timing,
): StoredStreams {
  const ofVideo = packets.filter(({ stream_index }) => stream_index === video.index)
  const keyframes = shown.filter(({ flags }) => flags.includes('K')).map(({ pts_time }) => seconds(pts_time, 0))
  const gaps = gapsOf([...keyframes, endSeconds])
  const bitRateOf = (stream: FfprobeStream) => {
    const bytes = packets.reduce(
      (sum, packet) => sum + (packet.stream_index === stream.index ? Number(packet.size) : 0),
      0,
    )
    return Math.round((8 * bytes) / durationSeconds)
  }
  return {
    profile: video.profile ?? '',
    level: video.level ?? -1,
    pixelFormat: video.pix_fmt ?? '',
    isPlain:
      (readRatio(video.sample_aspect_ratio) || 1) === 1 &&
      !hasSideData(video) &&
      readTag(video, 'rotate') === undefined,
    isWhole: ofVideo.length === shown.length && shown[0] === ofVideo[0] && Boolean(shown[0]?.flags.includes('K')),
    longestKeyframeGapSeconds: toMicroseconds(Math.max(0, ...gaps)),
    bitRate: bitRateOf(video),
    soundTracks: streams.filter(({ codec_type }) => codec_type === 'audio').length,
    sound: audio
      ? {
          codec: audio.codec_name ?? '',
          profile: audio.profile ?? '',
          channels: audio.channels ?? 0,
          sampleRate: Number(audio.sample_rate) || 0,
          bitRate: bitRateOf(audio),
        }
      : null,
  }
}

/** Sizes of the decoder's buffer, which mp4 files often have, say nothing about the picture. */
const hasSideData = ({ side_data_list: data = [] }: FfprobeStream) =>
  data.some(({ side_data_type }) => side_data_type !== 'CPB properties')
